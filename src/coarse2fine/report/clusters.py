"""Classes and clusters in the order of a hierarchy, and their accuracies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import Array, IntArray
from ..figures.values import Confusions, Layout, percentages
from .mistakes import DECIMALS, Change, Mistake

MOST_PAIRS = 5  # of a cluster


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
    layout: Layout, before: Confusions | None, after: Confusions, change: Change
) -> list[Clusters]:
    """Return what is shown of the clusters of each level above the classes.

    Args:
        layout: The order of the classes.
        before: Of the baseline; None where there is none.
        after: Of the method.
        change: The mistakes of both.
    """
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
    return change.most_frequent(cells, clusters, int(owner[-1]) + 1, MOST_PAIRS)
