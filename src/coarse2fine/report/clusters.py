"""Classes and clusters in the order of a hierarchy: accuracies, confusions, mistakes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._arrays import Array, IntArray
from .._nesting import edges, nested_order
from ..hierarchy import Hierarchy
from ..training.views import Confusions, count_confusions
from .runs import FinishedRun

MOST_PAIRS = 5  # of a cluster
MOST_MISTAKES = 20  # that got better, or worse
MOST_CLUSTERS = 1_500  # of a confusion matrix that can be looked at
DECIMALS = 3


def plain_values(values: Any, decimals: int = DECIMALS) -> list[Any]:
    """Return numbers as a list, rounded, with None for nan, which JSON does not have.

    Examples:
        >>> plain_values([1.23456, float("nan")])
        [1.235, None]
    """
    rounded = np.round(np.asarray(values, dtype=float), decimals)
    return [None if np.isnan(value) else value for value in rounded.tolist()]


class Layout:
    """The classes side by side so that every cluster is in one piece.

    Args:
        hierarchy: Whose clusters these are.

    Attributes:
        order: The class at each position.
        position: The position of each class.
        edges: Where the clusters of each level above the classes begin, coarsest first, and
            the end of the last.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        levels, count = hierarchy.levels[:-1], hierarchy.num_classes
        self.hierarchy, self.order = hierarchy, nested_order(levels, count)
        self.position = np.empty(count, np.int64)
        self.position[self.order] = np.arange(count)
        self.edges = [edges(level, self.order) for level in levels]

    @cached_property
    def owners(self) -> list[IntArray]:
        """For each level above the classes the cluster of every position, from 0."""
        return [np.repeat(np.arange(len(cuts) - 1), np.diff(cuts)) for cuts in self.edges]

    def levels(self) -> list[dict[str, Any]]:
        """Return the edges and the names of the clusters of each level above the classes."""
        names = self.hierarchy.cluster_names
        return [
            {"edges": cuts, "names": names and [names[at][place] for place in self._ids(at)]}
            for at, cuts in enumerate(self.edges)
        ]

    def _ids(self, level: int) -> list[int]:
        """Return what the hierarchy numbers the clusters of a level."""
        ids: list[int] = self.hierarchy.levels[level][self.order[self.edges[level][:-1]]].tolist()
        return ids

    def counted(self, runs: Iterable[FinishedRun]) -> Confusions:
        """Return how often each position was predicted as each, over all runs."""
        pairs = zip(*(run.predictions for run in runs), strict=True)
        predictions, targets = (self.position[np.concatenate(part)] for part in pairs)
        return count_confusions(predictions, targets, len(self.order))


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
    before: IntArray | None
    after: IntArray
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
    def most(self) -> IntArray:
        """The larger of both counts."""
        return self.after if self.before is None else np.maximum(self.before, self.after)

    def with_rates(self, cells: IntArray) -> list[list[Any]]:
        """Return some cells, the counts as percentages of the true class."""
        samples = self.samples[self.rows[cells]]
        counts = (self.before, self.after)
        rates = [
            [None] * len(cells) if found is None else plain_values(100 * found[cells] / samples)
            for found in counts
        ]
        return _listed(self.rows[cells].tolist(), self.columns[cells].tolist(), *rates)


def _counts_of(cells: IntArray, keys: IntArray, counts: IntArray) -> IntArray:
    """Return the counts of cells, 0 for those that are not among the sorted keys."""
    places = np.searchsorted(keys, cells).clip(max=max(len(keys) - 1, 0))
    return np.where(keys[places] == cells, counts[places], 0)


