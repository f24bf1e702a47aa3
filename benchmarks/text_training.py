"""One small training on sentences, plain or by a curriculum, with looks at what it has learned."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from text_looks import Look, Samples, accuracy_at, look, outputs, shortened
from torch import Tensor, nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy
from coarse2fine.data.load import load_data
from coarse2fine.data.sampling import sample
from coarse2fine.models.text import TextBag, TextTransformer

# More epochs than the recipes of `c2f train`, since so few sentences are few steps an epoch.
RECIPES: Mapping[str, Mapping[str, float]] = {
    "bag": {"rate": 3e-3, "batch": 128, "epochs": 80, "patience": 15, "dropout": 0.5, "decay": 0},
    "transformer": {
        "rate": 1e-3, "batch": 64, "epochs": 60, "patience": 10, "dropout": 0.1, "decay": 0,
    },
}  # fmt: skip
MODELS = {"bag": TextBag, "transformer": TextTransformer}
LOWEST = ("bag", "words")  # the embeddings of words


@dataclass(frozen=True)
class Variant:
    """A curriculum that differs from the adaptive one.

    Args:
        label: What the table calls it.
        each: How many epochs each coarse level lasts. Defaults to None: by patience.
        patience: Defaults to 5, as in `c2f train`.
        leave_at: The training accuracy at which a level is left instead. Defaults to None.
        fresh: What begins anew at a change of level: ``"optimiser"``, ``"head"``, ``"words"``
            (the embeddings), ``"between"`` (the layers between). Defaults to nothing.
        class_share: The weight of the class loss at coarse levels. Defaults to 0.0.
        clusters: Those of the ``"baseline"``, ``"random"`` ones of the same sizes, or what a
            hierarchy made otherwise is called. Defaults to ``"baseline"``.
        settings: Instead of the recipe's, in its baseline too. Defaults to nothing.
    """

    label: str
    each: int | None = None
    patience: int = 5
    leave_at: float | None = None
    fresh: tuple[str, ...] = ()
    class_share: float = 0.0
    clusters: str = "baseline"
    settings: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Task:
    """The sentences of a seed, as tokens and classes, and how a network is trained on them."""

    name: str
    model: str
    seed: int
    num_classes: int
    parts: Mapping[str, Samples]
    recipe: Mapping[str, float]

    @classmethod
    def load(
        cls,
        name: str,
        folder: Path | None,
        model: str,
        seed: int,
        per_class: int,
        val_size: int | None = None,
    ) -> Task:
        data = sample(load_data(name, folder=folder), seed=seed)
        targets, rng = data.train.targets.numpy(), np.random.RandomState(1000 + seed)
        classes = len(data.class_names)
        rows = [rng.permutation(np.flatnonzero(targets == k))[:per_class] for k in range(classes)]
        few = data.train.take(np.sort(np.concatenate(rows)))
        val = data.val.take(np.sort(rng.permutation(len(data.val))[:val_size]))
        splits = {"train": few, "val": val, "test": data.test}
        parts = {part: (split.inputs, split.targets) for part, split in splits.items()}
        return cls(name, model, seed, classes, parts, RECIPES[model])  # type: ignore[arg-type]

    def network(self) -> nn.Module:
        torch.manual_seed(self.seed)
        return MODELS[self.model](self.num_classes, dropout=self.recipe["dropout"])


@dataclass
class Outcome:
    """What came out of a training.

    Args:
        val: The validation accuracy of the best epoch; `test` is the test accuracy there.
        boundaries: After which epochs the level changed.
        accuracies: On the validation sentences, on the classes, after each epoch.
        losses: The mean training loss in each epoch, at its level.
        looks: At each change of level, before it, and at the best epoch.
        within: How often the class is right where its cluster is, on the validation sentences.
    """

    val: float = 0.0
    test: float = 0.0
    best_epoch: int = 0
    epochs: int = 0
    boundaries: list[int] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    looks: list[Look] = field(default_factory=list)
    within: float = 0.0
    seconds: float = 0.0


class Training:
    """One training, by a curriculum or, without a hierarchy, a plain one."""

    def __init__(self, task: Task, variant: Variant, hierarchy: Hierarchy | None = None) -> None:
        self.task, self.variant, self.hierarchy = task, variant, hierarchy
        self.network: Any = task.network()
        self.first = copy.deepcopy(self.network.state_dict())
        self.optimiser = self._new_optimiser()
        self.criterion = CoarseToFineLoss(hierarchy)
        self.curriculum = None if hierarchy is None else self._new_curriculum(hierarchy)
        self.outcome = Outcome()
        self.best: Any = None

    def _new_optimiser(self) -> torch.optim.Optimizer:
        recipe, head = self.task.recipe, list(self.network.head.parameters())
        rest = [one for one in self.network.parameters() if all(one is not h for h in head)]
        head_rate = recipe.get("head_rate", recipe["rate"])
        groups = [{"params": rest}, {"params": head, "lr": head_rate}]
        return torch.optim.Adam(groups, recipe["rate"], weight_decay=recipe["decay"], fused=True)

    def _new_curriculum(self, hierarchy: Hierarchy) -> Curriculum:
        each, epochs = self.variant.each, int(self.task.recipe["epochs"])
        if each is not None:
            boundaries = [each * level for level in range(1, len(hierarchy.levels))]
            return Curriculum(self.criterion, boundaries=boundaries)
        patience = self.variant.patience if self.variant.leave_at is None else epochs
        return Curriculum(self.criterion, patience=patience, total_epochs=epochs)

    @property
    def is_coarse(self) -> bool:
        return self.curriculum is not None and not self.curriculum.is_finest

    def run(self) -> Outcome:
        """Train until validation accuracy has not improved for long, and test the best epoch."""
        outcome, recipe, started = self.outcome, self.task.recipe, time.perf_counter()
        order = torch.Generator().manual_seed(7919 * self.task.seed + 1)
        torch.manual_seed(31 * self.task.seed + 5)
        first_fine = 0
        while outcome.epochs < recipe["epochs"]:
            self._train_epoch(order)
            outcome.epochs += 1
            first_fine = outcome.epochs if self.is_coarse else first_fine
            self._end_epoch()
            if outcome.epochs - max(outcome.best_epoch, first_fine) >= recipe["patience"]:
                break
        self.network.load_state_dict(self.best)
        self._note_best()
        self.outcome.seconds = time.perf_counter() - started
        return self.outcome

    def _train_epoch(self, order: torch.Generator) -> None:
        tokens, targets = self.task.parts["train"]
        self.network.train()
        shuffled, total = torch.randperm(len(targets), generator=order), 0.0
        for rows in shuffled.split(int(self.task.recipe["batch"])):
            self.optimiser.zero_grad()
            loss = self._loss(self.network(shortened(tokens[rows])), targets[rows])
            loss.backward()
            self.optimiser.step()
            total += loss.item() * len(rows)
        self.outcome.losses.append(total / len(targets))

    def _loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        share = self.variant.class_share if self.is_coarse else 0.0
        loss = self.criterion(logits, targets)
        return (1 - share) * loss + share * F.cross_entropy(logits, targets) if share else loss

    def _end_epoch(self) -> None:
        logits, _ = outputs(self.network, self.task.parts["val"][0])
        targets, outcome = self.task.parts["val"][1], self.outcome
        accuracy = float((logits.argmax(1) == targets).float().mean())
        outcome.accuracies.append(accuracy)
        if self.is_coarse:
            self._step(logits, targets)
        elif accuracy > outcome.val:
            outcome.val, outcome.best_epoch = accuracy, outcome.epochs
            self.best = copy.deepcopy(self.network.state_dict())

    def _step(self, logits: Tensor, targets: Tensor) -> None:
        """Move the curriculum on, and begin anew what the variant says at a change."""
        curriculum: Any = self.curriculum
        hierarchy: Any = self.hierarchy
        level = curriculum.level
        if not curriculum.is_adaptive:
            curriculum.step()
        elif self.variant.leave_at is not None:
            tokens, labels = self.task.parts["train"]
            learned = accuracy_at(outputs(self.network, tokens)[0], labels, hierarchy.levels[level])
            curriculum.step(float(learned >= self.variant.leave_at))
        else:
            curriculum.step(accuracy_at(logits, targets, hierarchy.levels[level]))
        if curriculum.level != level:
            epoch = self.outcome.epochs
            self.outcome.boundaries.append(epoch)
            self.outcome.looks.append(self._look(hierarchy, level, epoch))
            self._begin_anew()

    def _look(self, hierarchy: Hierarchy, level: int, epoch: int) -> Look:
        train, val = self.task.parts["train"], self.task.parts["val"]
        return look(self.network, train, val, hierarchy, epoch, level)

    def _begin_anew(self) -> None:
        now = self.network.state_dict()
        fresh = {name: self.first[name] for name in now if part_of(name) in self.variant.fresh}
        self.network.load_state_dict({**now, **fresh})
        if "optimiser" in self.variant.fresh:
            self.optimiser = self._new_optimiser()

    def _note_best(self) -> None:
        tokens, targets = self.task.parts["test"]
        logits, _ = outputs(self.network, tokens)
        self.outcome.test = float((logits.argmax(1) == targets).float().mean())
        if self.hierarchy is not None:
            self.outcome = self.at_levels(self.hierarchy)

    def at_levels(self, hierarchy: Hierarchy) -> Outcome:
        """Return the outcome with a look at the best epoch by the levels of a hierarchy."""
        level, epoch = len(hierarchy.levels) - 1, self.outcome.best_epoch
        best = self._look(hierarchy, level, epoch)
        tokens, targets = self.task.parts["val"]
        found, clusters = outputs(self.network, tokens)[0].argmax(1), hierarchy.levels[-2]
        is_near = torch.tensor(clusters)[found] == torch.tensor(clusters)[targets]
        within = float((found == targets)[is_near].float().mean())
        return replace(self.outcome, looks=[*self.outcome.looks, best], within=within)


def part_of(name: str) -> str:
    """Return which part of a network a parameter belongs to."""
    first = name.partition(".")[0]
    return {"head": "head", **dict.fromkeys(LOWEST, "words")}.get(first, "between")
