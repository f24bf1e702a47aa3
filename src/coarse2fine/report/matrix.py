"""The confusion matrix: of the classes, or of clusters where those are too many."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._util.arrays import IntArray
from ..figures.counts import Confusions
from .clusters import Layout

MOST_CLUSTERS = 1_500  # of a matrix that can be looked at
Cells = tuple[IntArray, IntArray, IntArray]  # true, predicted, and how often; none is 0


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
