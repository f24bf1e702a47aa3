"""Whether two models hold the same classes for similar: their distances, and their levels."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._util.arrays import IntArray, to_integers
from .clustering import check_distances
from .hierarchy import Hierarchy


def distance_correlation(one: Any, other: Any) -> float:
    """Return Spearman's rank correlation of the distances between classes.

    Every pair of classes counts once. 1 means that both have all pairs in the same order, which
    is all that clustering depends on.

    Args:
        one: A K×K matrix, see `class_distances`.
        other: Another, of the same classes in the same order.

    Returns:
        From -1 to 1; nan where all distances of a matrix are equal.

    Examples:
        >>> one = [[0, 1, 2], [1, 0, 3], [2, 3, 0]]
        >>> other = [[0, 1, 9], [1, 0, 5], [9, 5, 0]]  # the order 1, 3, 2 instead of 1, 2, 3
        >>> round(distance_correlation(one, other), 3)
        0.5
    """
    from scipy.stats import rankdata

    matrices = [check_distances(one), check_distances(other)]
    _check_same_classes(*map(len, matrices))
    pairs = np.triu_indices(len(matrices[0]), 1)
    ranks = np.array([rankdata(matrix[pairs]) for matrix in matrices])
    if not ranks.size or (np.ptp(ranks, axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def adjusted_rand_index(one: Any, other: Any) -> float:
    """Return how far two partitions agree, corrected for chance (Hubert and Arabie, 1985).

    Of all pairs of classes it counts those that both put together. It is scikit-learn's
    ``adjusted_rand_score``.

    Args:
        one: The cluster of each class, as integers.
        other: The same in another partition.

    Returns:
        1 where they are the same, about 0 where they agree by chance alone.

    Examples:
        >>> adjusted_rand_index([0, 0, 1, 1], [5, 5, 3, 3])
        1.0
        >>> round(adjusted_rand_index([0, 0, 1, 1], [0, 0, 1, 2]), 3)
        0.571
    """
    first, second = to_integers(one, "one").ravel(), to_integers(other, "other").ravel()
    _check_same_classes(len(first), len(second))
    parts = [np.unique(it, return_inverse=True, return_counts=True)[1:] for it in (first, second)]
    # One number for each pair of clusters, as numpy is slow to sort pairs.
    (rows, own_rows), (columns, own_columns) = parts
    both = rows * len(own_columns) + columns
    together = _pairs(np.unique(both, return_counts=True)[1])
    own = [_pairs(own_rows), _pairs(own_columns)]
    every = _pairs(np.array([len(first)]))
    by_chance = own[0] * own[1] / every if every else 0.0
    most = sum(own) / 2
    return 1.0 if most == by_chance else float((together - by_chance) / (most - by_chance))


def level_agreements(one: Hierarchy, other: Hierarchy) -> tuple[float, ...]:
    """Return the adjusted Rand index of the levels that two hierarchies both have.

    Levels are counted from the classes on, as clustering makes them.

    Args:
        one: A hierarchy.
        other: Another, of the same classes in the same order.

    Returns:
        One for each level, the finest first; the classes themselves are left out.

    Examples:
        >>> one = Hierarchy.from_levels([[0, 0, 0, 1], [0, 0, 1, 2]])
        >>> other = Hierarchy.from_levels([[0, 0, 1, 2]])
        >>> level_agreements(one, other)
        (1.0,)
    """
    _check_same_classes(one.num_classes, other.num_classes)
    coarse = (reversed(hierarchy.levels[:-1]) for hierarchy in (one, other))
    return tuple(adjusted_rand_index(*pair) for pair in zip(*coarse, strict=False))


def _pairs(counts: IntArray) -> int:
    """Return how many pairs there are within groups of so many."""
    return int((counts * (counts - 1) // 2).sum())


def _check_same_classes(one: int, other: int) -> None:
    if one != other:
        raise ValueError(f"both must be of the same classes. Got {one} and {other}.")
