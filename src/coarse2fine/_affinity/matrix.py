"""Affinity clustering on a matrix of distances."""

from __future__ import annotations

import numpy as np

from .._arrays import Array, IntArray
from .rounds import (
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
    contracted = _contract(matrix, merged, sizes, linkage)
    first = first_items(merged)
    later = matrix_rounds(
        contracted,
        linkage,
        np.bincount(merged, sizes).astype(np.int64),
        None if classes is None else classes[first],
        round_ + 1,
    )
    if linkage == "single":
        pairs = _closest_items(matrix, merged, later.pairs, later.heights)
    else:
        pairs = first[later.pairs]
    return stack(tree, with_items(later, pairs, merged))


def _nearest_items(matrix: Array, classes: IntArray | None) -> tuple[IntArray, Array]:
    """Return for each item the nearest other one and how far it is."""
    partner = matrix.argmin(axis=1)
    best = np.take_along_axis(matrix, partner[:, None], axis=1)[:, 0]
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


def _closest_items(matrix: Array, merged: IntArray, clusters: IntArray, heights: Array) -> IntArray:
    """Return for each pair of clusters a pair of their items that is `heights` apart."""
    items, starts, sizes = members(merged)
    products = sizes[clusters].prod(axis=1)
    chunk = np.cumsum(products) // CHUNK_ENTRIES
    found = np.zeros_like(clusters)
    # In chunks of pairs, as two large clusters have many entries between them.
    for begin in np.flatnonzero(np.diff(chunk, prepend=-1)):
        pair = slice(begin, np.searchsorted(chunk, chunk[begin], side="right"))
        at, slot = ragged(products[pair])
        left, right = clusters[pair][at].T
        row = items[starts[left] + slot // sizes[right]]
        column = items[starts[right] + slot % sizes[right]]
        hit = np.flatnonzero(matrix[row, column] == heights[pair][at])[::-1]
        found[begin + at[hit], 0], found[begin + at[hit], 1] = row[hit], column[hit]
    return found


def _contract(matrix: Array, merged: IntArray, sizes: IntArray, linkage: str) -> Array:
    """Return the distances of the merged clusters, inf on the diagonal."""
    if linkage == "average":
        np.fill_diagonal(matrix, 0)
        share = shares(merged, sizes)
        contracted = np.asarray(share @ (share @ matrix).T, matrix.dtype)
    else:
        combine = np.minimum if linkage == "single" else np.maximum
        halfway = _fold_rows(matrix, merged, combine)
        contracted = _fold_rows(np.ascontiguousarray(halfway.T), merged, combine)
    # What lies within a cluster, the old diagonal included, has ended on the new diagonal.
    np.fill_diagonal(contracted, np.inf)
    return contracted


def _fold_rows(matrix: Array, merged: IntArray, combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, one further member of every cluster at a time."""
    items, starts, sizes = members(merged)
    falling = np.argsort(-sizes, kind="stable")
    folded = matrix.take(items[starts[falling]], axis=0)
    counts = len(sizes) - np.searchsorted(np.sort(sizes), np.arange(1, sizes.max()), side="right")
    spare = np.empty((counts.max(initial=0), matrix.shape[1]), matrix.dtype)
    for slot, count in enumerate(counts, start=1):
        rows = items[starts[falling[:count]] + slot]
        # "clip" spares numpy a second buffer; the indices are in range.
        matrix.take(rows, axis=0, out=spare[:count], mode="clip")
        combine(folded[:count], spare[:count], out=folded[:count])
    return folded.take(np.argsort(falling), axis=0)
