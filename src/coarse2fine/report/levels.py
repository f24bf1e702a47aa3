"""How good every method is at each level, and how bad its mistakes are."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .._scores import ratio
from .._util.arrays import Array, IntArray
from ..figures.values import flat_hierarchies
from ..hierarchy import Hierarchy
from ..metrics import mistake_heights
from .runs import Entry, FinishedRun


class Yardstick:
    """The hierarchy by which all methods are measured, whatever they were trained with.

    Where every seed has its own, but all of the same size, each seed is measured by its own;
    else all by the one that is shown, as levels of different sizes cannot be averaged.

    Args:
        entry: The method whose hierarchies these are.
        seed: Whose hierarchy is shown, where it has one.

    Attributes:
        seed: Whose hierarchy is shown.
        shown: That hierarchy; the classes alone where the method has none.
    """

    def __init__(self, entry: Entry, seed: int) -> None:
        found = {run.seed: run.hierarchy for run in entry.runs}
        hierarchies = {at: tree for at, tree in found.items() if tree is not None}
        self.label = entry.label
        self.seed = seed if seed in hierarchies else min(hierarchies, default=seed)
        self.shown = hierarchies.get(self.seed) or classes_alone(entry.runs[0].class_names)
        self._distinct = len(set(hierarchies.values()))
        is_alike = len({tree.num_clusters for tree in hierarchies.values()}) == 1
        self._own = hierarchies if is_alike else {}
        self._heights: dict[FinishedRun, Array] = {}

    def remarks(self) -> list[str]:
        """Return what to bear in mind where seeds have different hierarchies."""
        if self._distinct < 2:
            return []
        if self._own:
            sizes = " → ".join(map(str, self.shown.num_clusters))
            how = f"each seed is measured by its own, as all have {sizes} clusters"
        else:
            how = "all seeds are measured by that one, as the others have other sizes"
        shown = (
            f"Each seed of {self.label} has its own hierarchy; shown is that of seed {self.seed}"
        )
        return [f"{shown}, and for the accuracy at each level and the severity of mistakes {how}."]

    def level_hits(self, run: FinishedRun) -> tuple[IntArray, IntArray]:
        """Return for each level how many test predictions are right, and of how many."""
        return run.level_hits(self._own.get(run.seed, self.shown))

    def heights(self, run: FinishedRun) -> Array:
        """Return the percentage of test samples at each height, see `mistake_heights`."""
        if run not in self._heights:  # as several tables ask for it
            hierarchy = self._own.get(run.seed, self.shown)
            heights = mistake_heights(*run.predictions, hierarchy)
            counts = np.bincount(heights, minlength=len(hierarchy.levels) + 1)
            self._heights[run] = 100 * counts / max(len(heights), 1)
        return self._heights[run]


@dataclass(frozen=True, eq=False)
class LevelRow:
    """The accuracy of a method at each level, coarsest first, in percent.

    Args:
        label: Of the method.
        mean: Over its seeds.
        error: The standard error; None for a single seed.
    """

    label: str
    mean: Array
    error: Array | None


@dataclass(frozen=True)
class LevelAccuracies:
    """The accuracy of every method at each level.

    Args:
        num_clusters: Of each level, coarsest first; the last is the classes.
        rows: One a method.
        samples: How many count at each level, in the seed that is shown; empty where all do.
    """

    num_clusters: tuple[int, ...]
    rows: list[LevelRow]
    samples: list[int]


@dataclass(frozen=True, eq=False)
class Heights:
    """The percentage of test samples at each height, from 0 for the right ones.

    Args:
        before: By the baseline; None without one.
        after: By the method.
    """

    before: Array | None
    after: Array


@dataclass(frozen=True)
class Severities:
    """How bad mistakes are.

    Args:
        before: The mean height of the baseline's; None without any.
        after: That of the method's.
        heights: How many samples lie at each.
    """

    before: float | None
    after: float | None
    heights: Heights


def classes_alone(class_names: Sequence[str]) -> Hierarchy:
    """Return the hierarchy without a level above the classes."""
    with flat_hierarchies():
        return Hierarchy([np.arange(len(class_names))], class_names)


def severity_of(heights: Array) -> float:
    """Return the mean height of the mistakes; nan without any, or without levels.

    Args:
        heights: The percentage of samples at each height, see `Yardstick.heights`.

    Examples:
        >>> severity_of(np.array([50.0, 25.0, 25.0]))
        1.5
    """
    wrong = heights[1:]
    if len(wrong) < 2 or not wrong.sum():  # where all mistakes are equally bad, it tells nothing
        return float("nan")
    return float(np.arange(1, len(heights)) @ wrong / wrong.sum())


def mean_severity(yardstick: Yardstick, runs: Iterable[FinishedRun]) -> float | None:
    """Return the mean over runs of how bad their mistakes are; None where there are none."""
    found = [severity_of(yardstick.heights(run)) for run in runs]
    known = [value for value in found if not np.isnan(value)]
    return round(float(np.mean(known)), 4) if known else None


def severities(
    yardstick: Yardstick, before: Sequence[FinishedRun], after: Sequence[FinishedRun]
) -> Severities:
    """Return how bad mistakes are before and after, and how many samples lie at each height.

    Args:
        yardstick: What they are measured by.
        before: The baselines; none where there are none.
        after: The method's.
    """
    heights = Heights(
        _mean_heights(yardstick, before) if before else None, _mean_heights(yardstick, after)
    )
    return Severities(mean_severity(yardstick, before), mean_severity(yardstick, after), heights)


def _mean_heights(yardstick: Yardstick, runs: Sequence[FinishedRun]) -> Array:
    heights: Array = np.mean([yardstick.heights(run) for run in runs], axis=0)
    return heights


def level_accuracies(yardstick: Yardstick, entries: Iterable[Entry]) -> LevelAccuracies:
    """Return the accuracy of every method at each level, coarsest first.

    Args:
        yardstick: What they are measured by.
        entries: The methods.
    """
    entries = list(entries)
    rows = [_row(yardstick, entry) for entry in entries]
    counts = yardstick.level_hits(entries[0].runs[0])[1].tolist()
    is_mixed = min(counts) < max(counts)
    return LevelAccuracies(yardstick.shown.num_clusters, rows, counts if is_mixed else [])


def _row(yardstick: Yardstick, entry: Entry) -> LevelRow:
    hits = [yardstick.level_hits(run) for run in entry.runs]
    found = np.array([[100 * ratio(*pair) for pair in zip(*own, strict=True)] for own in hits])
    count = len(found)
    error = found.std(axis=0, ddof=1) / math.sqrt(count) if count > 1 else None
    return LevelRow(entry.label, found.mean(axis=0), error)
