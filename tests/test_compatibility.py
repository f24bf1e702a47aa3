"""Loss and curriculum together with what people train with: a table of cases.

Every case trains the same small model through all levels in its own way and compares all
losses and the final weights with `by_definition`, which is written from the paper's formula
in plain torch and knows nothing of the library. docs/compatibility.md has the same rows.
"""

import copy
import math
import multiprocessing
import pickle
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import lr_scheduler, swa_utils
from torch.utils.data import DataLoader, Dataset

from coarse2fine import CoarseToFineLinearLoss, CoarseToFineLoss, Curriculum, Hierarchy

CLUSTERS: list[Any] = [
    [range(6), range(6, 12)],
    [range(3), range(3, 6), range(6, 9), range(9, 12)],
    [[label] for label in range(12)],
]
HIERARCHY = Hierarchy.from_levels([np.arange(12) // 6, np.arange(12) // 3])
LEVELS = [0, 1, 2, 2]  # of the epochs, where T is 3
RATE = 0.5
ALIKE, WEIGHT = torch.ones(12), torch.linspace(0.2, 2, 12)  # of the classes

generator = torch.Generator().manual_seed(0)
INPUTS = torch.randn(32, 5, generator=generator)
LABELS = torch.randint(0, 12, (32,), generator=generator)
SOME_IGNORED = LABELS.masked_fill(torch.arange(32) % 5 == 0, -100)
PARTNERS = torch.randperm(32, generator=generator)
MIXED_INPUTS = 0.7 * INPUTS + 0.3 * INPUTS[PARTNERS]
MIXED_TARGETS = 0.7 * F.one_hot(LABELS, 12) + 0.3 * F.one_hot(LABELS[PARTNERS], 12)
BATCHES = torch.arange(32).split(8)

Run = tuple[list[Tensor], list[Tensor]]  # the losses of all steps, and the weights in the end


def make_model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 12))


# ------------------------------------------------------------------------- by definition


def mean_loss(
    logits: Tensor, labels: Tensor, clusters: Any, weight: Tensor, smoothing: float
) -> Tensor:
    """The mean of -log of the probability of each label's cluster."""
    log_probability = logits.double().log_softmax(1)
    of_class = torch.empty_like(log_probability)
    for members in map(list, clusters):
        of_class[:, members] = log_probability[:, members].logsumexp(1, keepdim=True)
    counts = labels != -100
    labels = labels.masked_fill(~counts, 0)
    shares = F.one_hot(labels, 12) * (1 - smoothing) + smoothing / 12
    losses = -(shares * of_class * weight).sum(1)
    return (losses * counts).sum() / (weight[labels] * counts).sum()


