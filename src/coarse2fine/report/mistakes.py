"""Which classes are taken for which, before and after: the matrix, and what changed most."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, starmap
from typing import NamedTuple

import numpy as np

from .._util.arrays import Array, IntArray
from ..figures.values import Confusions, Layout

MOST_MISTAKES = 20  # that got better, or worse
MOST_OF_A_CLASS = 8
DECIMALS = 3  # of percentages
MOST_CLUSTERS = 1_500  # of a matrix that can be looked at
Cells = tuple[IntArray, IntArray, IntArray]  # true, predicted, and how often; none is 0


class Mistake(NamedTuple):
    """A class that was taken for another, and how often.

    Args:
        truth: The position of the true class.
        predicted: That of the predicted one.
        before: The baseline's count, or percentage of the true class; None without a baseline.
        after: The method's.
    """

    truth: int
    predicted: int
    before: float | None
    after: float


@dataclass(frozen=True)
class Mistakes:
    """The mistakes that changed most, as counts.

    Args:
        better: Those that became rarer.
        worse: Those that became more frequent.
    """

    better: list[Mistake]
    worse: list[Mistake]


class Change(NamedTuple):
    """Confusions of the same samples before and after, cell by cell.

    Args:
        rows: The true positions.
        columns: The predicted positions.
        before: How often; None without a baseline.
        after: How often.
        samples: How many samples each position has.
    """

    rows: IntArray
    columns: IntArray
    before: Array | None
    after: Array
    samples: IntArray

    @classmethod
    def of(cls, before: Confusions | None, after: Confusions) -> Change:
        """Return the mistakes that either made."""
        count = after.num_classes
        given = [found for found in (before, after) if found is not None]
        keys = [found.rows * count + found.columns for found in given]
        cells = np.unique(np.concatenate(keys))
        cells = cells[cells // count != cells % count]
        counts = [_counts_of(cells, key, f.counts) for key, f in zip(keys, given, strict=True)]
        first = None if before is None else counts[0]
        return cls(cells // count, cells % count, first, counts[-1], after.samples)

    @property
    def most(self) -> Array:
        """The larger of before and after."""
        return self.after if self.before is None else np.maximum(self.before, self.after)

    def rates(self) -> Change:
        """Return the same, with percentages of the true class for counts."""
        samples = self.samples[self.rows] / 100
        before = None if self.before is None else np.round(self.before / samples, DECIMALS)
        return self._replace(before=before, after=np.round(self.after / samples, DECIMALS))

    def most_frequent(
        self, cells: IntArray, groups: IntArray, count: int, most: int
    ) -> list[list[Mistake]]:
        """Return the most frequent mistakes of each group, in percent.

        Args:
            cells: Some of the cells.
            groups: The group that each of them is in, from 0.
            count: How many groups there are.
            most: How many mistakes of each.
        """
        order = np.lexsort((cells, -self.most[cells], groups))
        groups, cells = groups[order], cells[order]
        starts = np.searchsorted(groups, np.arange(count + 1))
        kept = np.arange(len(cells)) - starts[groups] < most
        mistakes = self.rates().listed(cells[kept])
        cuts = np.searchsorted(groups[kept], np.arange(count + 1)).tolist()
        return [mistakes[start:stop] for start, stop in pairwise(cuts)]

    def listed(self, cells: IntArray) -> list[Mistake]:
        """Return some of the cells."""
        before = [None] * len(cells) if self.before is None else self.before[cells].tolist()
        columns = (self.rows[cells].tolist(), self.columns[cells].tolist(), before)
        return list(starmap(Mistake, zip(*columns, self.after[cells].tolist(), strict=True)))


def _counts_of(cells: IntArray, keys: IntArray, counts: IntArray) -> IntArray:
    """Return the counts of cells, 0 for those that are not among the sorted keys."""
    places = np.searchsorted(keys, cells).clip(max=max(len(keys) - 1, 0))
    return np.where(keys[places] == cells, counts[places], 0)


def mistakes_by_class(change: Change) -> list[list[Mistake]]:
    """Return for each class what it was most often taken for, in percent."""
    every = np.arange(len(change.rows))
    return change.most_frequent(every, change.rows, len(change.samples), MOST_OF_A_CLASS)


def changed_mistakes(change: Change) -> Mistakes:
    """Return the mistakes that became most rarer and most more frequent; none without baseline."""
    if change.before is None:
        return Mistakes([], [])
    rise = change.after - change.before
    return Mistakes(change.listed(_top(-rise)), change.listed(_top(rise)))


def _top(score: Array) -> IntArray:
    """Return the cells of the highest scores above 0."""
    order = np.argsort(-score, kind="stable")[:MOST_MISTAKES]
    return order[score[order] > 0]


# ------------------------------------------------------------------------------- matrix


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """What is taken for what.

    Args:
        level: Whose clusters are counted; None for the classes.
        before: By the baseline; None without one.
        after: By the method.
        samples: How many test samples each class or cluster has.
    """

    level: int | None
    before: Cells | None
    after: Cells
    samples: IntArray


def confusion_matrix(
    layout: Layout, before: Confusions | None, after: Confusions
) -> ConfusionMatrix | None:
    """Return the matrix; None where the clusters of every level are too many, too.

    Args:
        layout: The order of the classes.
        before: Of the baseline; None where there is none.
        after: Of the method.
    """
    level = _finest_level(layout)
    owners = np.arange(len(layout.order)) if level is None else layout.levels[level].owners
    if owners[-1] >= MOST_CLUSTERS:
        return None
    first = None if before is None else _cells(before.grouped(owners))
    last = after.grouped(owners)
    return ConfusionMatrix(level, first, _cells(last), last.samples)


def _finest_level(layout: Layout) -> int | None:
    """Return the finest level that can be looked at, or the coarsest; None for the classes."""
    if len(layout.order) <= MOST_CLUSTERS or not layout.levels:
        return None
    sizes = [len(level.edges) - 1 for level in layout.levels]
    return max(sum(size <= MOST_CLUSTERS for size in sizes) - 1, 0)


def _cells(found: Confusions) -> Cells:
    return found.rows, found.columns, found.counts
