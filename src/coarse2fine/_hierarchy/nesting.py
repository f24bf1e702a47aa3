"""The classes in an order in which every cluster of every level is in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._util.arrays import IntArray


def nested_order(levels: Sequence[Any], count: int) -> IntArray:
    """Return the classes by their clusters from the coarsest level to the finest.

    Args:
        levels: The levels above the classes, coarsest first, each class → cluster.
        count: How many classes there are.

    Examples:
        >>> nested_order([[0, 1, 0, 1], [0, 1, 0, 2]], 4).tolist()
        [0, 2, 1, 3]
    """
    # lexsort takes its last key first, so that is the coarsest level; the classes themselves,
    # its first key, break ties.
    return np.lexsort((np.arange(count), *reversed([np.asarray(level) for level in levels])))


def edges(level: Any, order: IntArray) -> list[int]:
    """Return where the clusters of a level begin in that order, and the end of the last.

    Args:
        level: Each class → cluster.
        order: See `nested_order`.

    Examples:
        >>> edges([0, 1, 0, 1], nested_order([[0, 1, 0, 1]], 4))
        [0, 2, 4]
    """
    changes = np.flatnonzero(np.diff(np.asarray(level)[order])) + 1
    return [0, *changes.tolist(), len(order)]
