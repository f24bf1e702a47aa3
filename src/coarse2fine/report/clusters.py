"""Classes and clusters in the order of a hierarchy, and their accuracies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from .._hierarchy.nesting import edges, nested_order
from .._util.arrays import Array, IntArray
from ..figures.counts import Confusions, count_confusions, percentages
from ..hierarchy import Hierarchy
from .mistakes import DECIMALS, Change, Mistake
from .runs import FinishedRun

MOST_PAIRS = 5  # of a cluster


@dataclass(frozen=True)
class Level:
    """A level above the classes.

    Args:
        edges: The positions at which its clusters begin, and the end of the last.
        names: Of the clusters; None where they have none.
    """

    edges: list[int]
    names: list[str] | None

    @cached_property
    def owners(self) -> IntArray:
        """The cluster of every position, from 0."""
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))


class Layout:
    """The classes side by side so that every cluster is in one piece.

    Args:
        hierarchy: Whose clusters these are.

    Attributes:
        order: The class at each position.
        position: The position of each class.
        levels: Those above the classes, coarsest first.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        above, count = hierarchy.levels[:-1], hierarchy.num_classes
        self.hierarchy, self.order = hierarchy, nested_order(above, count)
        self.position = np.empty(count, np.int64)
        self.position[self.order] = np.arange(count)
        self.levels = [self._level(at) for at in range(len(above))]

    def _level(self, at: int) -> Level:
        level, names = self.hierarchy.levels[at], self.hierarchy.cluster_names
        cuts = edges(level, self.order)
        clusters = level[self.order[cuts[:-1]]].tolist()
        return Level(cuts, None if names is None else [names[at][one] for one in clusters])

    def counted(self, runs: Iterable[FinishedRun]) -> Confusions:
        """Return how often each position was predicted as each, over all runs."""
        pairs = zip(*(run.predictions for run in runs), strict=True)
        predictions, targets = (self.position[np.concatenate(part)] for part in pairs)
        return count_confusions(predictions, targets, len(self.order))


# -------------------------------------------------------------------------------- classes


@dataclass(frozen=True, eq=False)
class Classes:
    """Every class, by position.

    Args:
        names: Of the classes.
        index: Which class it is in the data.
        samples: How many test samples it has.
        before: The baseline's accuracy in percent, nan without samples; None without a baseline.
        after: The method's.
    """

    names: list[str]
    index: IntArray
    samples: IntArray
    before: Array | None
    after: Array

    @property
    def gains(self) -> Array | None:
        """In percentage points; None without a baseline."""
        return _gains(self.before, self.after)


def _gains(before: Array | None, after: Array) -> Array | None:
    """Return the change, rounded so that equal gains do not differ by errors of rounding."""
    return None if before is None else np.round(after - before, DECIMALS)


def class_accuracies(layout: Layout, before: Confusions | None, after: Confusions) -> Classes:
    """Return how good the baseline, where there is one, and the method are at each class."""
    names = layout.hierarchy.class_names or ()
    return Classes(
        [names[index] for index in layout.order.tolist()],
        layout.order,
        after.samples,
        None if before is None else before.accuracies,
        after.accuracies,
    )


# ------------------------------------------------------------------------------- clusters


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of a level, with accuracies in percent: nan without samples.

    Args:
        before: How many of its samples the baseline predicted within the cluster; None without
            a baseline.
        after: How many the method did.
        class_before: How many of its samples the baseline predicted as the right class.
        class_after: How many the method did.
        pairs: For each the most frequent mistakes that begin or end in it, in percent.
    """

    before: Array | None
    after: Array
    class_before: Array | None
    class_after: Array
    pairs: list[list[Mistake]]

    @property
    def gains(self) -> Array | None:
        """Of the right class, in percentage points; None without a baseline."""
        return _gains(self.class_before, self.class_after)


def cluster_accuracies(
    layout: Layout, before: Confusions | None, after: Confusions
) -> list[Clusters]:
    """Return what is shown of the clusters of each level above the classes.

    Args:
        layout: The order of the classes.
        before: Of the baseline; None where there is none.
        after: Of the method.
    """
    change = Change.of(before, after)
    return [
        Clusters(
            None if before is None else before.grouped(level.owners).accuracies,
            after.grouped(level.owners).accuracies,
            None if before is None else _right_class(level.owners, before),
            _right_class(level.owners, after),
            _most_confused(level.owners, change),
        )
        for level in layout.levels
    ]


def _right_class(owners: IntArray, found: Confusions) -> Array:
    """Return the percentage of each cluster's samples whose class was right."""
    return percentages(np.bincount(owners, found.hits), np.bincount(owners, found.samples))


def _most_confused(owner: IntArray, change: Change) -> list[list[Mistake]]:
    """Return for each cluster the most frequent mistakes that begin or end in it."""
    begin, end = owner[change.rows], owner[change.columns]
    leaves = np.flatnonzero(begin != end)
    clusters = np.concatenate([begin, end[leaves]])
    cells = np.concatenate([np.arange(len(begin)), leaves])
    order = np.lexsort((cells, -change.most[cells], clusters))
    clusters, cells = clusters[order], cells[order]
    starts = np.searchsorted(clusters, np.arange(owner[-1] + 2))
    kept = np.arange(len(cells)) - starts[clusters] < MOST_PAIRS
    mistakes = change.rates().listed(cells[kept])
    cuts = np.searchsorted(clusters[kept], np.arange(owner[-1] + 2)).tolist()
    return [mistakes[start:stop] for start, stop in pairwise(cuts)]
