"""Nearest neighbours and cluster contraction over tiles of a similarity matrix.

A *tile* is the matrix of inner products of two groups of unit vectors. It is computed by one
matrix product and overwritten by the next, so that the K×K matrix never exists. Everything
here is about similarities: the nearest neighbour has the largest.
"""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array, IntArray
from .rounds import members

# Rows and columns of a tile. Each tile is read again right after the matrix product, so it
# should still be in a cache (4 MiB in float32): 256 to 1,024 take about the same time, 4,096
# twice as long. Larger ones mean fewer block maxima to keep. Places within a tile are int16.
TILE = 1024
# Columns of a query tile. A query needs the columns of one cluster only; the others are wasted.
QUERY_TILE = 256


class Vectors:
    """Unit vectors, and workspaces for a tile and its left factor.

    A result is valid until the next call. Fresh arrays of this size would come from the
    system each time, and be paged in again for every tile.

    Args:
        rows: The vectors.
        columns: How many others they are multiplied with, if these may be more. Defaults to 0.
    """

    def __init__(self, rows: Array, columns: int = 0) -> None:
        self.rows = rows
        side = min(TILE, max(len(rows), columns))
        self._tile = np.empty(side * side, rows.dtype)
        self._left = np.empty((side, rows.shape[1]), rows.dtype)

    def take(self, items: IntArray) -> Array:
        """Return the given rows in a workspace."""
        # With out=, numpy's default mode "raise" would buffer the result; all indices are valid.
        return self.rows.take(items, axis=0, out=self._left[: len(items)], mode="clip")

    def product(self, left: Array, right: Array) -> Array:
        """Return left @ right.T in a workspace."""
        shape = len(left), len(right)
        out: Array = self._tile[: shape[0] * shape[1]].reshape(shape)
        np.matmul(left, right.T, out=out)
        return out


def aligned(rows: Array) -> Array:
    """Return rows that lie in memory as numpy wants them, as those from another process may not.

    It would copy them for each product, and not see that both factors are the same.
    """
    return np.require(rows, requirements=("C", "ALIGNED"))


def lengths(rows: Array) -> Array:
    """Return the Euclidean length of each row."""
    squares = np.einsum("ij,ij->i", rows, rows)
    if not np.finfo(rows.dtype).tiny <= squares.min() <= squares.max() < np.inf:
        # A length may be representable in the dtype where its square over- or underflows.
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.asarray(np.sqrt(squares), rows.dtype)


def ragged(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of each element, and its place in it, of groups of the given sizes."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return group, np.arange(len(group)) - starts[group]


def closest_members(vectors: Vectors, labels: IntArray, clusters: IntArray) -> IntArray:
    """Return for each pair of clusters the most similar pair of their members.

    Args:
        vectors: The members.
        labels: The cluster of each member.
        clusters: Pairs of clusters that are the edges of a tree, an (n, 2) array.
    """
    items, starts, sizes = members(labels)
    swap = sizes[clusters[:, 0]] > sizes[clusters[:, 1]]
    small, large = np.where(swap, clusters[:, ::-1].T, clusters.T)
    # Each member of the smaller cluster asks for its nearest in the larger one. In a rooted
    # tree each edge belongs to one child, and its smaller end is at most as large as that
    # child; so there are at most K queries, however many edges meet at one cluster.
    pair, slot = ragged(sizes[small])
    asking = items[starts[small][pair] + slot]
    # By the cluster that is asked, as the columns are too: those in a tile's columns are then
    # a slice of the queries.
    order = np.argsort(large[pair], kind="stable")
    pair, asking, wanted = pair[order], asking[order], large[pair][order]

    partner = np.zeros(len(pair), np.int64)
    best = np.full(len(pair), -np.inf, vectors.rows.dtype)
    for begin in range(0, len(items), QUERY_TILE):
        columns = items[begin : begin + QUERY_TILE]
        bounds = labels[columns[0]], labels[columns[-1]] + 1
        first, last = np.searchsorted(wanted, bounds)
        right = vectors.rows.take(columns, axis=0)
        for start in range(int(first), int(last), TILE):
            rows = slice(start, min(start + TILE, int(last)))
            tile = vectors.product(vectors.take(asking[rows]), right)
            tile[wanted[rows, None] != labels[columns]] = -np.inf
            values, found = row_maxima(tile)
            better = values > best[rows]
            best[rows][better] = values[better]
            partner[rows][better] = columns[found[better]]
    # The best query of each pair; of equals the one with the lowest indices.
    by_pair = np.lexsort((partner, asking, -best, pair))
    winner = by_pair[np.searchsorted(pair[by_pair], np.arange(len(clusters)))]
    found_pairs = np.stack([asking[winner], partner[winner]], axis=1)
    return np.where(swap[:, None], found_pairs[:, ::-1], found_pairs)


def row_maxima(tile: Array) -> tuple[Array, IntArray]:
    """Return each row's maximum and the first column that has it."""
    found = tile.argmax(axis=1)
    return np.take_along_axis(tile, found[:, None], axis=1)[:, 0], found


def column_maxima(tile: Array) -> tuple[Array, IntArray]:
    """Return each column's maximum and the first row that has it.

    Two passes along the rows, yet ten times as fast as argmax(axis=0), which goes column by
    column through memory that lies row by row.
    """
    values = tile.max(axis=0)
    rows, columns = np.divmod(np.flatnonzero(tile == values), len(values))
    first = np.empty(len(values), np.int64)
    first[columns[::-1]] = rows[::-1]  # backwards, so that the first remains
    return values, first
