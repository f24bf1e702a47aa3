"""The ways to train on labels of mixed depth that any_level.py compares."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any

import torch
from any_level_tasks import Mixed
from mechanism_looks import outputs, shortened
from torch import Tensor, nn

from coarse2fine import CoarseToFineLoss, Hierarchy
from coarse2fine._util.seeds import seed_of
from coarse2fine.metrics import level_accuracies

FINE, ANY_LEVEL, EXTRA, PSEUDO, ALL_FINE = (
    "fine labels alone",
    "any level",
    "extra classes",
    "pseudo-labels",
    "all labels fine",
)
EVEN = ", even batches"  # half of each batch has fine labels, however few there are
WAYS = (
    FINE,
    *(f"{way}{batches}" for way in (ANY_LEVEL, EXTRA, PSEUDO) for batches in ("", EVEN)),
    ALL_FINE,
)


@dataclass(frozen=True)
class Lesson:
    """What a way trains on.

    Args:
        rows: Which of the samples to train on.
        targets: What is learned of each: a class, a node of the hierarchy, or a further class.
        num_outputs: Of the network.
        parts: Places in `rows` of which each batch has equal parts. Defaults to none: batches
            are of all samples alike.
    """

    rows: Tensor
    targets: Tensor
    num_outputs: int
    parts: tuple[Tensor, ...] = ()


@dataclass
class Trained:
    """A network at its best step.

    Args:
        network: With the weights of the best step.
        val: The validation accuracy there, on the classes.
        best_step: The first one with this accuracy.
        steps: How many there were.
        accuracies: On the validation samples, each time that they were looked at.
        seconds: Of one core.
    """

    network: nn.Module
    val: float = -1.0
    best_step: int = 0
    steps: int = 0
    accuracies: list[float] = field(default_factory=list)
    seconds: float = 0.0


class Ways:
    """The trainings of one set, share of fine labels and seed.

    Args:
        mixed: The samples.
    """

    def __init__(self, mixed: Mixed) -> None:
        self.mixed = mixed

    def trained(self, way: str) -> Trained:
        """Return what came of a way, one of `WAYS`."""
        return self.fine if way == FINE else self._train(self.lesson(way))

    def lesson(self, way: str) -> Lesson:
        """Return what a way trains on."""
        if way.endswith(EVEN):
            lesson, is_fine = self.lesson(way.removesuffix(EVEN)), self.mixed.is_fine
            return replace(lesson, parts=tuple(one.nonzero()[:, 0] for one in (is_fine, ~is_fine)))
        mixed, classes = self.mixed, self.mixed.hierarchy.num_classes
        if way == FINE:
            rows = mixed.is_fine.nonzero()[:, 0]
            return Lesson(rows, mixed.classes[rows], classes)
        rows = torch.arange(len(mixed.is_fine))
        if way == EXTRA:
            targets = torch.where(mixed.is_fine, mixed.classes, classes + mixed.groups)
            return Lesson(rows, targets, classes + mixed.hierarchy.num_clusters[0])
        if way == PSEUDO:
            return Lesson(rows, torch.where(mixed.is_fine, mixed.classes, self.guesses), classes)
        return Lesson(rows, {ANY_LEVEL: mixed.nodes, ALL_FINE: mixed.classes}[way], classes)

    @cached_property
    def fine(self) -> Trained:
        """The training on fine labels alone, of which pseudo-labels are made."""
        return self._train(self.lesson(FINE))

    @cached_property
    def guesses(self) -> Tensor:
        """For each sample to train on, the most probable class of its group."""
        logits, _ = outputs(self.fine.network, self.mixed.task.parts["train"][0])
        return guessed(logits, self.mixed.groups, self.mixed.group_of)

    def _train(self, lesson: Lesson) -> Trained:
        return Training(self.mixed, lesson).run()


def guessed(logits: Tensor, groups: Tensor, group_of: Tensor) -> Tensor:
    """Return the most probable class of each sample among those of its group.

    Args:
        logits: Of shape (N, K).
        groups: Of each sample, (N).
        group_of: The group of each class, (K).
    """
    return logits.masked_fill(group_of != groups[:, None], -torch.inf).argmax(1)


def scores(logits: Tensor, classes: Tensor, hierarchy: Hierarchy) -> dict[str, float]:
    """Return the accuracies on the classes and at the groups.

    A further class is never predicted, but its probability counts for its group.

    Args:
        logits: Of the classes, and of a further class for each group, if there are any.
        classes: The true ones.
        hierarchy: The groups, and the classes.
    """
    owners, extra = hierarchy.levels[0], logits.shape[1] - hierarchy.num_classes
    wide = Hierarchy.from_levels([[*owners.tolist(), *range(extra)]])
    found = logits[:, : hierarchy.num_classes].argmax(1)
    return {
        "classes": float((found == classes).float().mean()),
        "groups": float(level_accuracies(logits, classes, wide)[0]),
    }


class Training:
    """One training, which ends when validation accuracy has not improved for long.

    Args:
        mixed: The samples, and the network with its recipe.
        lesson: What is trained on.
    """

    def __init__(self, mixed: Mixed, lesson: Lesson) -> None:
        self.mixed, self.lesson, self.recipe = mixed, lesson, mixed.task.recipe
        self.result = Trained(mixed.network(lesson.num_outputs))
        parameters = self.result.network.parameters()
        self.optimiser = torch.optim.Adam(parameters, self.recipe["rate"], fused=True)
        is_wide = lesson.num_outputs > mixed.hierarchy.num_classes
        self.criterion = CoarseToFineLoss(None if is_wide else mixed.hierarchy)
        self.criterion.level = -1  # every sample counts at its own node
        self.best: Any = None

    def run(self) -> Trained:
        """Train, and return the network with the weights of its best step."""
        result, recipe, started = self.result, self.recipe, time.process_time()
        torch.manual_seed(seed_of("layers", self.mixed.task.seed))
        for rows in self._batches():
            self._step(rows)
            result.steps += 1
            if result.steps % recipe["every"] == 0:
                self._validate()
            is_over = result.steps - result.best_step >= recipe["patience"]
            if is_over or result.steps >= recipe["steps"]:
                break
        result.network.load_state_dict(self.best)
        result.seconds = time.process_time() - started
        return result

    def _batches(self) -> Iterator[Tensor]:
        """Yield the places in the lesson of the samples of each batch, without end."""
        parts = self.lesson.parts or (torch.arange(len(self.lesson.rows)),)
        size = int(self.recipe["batch"]) // len(parts)
        drawn = [self._shuffled(part, size, at) for at, part in enumerate(parts)]
        return map(torch.cat, zip(*drawn, strict=True))

    def _shuffled(self, places: Tensor, size: int, part: int) -> Iterator[Tensor]:
        """Yield so many places at a time, epoch after epoch in another order."""
        for epoch in count():
            key = seed_of("batches", self.mixed.task.seed, part, epoch)
            order = torch.randperm(len(places), generator=torch.Generator().manual_seed(key))
            yield from places[order].split(size)

    def _step(self, places: Tensor) -> None:
        self.result.network.train()
        inputs = self.mixed.task.parts["train"][0][self.lesson.rows[places]]
        self.optimiser.zero_grad()
        logits = self.result.network(shortened(inputs))
        self.criterion(logits, self.lesson.targets[places]).backward()
        self.optimiser.step()

    def _validate(self) -> None:
        result, (inputs, classes) = self.result, self.mixed.task.parts["val"]
        logits, _ = outputs(result.network, inputs)
        accuracy = scores(logits, classes, self.mixed.hierarchy)["classes"]
        result.accuracies.append(accuracy)
        if accuracy > result.val:
            result.val, result.best_step = accuracy, result.steps
            self.best = copy.deepcopy(result.network.state_dict())