def by_definition(
    inputs: Tensor = INPUTS,
    targets: Sequence[tuple[float, Tensor]] = ((1.0, LABELS),),
    *,
    levels: Sequence[Any] = tuple(CLUSTERS[level] for level in LEVELS),
    weight: Tensor = ALIKE,
    smoothing: float = 0.0,
    rates: Sequence[float] = (RATE,) * 16,
    first_trained: int = 0,
    decay: float = 0.0,
    precision: torch.dtype | None = None,
) -> Run:
    """Train by the formula and plain gradient descent.

    `targets` are labels with their shares; `decay` is that of a running average of weights.
    """
    dtype = torch.float64 if precision is None else torch.float32
    weights = [part.detach().to(dtype).requires_grad_() for part in make_model().parameters()]
    average, losses = None, []
    for step, rate in enumerate(rates):
        batch = BATCHES[step % 4]
        with torch.autocast("cpu", precision, enabled=precision is not None):
            hidden = F.linear(inputs[batch].to(dtype), *weights[:2]).tanh()
            logits = F.linear(hidden, *weights[2:])
        clusters = levels[step // 4]
        loss = sum(
            share * mean_loss(logits, labels[batch], clusters, weight, smoothing)
            for share, labels in targets
        )
        trained = weights[first_trained:]
        with torch.no_grad():
            for part, slope in zip(trained, torch.autograd.grad(loss, trained), strict=True):
                part -= rate * slope
            now = [part.clone() for part in weights]
        average = now if average is None else _averages(average, now, decay)
        losses.append(loss.detach())
    return losses, average


def _averages(before: list[Tensor], now: list[Tensor], decay: float) -> list[Tensor]:
    return [decay * a + (1 - decay) * b for a, b in zip(before, now, strict=True)]


# ---------------------------------------------------------------------- with the library


class Training:
    """The usual loop around loss and curriculum; a case replaces the parts it is about."""

    def __init__(
        self, criterion: CoarseToFineLoss | CoarseToFineLinearLoss | None = None, **options: Any
    ) -> None:
        self.model = make_model()
        self.criterion = criterion or CoarseToFineLoss(HIERARCHY, **options)
        self.curriculum = Curriculum(self.criterion, epochs=3)
        self.optimiser = torch.optim.SGD(self.model.parameters(), RATE)
        self.inputs, self.targets = INPUTS, LABELS
        self.after_step: Callable[[], Any] = lambda: None
        self.after_epoch: Callable[[], Any] = lambda: None
        self.losses: list[Tensor] = []

    def loss(self, inputs: Tensor, targets: Tensor) -> Tensor:
        return self.criterion(self.model(inputs), targets)

    def backward(self, batch: Tensor) -> Tensor:
        loss = self.loss(self.inputs[batch], self.targets[batch])
        loss.backward()
        return loss.detach()

    def step(self, batch: Tensor) -> None:
        self.optimiser.zero_grad()
        self.losses.append(self.backward(batch))
        self.optimiser.step()
        self.after_step()

    def run(self, batches: Sequence[Tensor] = BATCHES) -> Run:
        for _ in LEVELS:
            for batch in batches:
                self.step(batch)
            self.curriculum.step()
            self.after_epoch()
        return self.losses, list(self.model.parameters())


def compiled(backend: str = "aot_eager") -> tuple[Run, Run]:
    from torch._dynamo.testing import CompileCounterWithBackend  # slow, and spawned code needs none

    training = Training()
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    training.loss = torch.compile(training.loss, backend=counter, fullgraph=True)
    found = training.run()
    assert counter.frame_count == 1
    return found, by_definition()


def under_autocast() -> tuple[Run, Run]:
    training = Training()
    training.loss = torch.autocast("cpu", torch.bfloat16)(training.loss)
    found = training.run()
    assert {loss.dtype for loss in found[0]} == {torch.float32}
    return found, by_definition(precision=torch.bfloat16)


def with_mixup() -> tuple[Run, Run]:
    training = Training()
    training.inputs, training.targets = MIXED_INPUTS, MIXED_TARGETS
    shares = (0.7, LABELS), (0.3, LABELS[PARTNERS])
    return training.run(), by_definition(MIXED_INPUTS, shares)


def with_ignored_labels() -> tuple[Run, Run]:
    training = Training()
    training.targets = SOME_IGNORED
    return training.run(), by_definition(targets=[(1.0, SOME_IGNORED)])


def with_accumulation() -> tuple[Run, Run]:
    training = Training()

    def backward(batch: Tensor) -> Tensor:
        halves = [training.loss(INPUTS[half], LABELS[half]) / 2 for half in batch.split(4)]
        for loss in halves:
            loss.backward()
        return sum(halves).detach()

    training.backward = backward
    return training.run(), by_definition()


def with_averaged_weights() -> tuple[Run, Run]:
    training = Training()
    average = swa_utils.AveragedModel(
        training.model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.9)
    )
    training.after_step = lambda: average.update_parameters(training.model)
    losses, _ = training.run()
    return (losses, list(average.module.parameters())), by_definition(decay=0.9)


def with_warm_up() -> tuple[Run, Run]:
    training = Training()
    warm_up = lr_scheduler.LinearLR(training.optimiser, start_factor=0.1, total_iters=4)
    cosine = lr_scheduler.CosineAnnealingLR(training.optimiser, T_max=12)
    scheduler = lr_scheduler.SequentialLR(training.optimiser, [warm_up, cosine], milestones=[4])
    training.after_step = scheduler.step
    rates = [RATE * (0.1 + 0.9 * step / 4) for step in range(4)]
    rates += [RATE * (1 + math.cos(math.pi * step / 12)) / 2 for step in range(12)]
    return training.run(), by_definition(rates=rates)


def with_frozen_backbone() -> tuple[Run, Run]:
    training = Training()
    training.model[0].requires_grad_(False)
    training.optimiser = torch.optim.SGD(training.model[2].parameters(), RATE)
    return training.run(), by_definition(first_trained=2)


def with_copies(duplicate: Callable[[Any], Any]) -> tuple[Run, Run]:
    training = Training()

    def go_on_with_copies() -> None:
        left = training.criterion, training.curriculum
        training.criterion, training.curriculum = duplicate(left)
        left[0].level = 0  # what is left behind has no say any more

    training.after_epoch = go_on_with_copies
    return training.run(), by_definition()


