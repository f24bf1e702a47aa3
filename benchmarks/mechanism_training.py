"""One small training, plain or by a curriculum, with looks at what it has learned."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from mechanism_looks import Look, accuracy_at, look, outputs, shortened
from mechanism_tasks import Task
from torch import Tensor, nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

LOWEST = {"bag", "words", "embeddings"}  # the embeddings of words


@dataclass(frozen=True)
class Variant:
    """A curriculum that differs from the adaptive one.

    Args:
        label: What the table calls it.
        each: How many epochs each coarse level lasts. Defaults to None: by patience.
        patience: Defaults to 5, as in `c2f train`.
        leave_at: The training accuracy at which a level is left instead. Defaults to None.
        fresh: What begins anew at a change of level: ``"optimiser"``, ``"head"``, ``"words"``
            (the embeddings), ``"between"`` (the layers between), ``"norms"`` (the mean norm of
            the final layer's rows, which keep their directions). Defaults to nothing.
        warmup: Over how many epochs the learning rate rises again after a change of level.
            Defaults to 0.
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
    warmup: int = 0
    class_share: float = 0.0
    clusters: str = "baseline"
    settings: tuple[tuple[str, float], ...] = ()


@dataclass
class Outcome:
    """What came out of a training.

    Args:
        val: The validation accuracy of the best epoch; `test` is the test accuracy there.
        boundaries: After which epochs the level changed.
        accuracies: On the validation samples, on the classes, after each epoch.
        losses: The mean training loss in each epoch, at its level.
        looks: At each change of level, before it, and at the best epoch.
        within: How often the class is right where its cluster is, on the validation samples.
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
        self.warmup, self.warm_from = task.recipe.get("warmup", 0), 0.0  # in epochs
        self.criterion = CoarseToFineLoss(hierarchy)
        self.curriculum = None if hierarchy is None else self._new_curriculum(hierarchy)
        self.outcome = Outcome()
        self.best: Any = None

    def _new_optimiser(self) -> torch.optim.Optimizer:
        recipe, head = self.task.recipe, list(self.network.head.parameters())
        rest = [one for one in self.network.parameters() if all(one is not h for h in head)]
        head_rate = recipe.get("head_rate", recipe["rate"])
        rates = [(rest, recipe["rate"]), (head, head_rate)]
        groups = [{"params": of, "lr": rate, "initial_lr": rate} for of, rate in rates]
        return torch.optim.Adam(groups, weight_decay=recipe["decay"], fused=True)

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
        inputs, targets = self.task.parts["train"]
        self.network.train()
        shuffled, total = torch.randperm(len(targets), generator=order), 0.0
        batches = shuffled.split(int(self.task.recipe["batch"]))
        for done, rows in enumerate(batches, 1):
            self._set_rate(self.outcome.epochs + done / len(batches))
            self.optimiser.zero_grad()
            loss = self._loss(self.network(shortened(inputs[rows])), targets[rows])
            loss.backward()
            if clip := self.task.recipe.get("clip"):
                nn.utils.clip_grad_norm_(self.network.parameters(), clip)
            self.optimiser.step()
            total += loss.item() * len(rows)
        self.outcome.losses.append(total / len(targets))

    def _set_rate(self, epoch: float) -> None:
        """Set the learning rate, which rises linearly where there is a warm-up."""
        share = min(1.0, (epoch - self.warm_from) / self.warmup) if self.warmup else 1.0
        for group in self.optimiser.param_groups:
            group["lr"] = share * group["initial_lr"]

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
            inputs, labels = self.task.parts["train"]
            learned = accuracy_at(outputs(self.network, inputs)[0], labels, hierarchy.levels[level])
            curriculum.step(float(learned >= self.variant.leave_at))
        else:
            curriculum.step(accuracy_at(logits, targets, hierarchy.levels[level]))
        if curriculum.level != level:
            epoch = self.outcome.epochs
            self.outcome.boundaries.append(epoch)
            self.outcome.looks.append(self._look(hierarchy, level, epoch))
            self._begin_anew()

    def _look(self, hierarchy: Hierarchy, level: int, epoch: int) -> Look:
        samples = self.task.parts["train"], self.task.parts["val"]
        place = hierarchy, epoch, level, int(self.task.recipe["batch"])
        return look(self.network, self.optimiser, *samples, *place)

    def _begin_anew(self) -> None:
        now = self.network.state_dict()
        fresh = {name: self.first[name] for name in now if part_of(name) in self.variant.fresh}
        self.network.load_state_dict({**now, **fresh})
        if "norms" in self.variant.fresh:
            first, rows = self.first["head.weight"], self.network.head.weight.data
            rows *= first.norm(dim=1).mean() / rows.norm(dim=1).mean()
        if "optimiser" in self.variant.fresh:
            self.optimiser = self._new_optimiser()
        if self.variant.warmup:
            self.warmup, self.warm_from = self.variant.warmup, float(self.outcome.epochs)

    def _note_best(self) -> None:
        inputs, targets = self.task.parts["test"]
        logits, _ = outputs(self.network, inputs)
        self.outcome.test = float((logits.argmax(1) == targets).float().mean())
        if self.hierarchy is not None:
            self.outcome = self.at_levels(self.hierarchy)

    def at_levels(self, hierarchy: Hierarchy) -> Outcome:
        """Return the outcome with a look at the best epoch by the levels of a hierarchy."""
        level, epoch = len(hierarchy.levels) - 1, self.outcome.best_epoch
        best = self._look(hierarchy, level, epoch)
        inputs, targets = self.task.parts["val"]
        found, clusters = outputs(self.network, inputs)[0].argmax(1), hierarchy.levels[-2]
        is_near = torch.tensor(clusters)[found] == torch.tensor(clusters)[targets]
        within = float((found == targets)[is_near].float().mean())
        return replace(self.outcome, looks=[*self.outcome.looks, best], within=within)


def part_of(name: str) -> str:
    """Return which part of a network a parameter belongs to."""
    parts = set(name.split("."))
    return "head" if "head" in parts else "words" if parts & LOWEST else "between"