def _listed(*columns: list[Any]) -> list[list[Any]]:
    return [list(row) for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------------------- clusters


def cluster_values(
    layout: Layout, before: Confusions | None, after: Confusions
) -> list[dict[str, Any]]:
    """Return what is shown of the clusters of each level above the classes.

    Args:
        layout: The order of the classes.
        before: Of the baseline; None where there is none.
        after: Of the method.
    """
    change = Change.of(before, after)
    return [
        {
            "before": None if before is None else _within(owner, before),
            "after": _within(owner, after),
            "class_before": None if before is None else _hits(owner, before),
            "class_after": _hits(owner, after),
            "pairs": _most_confused(owner, change),
        }
        for owner in layout.owners
    ]


def _within(owner: IntArray, found: Confusions) -> list[Any]:
    """Return the percentage of each cluster's samples that were predicted within it."""
    is_within = owner[found.rows] == owner[found.columns]
    right = np.bincount(owner[found.rows], found.counts * is_within, minlength=owner[-1] + 1)
    return _percentages(right, owner, found)


def _hits(owner: IntArray, found: Confusions) -> list[Any]:
    """Return the percentage of each cluster's samples whose class was right."""
    return _percentages(np.bincount(owner, found.hits), owner, found)


def _percentages(right: Array, owner: IntArray, found: Confusions) -> list[Any]:
    samples = np.bincount(owner, found.samples)
    shares = np.full(len(samples), np.nan)
    np.divide(100 * right, samples, out=shares, where=samples > 0)
    return plain_values(shares)


def _most_confused(owner: IntArray, change: Change) -> list[list[list[Any]]]:
    """Return for each cluster the most frequent mistakes that begin or end in it."""
    begin, end = owner[change.rows], owner[change.columns]
    leaves = np.flatnonzero(begin != end)
    clusters = np.concatenate([begin, end[leaves]])
    cells = np.concatenate([np.arange(len(begin)), leaves])
    order = np.lexsort((cells, -change.most[cells], clusters))
    clusters, cells = clusters[order], cells[order]
    starts = np.searchsorted(clusters, np.arange(owner[-1] + 2))
    kept = np.arange(len(cells)) - starts[clusters] < MOST_PAIRS
    rows = change.with_rates(cells[kept])
    cuts = np.searchsorted(clusters[kept], np.arange(owner[-1] + 2)).tolist()
    return [rows[start:stop] for start, stop in pairwise(cuts)]


# ------------------------------------------------------------------------------- mistakes


def changed_mistakes(before: Confusions | None, after: Confusions) -> dict[str, Any]:
    """Return the mistakes that became most rarer and most more frequent, as counts.

    Args:
        before: Of the baseline; None where there is none, then no mistake is listed.
        after: Of the method.
    """
    change = Change.of(before, after)
    if change.before is None:
        return {"better": [], "worse": []}
    rise = change.after - change.before
    return {"better": _top(change, -rise), "worse": _top(change, rise)}


def _top(change: Change, score: IntArray) -> list[list[Any]]:
    """Return the mistakes of the highest scores above 0."""
    order = np.argsort(-score, kind="stable")[:MOST_MISTAKES]
    cells = order[score[order] > 0]
    before: Any = change.before
    columns = (change.rows, change.columns, before, change.after)
    return _listed(*(column[cells].tolist() for column in columns))


# ------------------------------------------------------------------------------ confusion


def confusion_values(
    layout: Layout, before: Confusions | None, after: Confusions
) -> dict[str, Any] | None:
    """Return the cells of the confusion matrix: of the classes, or of clusters if too many.

    None where the clusters of every level are too many, too.

    Args:
        layout: The order of the classes.
        before: Of the baseline; None where there is none.
        after: Of the method.
    """
    level = _matrix_level(layout)
    owner = np.arange(len(layout.order)) if level is None else layout.owners[level]
    if len(owner) and owner[-1] >= MOST_CLUSTERS:
        return None
    return {
        "level": level,
        "before": None if before is None else _cells(owner, before),
        "after": _cells(owner, after),
        "samples": np.bincount(owner, after.samples).astype(int).tolist(),
    }


def _matrix_level(layout: Layout) -> int | None:
    """Return the finest level that can be looked at, or the coarsest; None for the classes."""
    if len(layout.order) <= MOST_CLUSTERS or not layout.owners:
        return None
    sizes = [int(owner[-1]) + 1 for owner in layout.owners]
    return max(sum(size <= MOST_CLUSTERS for size in sizes) - 1, 0)


def _cells(owner: IntArray, found: Confusions) -> list[list[int]]:
    """Return rows, columns and counts of the cells that are not 0."""
    count = int(owner[-1]) + 1
    keys, places = np.unique(owner[found.rows] * count + owner[found.columns], return_inverse=True)
    counts = np.bincount(places, found.counts).astype(int)
    return [(keys // count).tolist(), (keys % count).tolist(), counts.tolist()]
