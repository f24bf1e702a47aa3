"""Which level is trained at which epoch, and for how long in all (T)."""

from __future__ import annotations

import warnings
import weakref
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any

from ._util.arrays import check_whole
from .hierarchy import Hierarchy
from .loss import CoarseToFineLoss, Usage

_MANY = 100  # losses without a step: more than anybody computes just to try the loss


class Curriculum:
    """Moves a loss from the coarsest to the finest level, like a learning-rate scheduler.

    Each of the M levels gets an equal share of T, and every coarse level at least one epoch
    (Algorithm 3 of the paper); the finest lasts as long as training does. The level depends
    on the epoch alone, so that a resumed run continues where it stopped.

    Args:
        criterion: The loss; it is set to the level of epoch 0.
        epochs: T, the length of the curriculum in epochs; `step` is called after each.
        steps: T in optimiser steps instead; `step` is called after each of those.
        boundaries: Instead of either, the epochs (or steps) at which the levels 1, 2, ...
            begin, one for each level but the coarsest.
        total_epochs: How many epochs (or steps) training takes in all; a curriculum that would
            not reach the classes before is refused. Defaults to None: it is not checked.

    Warns:
        UserWarning: `step` is never called, though the loss is used for many epochs.

    Attributes:
        boundaries: The epochs (or steps) at which the levels 1, 2, ... begin.
        epoch: How many epochs (or steps) have been done.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 0, 0, 1], [0, 0, 1, 1, 2]])
        >>> curriculum = Curriculum(CoarseToFineLoss(hierarchy), epochs=6)
        >>> [curriculum.level_at(epoch) for epoch in range(8)]
        [0, 0, 1, 1, 2, 2, 2, 2]
    """

    def __init__(
        self,
        criterion: CoarseToFineLoss,
        epochs: int | None = None,
        *,
        steps: int | None = None,
        boundaries: Iterable[int] | None = None,
        total_epochs: int | None = None,
    ) -> None:
        if not isinstance(criterion, CoarseToFineLoss):
            raise TypeError(
                f"criterion must be a CoarseToFineLoss. Got {type(criterion).__name__}."
            )
        if sum(given is not None for given in (epochs, steps, boundaries)) != 1:
            raise ValueError("give exactly one of epochs, steps and boundaries.")
        self.criterion = criterion
        levels = len(self._hierarchy.levels)
        if boundaries is not None:
            self.boundaries = _check_boundaries(boundaries, levels)
        else:
            unit, length = ("epochs", epochs) if steps is None else ("steps", steps)
            self.boundaries = equal_shares(_check_length(length, levels, unit), levels)
        if total_epochs is not None and self.finest_epoch >= total_epochs:
            raise ValueError(
                f"the classes would be trained from epoch {self.finest_epoch + 1} on, and there "
                f"are {total_epochs} in all, so they would never be reached; give fewer epochs "
                f"to the curriculum, or fewer levels by Hierarchy.max_levels."
            )
        self.epoch = 0
        self.criterion.level = 0
        # Shared with the loss, which counts its uses, so that a loop without `step` is noticed.
        self._usage = criterion._usage = Usage(2 * self.finest_epoch or None)
        weakref.finalize(self, _warn_if_never_stepped, self._usage)

    @property
    def level(self) -> int:
        """The level in force."""
        return self.level_at(self.epoch)

    @property
    def finest_epoch(self) -> int:
        """The epoch (or step), counted from 0, at which the finest level begins."""
        return max(self.boundaries, default=0)

    @property
    def is_finest(self) -> bool:
        """Whether the curriculum is over: the level in force is the finest."""
        return self.level == len(self.boundaries)

    def level_at(self, epoch: int) -> int:
        """Return the level of an epoch, counted from 0."""
        return bisect_right(self.boundaries, epoch)

    def step(self, epoch: int | None = None) -> None:
        """Go on to the next epoch, or to the given one, and set the loss to its level.

        Args:
            epoch: Counted from 0. Defaults to None: the next one.
        """
        epoch = self.epoch + 1 if epoch is None else epoch
        if epoch < 0:
            raise ValueError(f"epoch must be 0 or more. Got {epoch}.")
        self.epoch = epoch
        self.criterion.level = self.level
        self._usage.most_turns = None  # it has not been forgotten

    def state_dict(self) -> dict[str, Any]:
        """Return all that is needed to continue, including the hierarchy, as plain values."""
        return {
            "epoch": self.epoch,
            "boundaries": list(self.boundaries),
            "hierarchy": self._hierarchy.to_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned, and set the loss to its level."""
        missing = {"epoch", "boundaries", "hierarchy"} - state.keys()
        if missing:
            raise ValueError(f"not a curriculum's state: it lacks {', '.join(sorted(missing))}.")
        hierarchy = Hierarchy.from_dict(state["hierarchy"])
        classes = self._hierarchy.num_classes
        if hierarchy.num_classes != classes:
            raise ValueError(
                f"the state's hierarchy has {hierarchy.num_classes} classes, the loss {classes}."
            )
        boundaries = _check_boundaries(state["boundaries"], len(hierarchy.levels))
        # An equal hierarchy stays: setting it would throw away what the loss has prepared for it.
        if hierarchy != self._hierarchy:
            self.criterion.hierarchy = hierarchy
        self.boundaries = boundaries
        self.step(state["epoch"])

    @property
    def _hierarchy(self) -> Hierarchy:
        if self.criterion.hierarchy is None:
            raise ValueError("the criterion has no hierarchy; set criterion.hierarchy first.")
        return self.criterion.hierarchy

    def __repr__(self) -> str:
        return f"Curriculum(boundaries={self.boundaries}, epoch={self.epoch}, level={self.level})"


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


# ------------------------------------------------------------------------- rules for T


def epochs_to_reach(accuracies: Sequence[float], fraction: float = 0.9) -> int:
    """Return after how many epochs a baseline reached a fraction of its best accuracy.

    This is the rule for T in the paper's text.

    Args:
        accuracies: The baseline's validation accuracy after each epoch.
        fraction: Defaults to 0.9.

    Examples:
        >>> epochs_to_reach([0.2, 0.5, 0.56, 0.6, 0.58])
        3
    """
    _check_accuracies(accuracies)
    threshold = fraction * max(accuracies)
    return next(index for index, value in enumerate(accuracies, 1) if value >= threshold)


def share_of_best_epoch(accuracies: Sequence[float], fraction: float = 0.9) -> int:
    """Return a fraction of the epoch at which a baseline was best, rounded, at least 1.

    This is the rule for T in the paper's Algorithm 3. Of equal accuracies the first is the best.

    Args:
        accuracies: The baseline's validation accuracy after each epoch.
        fraction: Defaults to 0.9.

    Examples:
        >>> share_of_best_epoch([0.2, 0.5, 0.56, 0.6, 0.58])
        4
    """
    _check_accuracies(accuracies)
    best = max(range(len(accuracies)), key=lambda index: accuracies[index]) + 1
    return max(1, int(fraction * best + 0.5))  # half up, where round() would go to even


def best_candidate(candidates: Sequence[int], accuracies: Sequence[float]) -> int:
    """Return the curriculum length with the best validation accuracy, the shortest of equals.

    The paper's rule for T for its large models, each of which it trained with every candidate.

    Args:
        candidates: Curriculum lengths; the paper's are 5, 10, 20, 30, 40 and 50.
        accuracies: The best validation accuracy with a curriculum of each length.

    Examples:
        >>> best_candidate([5, 10, 20], [0.61, 0.64, 0.63])
        10
    """
    _check_accuracies(accuracies)
    if len(candidates) != len(accuracies):
        raise ValueError(
            f"there must be one accuracy for each of the {len(candidates)} candidates. Got "
            f"{len(accuracies)}."
        )
    return min(zip(candidates, accuracies, strict=True), key=lambda pair: (-pair[1], pair[0]))[0]


def capped_length(length: int, epochs: int) -> int:
    """Return `length`, but at most a third of the epochs, with a warning if that is less.

    If the baseline has not levelled off, its best epoch is among the last, and the rules for T
    would leave hardly any epochs for the target classes.

    Args:
        length: T by one of the rules.
        epochs: How many epochs training is allowed in all.
    """
    cap = max(1, epochs // 3)
    if length <= cap:
        return length
    warnings.warn(
        f"The curriculum would take {length} of {epochs} epochs, as the baseline was slow to "
        f"level off; it is cut to a third of them, {cap}. Train for longer to avoid this.",
        stacklevel=2,
    )
    return cap


def _check_accuracies(accuracies: Sequence[float]) -> None:
    if not len(accuracies):
        raise ValueError("accuracies must hold at least one epoch. Got none.")
    for index, value in enumerate(accuracies):
        if value != value:  # NaN, which compares as neither smaller nor larger
            raise ValueError(f"accuracies[{index}] is nan.")


def _check_length(given: Any, levels: int, unit: str) -> int:
    length = check_whole(given, unit)
    if length < 1:
        raise ValueError(
            f"{unit} must be at least 1. Got {length}. For training without a curriculum use "
            f"torch.nn.CrossEntropyLoss."
        )
    if length < levels - 1:
        warnings.warn(
            f"The curriculum of {length} {unit} is shorter than the hierarchy's {levels - 1} "
            f"coarse levels; each of them gets one, so the finest begins at {levels - 1}. "
            f"Hierarchy.max_levels({length + 1}) would keep to {length}.",
            stacklevel=3,
        )
    return length


def _check_boundaries(boundaries: Iterable[int], levels: int) -> tuple[int, ...]:
    boundaries = tuple(boundaries)
    if any(not isinstance(at, int) or isinstance(at, bool) for at in boundaries):
        raise TypeError(f"boundaries must be integers. Got {boundaries}.")
    rising = all(a < b for a, b in zip((0, *boundaries), boundaries, strict=False))
    if len(boundaries) != levels - 1 or not rising:
        raise ValueError(
            f"boundaries must be {levels - 1} rising epochs from 1 on, the beginning of each level "
            f"after the coarsest. Got {boundaries}."
        )
    return boundaries