def with_several_criteria() -> tuple[Run, Run]:
    first, other = Training(), Training(CoarseToFineLoss(HIERARCHY.keep_levels([1])))
    other.curriculum = Curriculum(other.criterion, epochs=6)  # level 0 for three epochs
    first.after_step = lambda: other.step(BATCHES[len(other.losses) % 4])
    first.after_epoch = other.curriculum.step
    losses, weights = first.run()
    expected = by_definition()
    levels = [CLUSTERS[1], CLUSTERS[1], CLUSTERS[1], CLUSTERS[2]]
    other_losses, other_weights = by_definition(levels=levels)
    found = losses + other.losses, weights + list(other.model.parameters())
    return found, (expected[0] + other_losses, expected[1] + other_weights)


def train_there(criterion: CoarseToFineLoss, hierarchy: Hierarchy) -> bytes:
    assert criterion.hierarchy == hierarchy == HIERARCHY
    # As bytes: tensors would go by shared memory, which ends with the process.
    return pickle.dumps(Training(criterion).run())


def in_a_spawned_process() -> tuple[Run, Run]:
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as executor:
        sent = executor.submit(train_there, CoarseToFineLoss(HIERARCHY), HIERARCHY)
        return pickle.loads(sent.result(timeout=120)), by_definition()


class Coarsened(Dataset):
    """Rows with their labels at all levels."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.hierarchy = hierarchy

    def __len__(self) -> int:
        return 32

    def __getitem__(self, index: int) -> tuple[Tensor, list[int]]:
        levels = range(len(self.hierarchy.levels))
        return INPUTS[index], [self.hierarchy.coarsen(LABELS[index], level) for level in levels]


def with_spawned_workers() -> tuple[Run, Run]:
    loader = DataLoader(
        Coarsened(HIERARCHY),
        batch_size=8,
        num_workers=1,
        multiprocessing_context="spawn",
        persistent_workers=True,
    )
    training, seen = Training(), []

    def backward(batch: tuple[Tensor, list[Tensor]]) -> Tensor:
        inputs, labels = batch
        seen.extend(labels)
        loss = training.loss(inputs, labels[-1])
        loss.backward()
        return loss.detach()

    training.backward = backward
    losses, weights = training.run(loader)
    expected_losses, expected = by_definition()
    for batch in BATCHES * 4:
        expected_losses += [LABELS[batch] // 6, LABELS[batch] // 3, LABELS[batch]]
    return (losses + seen, weights), (expected_losses, expected)


def with_the_final_layer_in_the_loss() -> tuple[Run, Run]:
    criterion = CoarseToFineLinearLoss(1, 1, HIERARCHY)
    training = Training(criterion)
    encoder, criterion.linear = training.model[:-1], training.model[-1]
    training.loss = lambda inputs, targets: criterion(encoder(inputs), targets)
    return training.run(), by_definition()


CASES: dict[str, Callable[[], tuple[Run, Run]]] = {
    "torch.compile": compiled,
    "autocast": under_autocast,
    "mixup": with_mixup,
    "class weights": lambda: (Training(weight=WEIGHT).run(), by_definition(weight=WEIGHT)),
    "ignore_index": with_ignored_labels,
    "label smoothing": lambda: (Training(label_smoothing=0.1).run(), by_definition(smoothing=0.1)),
    "final layer and loss in one": with_the_final_layer_in_the_loss,
    "gradient accumulation": with_accumulation,
    "EMA of weights": with_averaged_weights,
    "learning-rate schedules with warm-up": with_warm_up,
    "frozen backbones": with_frozen_backbone,
    "deepcopy": partial(with_copies, copy.deepcopy),
    "pickle": partial(with_copies, lambda parts: pickle.loads(pickle.dumps(parts))),
    "several criteria in one process": with_several_criteria,
    "processes started by spawn": in_a_spawned_process,
    "DataLoader workers started by spawn": with_spawned_workers,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's own, as it compiles
@pytest.mark.parametrize("name", CASES)
def test_training_is_what_the_definition_says(name):
    assert_same(*CASES[name](), tolerance=2e-4 if name == "autocast" else 1e-5)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
def test_training_compiled_to_machine_code_is_what_the_definition_says():
    assert_same(*compiled("inductor"), tolerance=1e-5)


def assert_same(found: Run, expected: Run, tolerance: float) -> None:
    for parts, others in zip(found, expected, strict=True):
        for part, other in zip(parts, others, strict=True):
            options = {"rtol": tolerance, "atol": tolerance, "check_dtype": False}
            torch.testing.assert_close(part, other, **options)


def test_the_page_has_the_same_rows():
    page = Path(__file__).parents[1] / "docs" / "compatibility.md"
    table = page.read_text(encoding="utf-8").split("| feature |")[1].split("\n\n")[0]
    assert re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE) == list(CASES)
