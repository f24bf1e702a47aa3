"""The loss against F.cross_entropy: time, memory, and its part of a training step."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from measure import Row, compare, in_a_fresh_process
from torch import nn

from coarse2fine import CoarseToFineLoss, Hierarchy
from coarse2fine._level_loss import level_cross_entropy
from coarse2fine._loss_checks import Options
from coarse2fine._marginal import Partition

DEFAULTS = Options(None, -100, "mean", 0.0)
SHAPES = ((512, 100, 2.8), (128, 1_000, 2.8), (256, 10_000, 1.5), (64, 100_000, 1.5))


def middle_level(classes: int) -> Hierarchy:
    """A hierarchy whose one coarse level has about as many clusters as a middle level has.

    That is K to the power of 2/3, in the range of what trained heads give (27 of 100 classes
    in the paper, about 100 of 1,000), and of uneven sizes.
    """
    rng = np.random.default_rng(0)
    count = round(classes ** (2 / 3))
    owner = np.concatenate([np.arange(count), rng.integers(0, count, classes - count)])
    return Hierarchy.from_levels([rng.permutation(owner)])


MEMORY = """
import json, sys
import torch
sys.path.insert(0, sys.argv[1])
import loss
from measure import memory, reset_peak

batch, classes, kind = int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
criterion = loss.CoarseToFineLoss(loss.middle_level(classes))
if kind == "torch":
    criterion = torch.nn.CrossEntropyLoss()
logits = torch.randn(batch, classes, requires_grad=True)
target = torch.randint(0, classes, (batch,))
criterion(logits[:2], target[:2]).backward()
logits.grad = None
reset_peak()
before = memory("VmRSS")
criterion(logits, target).backward()
print(json.dumps({"extra": (memory("VmHWM") - before) / (logits.numel() * 4)}))
"""


def rows() -> list[Row]:
    result = []
    for batch, classes, bound in SHAPES:
        criterion = CoarseToFineLoss(middle_level(classes))
        logits = torch.randn(batch, classes, requires_grad=True)
        target = torch.randint(0, classes, (batch,))

        def ours(criterion=criterion, logits=logits, target=target) -> None:
            logits.grad = None
            criterion(logits, target).backward()

        def torchs(logits=logits, target=target) -> None:
            logits.grad = None
            F.cross_entropy(logits, target).backward()

        repeats = 300 if classes <= 1_000 else 60
        found = compare(ours, torchs, repeats=repeats, warm_up=10)
        detail = f"{found.ours * 1e3:.3g} ms against {found.peer * 1e3:.3g} ms"
        what = f"loss, forward and backward, ({batch}, {classes:,}), against F.cross_entropy"
        result.append(Row.at_most(what, found.ratio, bound, "×", detail))
    mine, peer = (
        in_a_fresh_process(MEMORY, str(Path(__file__).parent), "512", "100000", kind)["extra"]
        for kind in ("ours", "torch")
    )
    what = "its memory beside logits and gradient, (512, 100,000), in sizes of the logits"
    result.append(Row.at_most(what, mine - 1, 2, "×", f"F.cross_entropy {peer - 1:.3g}×"))
    result += map(classes_row, (512, 256), (100, 10_000))
    return [*result, *map(nodes_row, (512, 256), (100, 10_000)), step_row()]


def classes_row(batch: int, classes: int) -> Row:
    """Classes as targets of a loss that takes nodes, against one that takes classes alone."""
    level = torch.tensor(middle_level(classes).levels[0])
    takes_nodes, plain = CoarseToFineLoss(middle_level(classes)), Partition(level)
    logits = torch.randn(batch, classes, requires_grad=True)
    target = torch.randint(0, classes, (batch,))

    def ours() -> None:
        logits.grad = None
        takes_nodes(logits, target).backward()

    def of_classes() -> None:
        logits.grad = None
        level_cross_entropy(logits, target, level, plain, DEFAULTS).backward()

    found = compare(ours, of_classes, repeats=300 if classes <= 1_000 else 60, warm_up=10)
    detail = f"{found.ours * 1e3:.3g} ms against {found.peer * 1e3:.3g} ms"
    what = f"loss of classes that takes nodes too, ({batch}, {classes:,}), against without"
    return Row.at_most(what, found.ratio, 1.3, "×", detail)


def nodes_row(batch: int, classes: int) -> Row:
    """Targets of which a quarter are clusters against targets that are all classes."""
    hierarchy = middle_level(classes)
    criterion = CoarseToFineLoss(hierarchy)
    logits = torch.randn(batch, classes, requires_grad=True)
    plain = torch.randint(0, classes, (batch,))
    mixed = plain.clone()
    mixed[::4] = torch.randint(classes, len(hierarchy.nodes), mixed[::4].shape)

    def loss_of(target: torch.Tensor) -> None:
        logits.grad = None
        criterion(logits, target).backward()

    repeats = 300 if classes <= 1_000 else 60
    found = compare(lambda: loss_of(mixed), lambda: loss_of(plain), repeats=repeats, warm_up=10)
    detail = f"{found.ours * 1e3:.3g} ms against {found.peer * 1e3:.3g} ms"
    what = f"loss of classes and clusters mixed, ({batch}, {classes:,}), against classes alone"
    return Row.at_most(what, found.ratio, 3, "×", detail)


def step_row() -> Row:
    """A training step of the paper's CNN at a coarse level against the plain step."""
    model = nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 4 * 4, 100),
    )  # fmt: skip
    optimiser = torch.optim.Adam(model.parameters())
    images, target = torch.randn(512, 3, 32, 32), torch.randint(0, 100, (512,))

    def step(criterion: nn.Module) -> None:
        optimiser.zero_grad()
        criterion(model(images), target).backward()
        optimiser.step()

    coarse = CoarseToFineLoss(middle_level(100))
    plain = nn.CrossEntropyLoss()
    found = compare(lambda: step(coarse), lambda: step(plain), repeats=100, warm_up=3)
    detail = f"{found.ours * 1e3:.3g} ms against {found.peer * 1e3:.3g} ms"
    what = "training step of the paper's CNN, batch 512, 32×32, against plain cross-entropy"
    return Row.at_most(what, found.ratio, 1.01, "×", detail)
