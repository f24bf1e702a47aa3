"""Affinity clustering on a matrix of distances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._arrays import Array, IntArray
from .rounds import (
    Members,
    Tree,
    first_items,
    members,
    merge,
    one_round,
    pair_hash,
    shares,
    stack,
    with_items,
)
from .tiles import ragged

# How many entries of a matrix are looked at in one go where indices are needed for each.
CHUNK_ENTRIES = 2**22


def cluster_matrix(matrix: Array, linkage: str, *, hashed: bool) -> Tree:
    """Cluster the classes by their distances; `matrix` is overwritten."""
    np.fill_diagonal(matrix, np.inf)
    classes = np.arange(len(matrix))
    return matrix_rounds(matrix, linkage, np.ones_like(classes), classes if hashed else None, 0)


def matrix_rounds(
    matrix: Array, linkage: str, sizes: IntArray, classes: IntArray | None, round_: int
) -> Tree:
    """Cluster the items of a matrix of distances.

    Args:
        matrix: The distances of the items, inf on the diagonal; overwritten.
        linkage: See `cluster_distances`.
        sizes: How many classes each item holds.
        classes: The class that stands for each item where equal distances are ordered by
            their hash; None to order them by the items' indices.
        round_: The number of this round; in round 0 the items are the classes.
    """
    partner, best = _nearest_items(matrix, classes)
    joined, merged = merge(partner, best, classes, first=round_ == 0)
    tree = one_round(partner, best, joined, merged, round_)
    if merged.max() == 0:
        return tree
    clusters = members(merged)
    contracted = _contract(matrix, merged, clusters, sizes, linkage)
    first = first_items(merged)
    later = matrix_rounds(
        contracted,
        linkage,
        np.bincount(merged, sizes).astype(np.int64),
        None if classes is None else classes[first],
        round_ + 1,
    )
    if linkage == "single":
        pairs = _closest_items(matrix, clusters, later.pairs, later.heights)
    else:
        pairs = first[later.pairs]
    return stack(tree, with_items(later, pairs, merged))


def _nearest_items(matrix: Array, classes: IntArray | None) -> tuple[IntArray, Array]:
    """Return for each item the nearest other one and how far it is."""
    partner = matrix.argmin(axis=1)
    best = matrix[np.arange(len(matrix)), partner]
    if classes is not None:
        step = max(1, CHUNK_ENTRIES // len(matrix))
        for start in range(0, len(matrix), step):
            part = slice(start, start + step)
            equal = np.flatnonzero(matrix[part] == best[part, None])
            if len(equal) > len(best[part]):
                row, column = np.divmod(equal, len(matrix))
                keys = pair_hash(classes[row + start], classes[column])
                # Written in falling order, so that the smallest of each row stays.
                order = np.argsort(keys)[::-1]
                partner[row[order] + start] = column[order]
    return partner, best


def _closest_items(matrix: Array, clusters: Members, pairs: IntArray, heights: Array) -> IntArray:
    """Return for each pair of clusters a pair of their items that is `heights` apart."""
    items, starts, sizes = clusters
    products = sizes[pairs].prod(axis=1)
    chunk = np.cumsum(products) // CHUNK_ENTRIES
    found = np.zeros_like(pairs)
    # In chunks of pairs, as two large clusters have many entries between them.
    begins = np.searchsorted(chunk, np.arange(chunk[-1] + 2))
    for begin, end in pairwise(begins.tolist()):
        some = slice(begin, end)
        at, slot = ragged(products[some])
        left, right = pairs[some][at].T
        row = items[starts[left] + slot // sizes[right]]
        column = items[starts[right] + slot % sizes[right]]
        hit = np.flatnonzero(matrix[row, column] == heights[some][at])[::-1]
        found[begin + at[hit], 0], found[begin + at[hit], 1] = row[hit], column[hit]
    return found


def _contract(
    matrix: Array, merged: IntArray, clusters: Members, sizes: IntArray, linkage: str
) -> Array:
    """Return the distances of the merged clusters, inf on the diagonal."""
    if linkage == "average":
        np.fill_diagonal(matrix, 0)
        share = shares(merged, sizes)
        contracted = np.asarray(share @ (share @ matrix).T, matrix.dtype)
    else:
        combine = np.minimum if linkage == "single" else np.maximum
        slots, place = _by_slot(clusters)
        halfway = _fold_rows(matrix, slots, combine)
        contracted = _fold_rows(np.ascontiguousarray(halfway.T), slots, combine)
        contracted = contracted.take(place, axis=0).take(place, axis=1)
    # What lies within a cluster, the old diagonal included, has ended on the new diagonal.
    np.fill_diagonal(contracted, np.inf)
    return contracted


def _by_slot(clusters: Members) -> tuple[list[IntArray], IntArray]:
    """Return the first member of each cluster, the second of those that have one, and so on.

    The clusters come by falling size; the second result is the place of each among them.
    """
    items, starts, sizes = clusters
    falling = np.argsort(-sizes, kind="stable")
    counts = np.cumsum(np.bincount(sizes)[::-1])[::-1]
    slots = [items[starts[falling[:count]] + slot] for slot, count in enumerate(counts[1:])]
    return slots, np.argsort(falling)


def _fold_rows(matrix: Array, slots: list[IntArray], combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, one further member of every cluster at a time."""
    folded = matrix.take(slots[0], axis=0)
    spare = np.empty((len(slots[1]) if len(slots) > 1 else 0, matrix.shape[1]), matrix.dtype)
    for rows in slots[1:]:
        # "clip" spares numpy a second buffer; the indices are in range.
        more = matrix.take(rows, axis=0, out=spare[: len(rows)], mode="clip")
        combine(folded[: len(rows)], more, out=folded[: len(rows)])
    return folded
