"""Which level is trained at which epoch."""

from __future__ import annotations

import warnings
import weakref
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor, nn

from ._level_module import LevelLoss, Usage
from ._plateau import Plateau, check_accuracy
from ._tally import Tally
from ._util.arrays import check_whole
from .hierarchy import Hierarchy

_MANY = 100  # losses without a step: more than anybody computes just to try the loss


class Curriculum:
    """Moves a loss from the coarsest to the finest level, like a learning-rate scheduler.

    With `epochs`, each of the M levels gets an equal share of T, and every coarse level at
    least one epoch (Algorithm 3 of the paper). With `patience`, a coarse level lasts as long
    as it teaches, and `step` is told the validation accuracy at the level, as
    ``ReduceLROnPlateau`` of torch is told a loss; `level_accuracy` computes it. Either way the
    finest level lasts as long as training does.

    Args:
        criterion: The loss; it is set to the level of epoch 0.
        epochs: T, the length of the curriculum in epochs; `step` is called after each.
        steps: T in optimiser steps instead; `step` is called after each of those.
        boundaries: Instead of either, the epochs (or steps) at which the levels 1, 2, ...
            begin, one for each level but the coarsest.
        patience: Instead of those, leave a coarse level once its validation accuracy has not
            improved for so many epochs, or is as good as perfect (0.99).
        total_epochs: How many epochs (or steps) training takes in all; a curriculum that would
            not reach the classes before is refused. Defaults to None: it is not checked.
        share: With `patience` and `total_epochs`: the largest share of all epochs that the
            coarse levels may take together. A level may take its part of that, and what the
            levels before it left over; with 0, each takes one epoch. Defaults to 0.5.

    Warns:
        UserWarning: `step` is never called, though the loss is used for many epochs.

    Attributes:
        boundaries: The epochs (or steps) at which the levels 1, 2, ... begin; with `patience`
            those that have begun.
        epoch: How many epochs (or steps) have been done.

    Examples:
        >>> from coarse2fine import CoarseToFineLoss
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 0, 0, 1], [0, 0, 1, 1, 2]])
        >>> curriculum = Curriculum(CoarseToFineLoss(hierarchy), epochs=6)
        >>> [curriculum.level_at(epoch) for epoch in range(8)]
        [0, 0, 1, 1, 2, 2, 2, 2]
        >>> curriculum = Curriculum(CoarseToFineLoss(hierarchy), patience=2)
        >>> for accuracy in (0.5, 0.6, 0.6, 0.6, 0.4):
        ...     curriculum.step(accuracy)
        >>> curriculum
        Curriculum(boundaries=(4,), epoch=5, level=1)
    """

    def __init__(
        self,
        criterion: LevelLoss,
        epochs: int | None = None,
        *,
        steps: int | None = None,
        boundaries: Iterable[int] | None = None,
        patience: int | None = None,
        total_epochs: int | None = None,
        share: float = 0.5,
    ) -> None:
        if not isinstance(criterion, LevelLoss):
            raise TypeError(
                f"criterion must be a CoarseToFineLinearLoss or a CoarseToFineLoss. Got "
                f"{type(criterion).__name__}."
            )
        if sum(given is not None for given in (epochs, steps, boundaries, patience)) != 1:
            raise ValueError("give exactly one of epochs, steps, boundaries and patience.")
        self.criterion = criterion
        self._patience = None if patience is None else _check_patience(patience, share)
        self._total_and_share = total_epochs, share
        self._plateau = Plateau()
        if patience is not None:
            self.boundaries: tuple[int, ...] = ()
        elif boundaries is not None:
            self.boundaries = _check_boundaries(boundaries, self._finest)
        else:
            unit, length = ("epochs", epochs) if steps is None else ("steps", steps)
            length = _check_length(length, self._finest, unit)
            self.boundaries = equal_shares(length, self._finest + 1)
        self._check_total(total_epochs)
        self.epoch = 0
        self.criterion.level = 0
        # Shared with the loss, which counts its uses, so that a loop without `step` is noticed.
        most_turns = 2 * (self.finest_epoch or (patience or 0) * self._finest)
        self._usage = criterion._usage = Usage(most_turns or None)
        weakref.finalize(self, _warn_if_never_stepped, self._usage)

    def _check_total(self, total: int | None) -> None:
        """Raise a `ValueError` where training would end before the classes are reached."""
        finest = max(self._latest, default=0) if self.is_adaptive else self.finest_epoch or 0
        if total is not None and finest >= total:
            shorter = "" if self.is_adaptive else "give fewer epochs to the curriculum, or "
            raise ValueError(
                f"the classes would be trained from epoch {finest + 1} on, and there "
                f"are {total} in all, so they would never be reached; "
                f"{shorter}make fewer levels by Hierarchy.max_levels, or train for longer."
            )

    @property
    def is_adaptive(self) -> bool:
        """Whether levels last as long as they teach, so that `step` is told an accuracy."""
        return self._patience is not None

    @property
    def level(self) -> int:
        """The level in force."""
        return self.level_at(self.epoch)

    @property
    def finest_epoch(self) -> int | None:
        """The epoch (or step), counted from 0, at which the finest level begins.

        None with `patience`, until it has begun.
        """
        if len(self.boundaries) < self._finest:
            return None
        return max(self.boundaries, default=0)

    @property
    def is_finest(self) -> bool:
        """Whether the curriculum is over: the level in force is the finest."""
        return self.level == self._finest

    def level_at(self, epoch: int) -> int:
        """Return the level of an epoch, counted from 0; with `patience` of one up to now."""
        return bisect_right(self.boundaries, epoch)

    def step(self, accuracy: float | None = None, *, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the given one, and set the loss to its level.

        Args:
            accuracy: With `patience`: the validation accuracy at the level that has just been
                trained, from 0 to 1, the same in all processes; at the finest level it may be
                left out. Otherwise a number given here is the epoch.
            epoch: To go to, counted from 0; not with `patience`. Defaults to None: the next one.
        """
        if self.is_adaptive:
            self._step_by(accuracy, epoch)
        else:
            self._step_to(epoch if accuracy is None else check_whole(accuracy, "epoch"))
        self.criterion.level = self.level
        self._usage.most_turns = None  # it has not been forgotten

    def _step_to(self, epoch: int | None) -> None:
        """Go to an epoch whose level is known ahead."""
        epoch = self.epoch + 1 if epoch is None else epoch
        if epoch < 0:
            raise ValueError(f"epoch must be 0 or more. Got {epoch}.")
        self.epoch = epoch

    def _step_by(self, accuracy: float | None, epoch: int | None) -> None:
        """Go to the next epoch, and to the next level if this one has taught what it can."""
        if epoch is not None:
            raise ValueError(
                "with patience the level of an epoch is not known ahead; step(accuracy) after "
                "each epoch, or load_state_dict to go on from an earlier one."
            )
        if accuracy is None and not self.is_finest:
            raise ValueError(
                "with patience, step needs the validation accuracy at the level: "
                "curriculum.step(level_accuracy(model, batches, criterion))."
            )
        accuracy = 0.0 if accuracy is None else check_accuracy(accuracy)
        self.epoch += 1
        if self.is_finest:
            return
        self._plateau.note(accuracy)
        latest = self._latest
        is_late = bool(latest) and self.epoch >= latest[self.level]
        if is_late or self._plateau.is_reached(self._patience or 0):
            self.boundaries, self._plateau = (*self.boundaries, self.epoch), Plateau()

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to continue, including the hierarchy, as plain values."""
        state = {
            "epoch": self.epoch,
            "boundaries": list(self.boundaries),
            "hierarchy": self._hierarchy.to_dict(),
        }
        return {**state, "plateau": asdict(self._plateau)} if self.is_adaptive else state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned, and set the loss to its level."""
        if "boundaries" in state and ("plateau" in state) != self.is_adaptive:
            given, wanted = ("a fixed length", "patience")[:: -1 if self.is_adaptive else 1]
            raise ValueError(
                f"the state is one of a curriculum with {wanted}, and this one has {given}; go on "
                f"with {wanted}, or start anew."
            )
        missing = {"epoch", "boundaries", "hierarchy"} - state.keys()
        if missing:
            raise ValueError(f"not a curriculum's state: it lacks {', '.join(sorted(missing))}.")
        hierarchy = Hierarchy.from_dict(state["hierarchy"])
        classes = self._hierarchy.num_classes
        if hierarchy.num_classes != classes:
            raise ValueError(
                f"the state's hierarchy has {hierarchy.num_classes} classes, the loss {classes}."
            )
        finest = len(hierarchy.levels) - 1
        known = min(len(state["boundaries"]), finest) if self.is_adaptive else finest
        boundaries = _check_boundaries(state["boundaries"], known)
        # An equal hierarchy stays: setting it would throw away what the loss has prepared for it.
        if hierarchy != self._hierarchy:
            self.criterion.hierarchy = hierarchy
        self.boundaries = boundaries
        self._plateau = Plateau(**state.get("plateau", {}))
        self._step_to(state["epoch"])
        self.criterion.level = self.level
        self._usage.most_turns = None

    @property
    def _latest(self) -> tuple[int, ...]:
        """When each coarse level must be left at the latest; empty where it need not be."""
        return _latest_boundaries(*self._total_and_share, self._finest)

    @property
    def _finest(self) -> int:
        """The finest level."""
        return len(self._hierarchy.levels) - 1

    @property
    def _hierarchy(self) -> Hierarchy:
        return _hierarchy_of(self.criterion)

    def __repr__(self) -> str:
        return f"Curriculum(boundaries={self.boundaries}, epoch={self.epoch}, level={self.level})"


@torch.no_grad()
def level_accuracy(
    model: nn.Module, batches: Iterable[tuple[Tensor, Tensor]], criterion: LevelLoss
) -> float:
    """Return a model's accuracy at the level that a loss is at, for `Curriculum.step`.

    A sample counts as right when the most probable cluster is that of its target. The model is
    in eval mode meanwhile. Where torch.distributed is in use, each process looks at its own
    batches, and all get the accuracy over all of them.

    Args:
        model: Gives what the criterion takes: logits of shape (N, K) or (N, K, d1, ...), or
            features for a `CoarseToFineLinearLoss`.
        batches: Pairs of inputs and targets as the loss takes them, such as a DataLoader of the
            validation samples gives; they are moved to the model's device.
        criterion: Whose level it is. Targets that it ignores do not count, nor do those that
            are coarser than the level.

    Examples:
        >>> from coarse2fine import CoarseToFineLoss
        >>> criterion = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 1, 1]]))
        >>> logits, targets = torch.eye(4), torch.tensor([1, 1, 1, 3])
        >>> level_accuracy(nn.Identity(), [(logits, targets)], criterion)
        0.75
        >>> criterion.level = 1
        >>> level_accuracy(nn.Identity(), [(logits, targets)], criterion)
        0.5
    """
    hierarchy = _hierarchy_of(criterion)
    clusters = torch.tensor(hierarchy.levels[criterion.level])
    first = next(model.parameters(), None)
    device = torch.device("cpu") if first is None else first.device
    tally, was_training = Tally(clusters.to(device), hierarchy.nodes), model.training
    model.eval()
    try:
        for inputs, targets in batches:
            criterion._count(tally, model(inputs.to(device)), targets.to(device))
    finally:
        model.train(was_training)
    accuracy = tally.accuracy()
    if accuracy is None:
        raise ValueError("there are no samples to measure the accuracy on.")
    return accuracy


def _hierarchy_of(criterion: LevelLoss) -> Hierarchy:
    if criterion.hierarchy is None:
        raise ValueError("the criterion has no hierarchy; set criterion.hierarchy first.")
    return criterion.hierarchy


def _warn_if_never_stepped(usage: Usage) -> None:
    if usage.most_turns is not None and usage.losses > _MANY:
        usage.warn(f"though its loss was computed {usage.losses} times")


def equal_shares(length: int, levels: int) -> tuple[int, ...]:
    """Return when each level but the coarsest begins, all having an equal share of `length`.

    Algorithm 3 of the paper gives each level round(T / M) epochs, which need not add up to T.
    Here each boundary is rounded by itself, so that no error accumulates, and every coarse
    level lasts at least one epoch.

    Examples:
        >>> equal_shares(11, 3)
        (4, 7)
        >>> equal_shares(1, 3)
        (1, 2)
    """
    boundaries: list[int] = []
    for level in range(1, levels):
        # level · length / levels, rounded half up in whole numbers: no float can be off by one.
        rounded = (2 * level * length + levels) // (2 * levels)
        boundaries.append(max(rounded, (boundaries[-1] if boundaries else 0) + 1))
    return tuple(boundaries)


# ------------------------------------------------------------------------------ checks


def _check_patience(patience: Any, share: float) -> int:
    epochs: int = check_whole(patience, "patience")
    if epochs < 1:
        raise ValueError(f"patience must be at least 1. Got {epochs}.")
    if not 0 <= share < 1:
        raise ValueError(f"share must be at least 0 and less than 1. Got {share}.")
    return epochs


def _latest_boundaries(total: int | None, share: float, coarse: int) -> tuple[int, ...]:
    """Return when each coarse level must be left at the latest; nothing where it need not be."""
    if total is None or not coarse:
        return ()
    most = int(share * total)
    before = equal_shares(most, coarse)
    return (*before, max(most, *before, coarse))


def _check_length(given: Any, coarse: int, unit: str) -> int:
    length = check_whole(given, unit)
    if length < 1:
        raise ValueError(
            f"{unit} must be at least 1. Got {length}. For training without a curriculum use "
            f"torch.nn.CrossEntropyLoss."
        )
    if length < coarse:
        warnings.warn(
            f"The curriculum of {length} {unit} is shorter than the hierarchy's {coarse} "
            f"coarse levels; each of them gets one, so the finest begins at {coarse}. "
            f"Hierarchy.max_levels({length + 1}) would keep to {length}.",
            stacklevel=3,
        )
    return length


def _check_boundaries(boundaries: Iterable[int], coarse: int) -> tuple[int, ...]:
    boundaries = tuple(boundaries)
    if any(not isinstance(at, int) or isinstance(at, bool) for at in boundaries):
        raise TypeError(f"boundaries must be integers. Got {boundaries}.")
    rising = all(a < b for a, b in zip((0, *boundaries), boundaries, strict=False))
    if len(boundaries) != coarse or not rising:
        raise ValueError(
            f"boundaries must be {coarse} rising epochs from 1 on, the beginning of each level "
            f"after the coarsest. Got {boundaries}."
        )
    return boundaries
