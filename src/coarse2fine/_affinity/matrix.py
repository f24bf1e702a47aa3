"""Affinity clustering on a matrix of distances."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from .._util.arrays import Array, IntArray
from .rounds import (
    Members,
    Tree,
    averaging_matrix,
    first_items,
    members,
    merge,
    over_items,
    pair_hash,
    round_tree,
    stack,
)
from .tiles import ragged

# How many entries of a matrix are handled at once where each may need several int64 indices:
# 32 MiB an index array, where all of a K×K matrix could need eight times its own size each.
CHUNK_ENTRIES = 2**22


def cluster_matrix(matrix: Array, linkage: str, *, hashed: bool) -> Tree:
    """Cluster the classes by their distances; `matrix` is overwritten."""
    # No class is its own nearest neighbour.
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
    # Every item joins at least one other, so a round leaves at most half of them (or two, where
    # `merge` leaves out an edge). The recursion is thus O(log K) deep, and as each matrix is at
    # most a quarter of the one before, all of them take a third more memory than the first
    # alone, and all rounds O(K²) time.
    partner, best = _nearest_items(matrix, classes)
    joined, merged = merge(partner, best, classes, first=round_ == 0)
    tree = round_tree(partner, best, joined, merged, round_)
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
    # Later rounds know only which clusters they join. With single linkage, the edge is the
    # closest pair of items between them, and it can still be looked up in this matrix.
    if linkage == "single":
        pairs = _closest_items(matrix, clusters, later.pairs, later.heights)
    else:
        pairs = first[later.pairs]
    return stack(tree, over_items(later, pairs, merged))


def _nearest_items(matrix: Array, classes: IntArray | None) -> tuple[IntArray, Array]:
    """Return for each item the nearest other one and how far it is."""
    partner = matrix.argmin(axis=1)  # the first of equals
    best = matrix[np.arange(len(matrix)), partner]
    if classes is not None:
        step = max(1, CHUNK_ENTRIES // len(matrix))
        for start in range(0, len(matrix), step):
            part = slice(start, start + step)
            equal = np.flatnonzero(matrix[part] == best[part, None])
            if len(equal) > len(best[part]):  # some row has its smallest entry more than once
                row, column = np.divmod(equal, len(matrix))
                keys = pair_hash(classes[row + start], classes[column])
                # Written by falling hash, so that the pair of the smallest is what remains.
                order = np.argsort(keys)[::-1]
                partner[row[order] + start] = column[order]
    return partner, best


def _closest_items(matrix: Array, clusters: Members, pairs: IntArray, heights: Array) -> IntArray:
    """Return for each pair of clusters a pair of their items that is `heights` apart.

    A height is the minimum of some entries, unchanged, so it is found again by equality. The
    pairs are the edges of a tree and all different, so at most half of the matrix is read.
    """
    items, starts, sizes = clusters
    products = sizes[pairs].prod(axis=1)
    chunk = np.cumsum(products) // CHUNK_ENTRIES
    found = np.zeros_like(pairs)
    # Whole pairs are put into one chunk until their entries are CHUNK_ENTRIES.
    begins = np.searchsorted(chunk, np.arange(chunk[-1] + 2))
    for begin, end in pairwise(begins.tolist()):
        some = slice(begin, end)
        at, slot = ragged(products[some])
        left, right = pairs[some][at].T
        row = items[starts[left] + slot // sizes[right]]
        column = items[starts[right] + slot % sizes[right]]
        # Backwards, so that of equal pairs the first remains.
        hit = np.flatnonzero(matrix[row, column] == heights[some][at])[::-1]
        found[begin + at[hit], 0], found[begin + at[hit], 1] = row[hit], column[hit]
    return found


def _contract(
    matrix: Array, merged: IntArray, clusters: Members, sizes: IntArray, linkage: str
) -> Array:
    """Return the distances of the merged clusters, inf on the diagonal."""
    if linkage == "average":
        # Items may be clusters already: each counts by its number of classes, so that the
        # result is the mean over all pairs of classes. inf would spoil every sum it is in.
        np.fill_diagonal(matrix, 0)
        average = averaging_matrix(merged, sizes)
        contracted = np.asarray(average @ (average @ matrix).T, matrix.dtype)
    else:
        combine = np.minimum if linkage == "single" else np.maximum
        slots, place = _by_slot(clusters)
        # Rows, then columns as rows of the transpose: rows lie in one piece in memory.
        halfway = _fold_rows(matrix, slots, combine)
        contracted = _fold_rows(np.ascontiguousarray(halfway.T), slots, combine)
        contracted = contracted.take(place, axis=0).take(place, axis=1)
    # What lies within a cluster, the old diagonal included, has ended on the new diagonal.
    np.fill_diagonal(contracted, np.inf)
    return contracted


def _by_slot(clusters: Members) -> tuple[list[IntArray], IntArray]:
    """Return the first member of each cluster, the second of those that have one, and so on.

    The clusters are sorted by falling size, so that those with one more member are always the
    first few; the second result is the place of each cluster in that order.
    """
    items, starts, sizes = clusters
    falling = np.argsort(-sizes, kind="stable")
    # counts[n] is how many clusters have at least n members.
    counts = np.cumsum(np.bincount(sizes)[::-1])[::-1]
    slots = [items[starts[falling[:count]] + slot] for slot, count in enumerate(counts[1:])]
    return slots, np.argsort(falling)


def _fold_rows(matrix: Array, slots: list[IntArray], combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, adding one member to every cluster at a time.

    That takes as many array operations as the largest cluster has members, each over whole
    rows, and is more than ten times as fast as ufunc.reduceat or ufunc.at.
    """
    folded = matrix.take(slots[0], axis=0)
    spare = np.empty((len(slots[1]) if len(slots) > 1 else 0, matrix.shape[1]), matrix.dtype)
    for rows in slots[1:]:
        # With out=, numpy's default mode "raise" would buffer the result; all indices are valid.
        more = matrix.take(rows, axis=0, out=spare[: len(rows)], mode="clip")
        combine(folded[: len(rows)], more, out=folded[: len(rows)])
    return folded
