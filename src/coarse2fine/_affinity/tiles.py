"""Nearest neighbours and cluster contraction over tiles of a similarity matrix.

A *tile* is the matrix of inner products of two groups of unit vectors. It is computed by one
matrix product and overwritten by the next, so that the K×K matrix never exists. Everything
here is about similarities: the nearest neighbour has the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._util.arrays import Array, IntArray
from .rounds import members

# Rows and columns of a tile. Each tile is read again right after the matrix product, so it
# should still be in a cache (4 MiB in float32): 256 to 1,024 take about the same time, 4,096
# twice as long. Larger ones mean fewer block maxima to keep. Places within a tile are int16.
TILE = 1024
# Columns of a query tile. A query needs the columns of one cluster only; the others are wasted.
QUERY_TILE = 256


class Block(NamedTuple):
    """Some whole clusters, or a part of one cluster that is too large for one tile.

    Attributes:
        items: The members ordered by slot: the first member of each cluster, then the
            second of each cluster that has one, and so on, larger clusters first.
        counts: How many of the clusters have a member in each slot; never increasing.
        clusters: The clusters of the block, which are numbered consecutively.
    """

    items: IntArray
    counts: IntArray
    clusters: slice

    @property
    def is_of_one_cluster(self) -> bool:
        """Whether it has a single cluster, or a part of one."""
        return bool(self.clusters.stop - self.clusters.start == 1)


class Vectors:
    """Unit vectors, and workspaces for a tile and its left factor.

    A result is valid until the next call. Fresh arrays of this size would come from the
    system each time, and be paged in again for every tile.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        side = min(TILE, len(rows))
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


def cluster_blocks(labels: IntArray) -> list[Block]:
    """Return blocks of whole clusters; `labels` must number the clusters by falling size."""
    items, starts, sizes = members(labels)
    ends = starts + sizes
    slots = np.arange(len(items)) - starts[labels[items]]
    blocks, cluster = [], 0
    while cluster < len(sizes):
        begin = starts[cluster]
        # As many clusters as fit in a tile; one that is too large by itself is cut below.
        stop = max(int(np.searchsorted(ends, begin + TILE, side="right")), cluster + 1)
        for left in range(int(begin), int(ends[stop - 1]), TILE):
            part = slice(left, min(left + TILE, int(ends[stop - 1])))
            by_slot = np.argsort(slots[part], kind="stable")
            counts = np.bincount(slots[part] - slots[part].min())
            blocks.append(Block(items[part][by_slot], counts, slice(cluster, stop)))
        cluster = stop
    return blocks


class Maxima:
    """Each row's largest similarity to the rows of each block, and where it is.

    That is K / TILE numbers a row instead of K, computed in one pass over the tiles on and
    above the diagonal, since each tile serves its rows and, transposed, its columns. It
    answers the first round exactly, and later rounds with few tiles computed again: as
    clusters only grow, a maximum stays an upper bound of what is outside of the row's
    cluster, and is exact as long as the place it was found at is outside.
    """

    def __init__(self, vectors: Vectors) -> None:
        count = len(vectors.rows)
        self.vectors = vectors
        self.blocks = [slice(at, min(at + TILE, count)) for at in range(0, count, TILE)]
        self.values = np.empty((count, len(self.blocks)), vectors.rows.dtype)
        self._places = np.empty((count, len(self.blocks)), np.int16)
        for row in range(len(self.blocks)):
            for column in range(row, len(self.blocks)):
                self._fill(row, column)

    def _fill(self, row: int, column: int) -> None:
        rows, columns = self.blocks[row], self.blocks[column]
        # Both directions of a pair must have the same similarity to the last bit, or rounding
        # could let cycles arise. Off the diagonal they are one entry. On it, the factors are one
        # array, for which numpy calls syrk, which computes a half and mirrors it.
        tile = self.vectors.product(self.vectors.rows[rows], self.vectors.rows[columns])
        if row == column:
            np.fill_diagonal(tile, -np.inf)
        else:
            self.values[columns, row], self._places[columns, row] = _column_maxima(tile)
        self.values[rows, column], self._places[rows, column] = _row_maxima(tile)

    def nearest(self) -> tuple[IntArray, Array]:
        """Return each row's most similar other row, the first of equals, and how similar."""
        block = self.values.argmax(axis=1)
        everyone = np.arange(len(block))
        return block * TILE + self._places[everyone, block], self.values[everyone, block]

    def nearest_outside(self, labels: IntArray, limit: float) -> tuple[IntArray, Array] | None:
        """Return each cluster's closest pair of rows (its own, another's), and how similar.

        Maxima at a row of the same cluster are computed again, without that cluster, where
        they could hide the cluster's best. Returns None if there are more than `limit`.
        """
        # int32 for places and labels, as these arrays have an entry for each row and block.
        partner = np.arange(len(self.blocks), dtype=np.int32) * TILE + self._places
        inside = labels.astype(np.int32)[partner] == labels[:, None]
        known = np.where(inside, -np.inf, self.values).max(axis=1)
        best = np.full(labels.max() + 1, -np.inf, known.dtype)
        np.maximum.at(best, labels, known)
        # Below what the cluster has already, an upper bound need not be looked into. "Equal"
        # is looked into as well, so that ties are always decided among all candidates.
        hidden = inside & (self.values >= best[labels, None])
        if hidden.sum() > limit:
            return None
        self._renew(labels, hidden)
        outside = np.where(inside & ~hidden, -np.inf, self.values)
        block = outside.argmax(axis=1)
        everyone = np.arange(len(block))
        similar = outside[everyone, block]
        # The first row of each cluster once rows are sorted by cluster and falling similarity.
        order = np.lexsort((-similar, labels))
        winner = order[np.searchsorted(labels[order], np.arange(len(best)))]
        found = block[winner] * TILE + self._places[winner, block[winner]]
        return np.stack([winner, found], axis=1), similar[winner]

    def _renew(self, labels: IntArray, hidden: Array) -> None:
        """Compute maxima again, over what is outside of the row's own cluster."""
        for block, columns in enumerate(self.blocks):
            rows = np.flatnonzero(hidden[:, block])
            for start in range(0, len(rows), TILE):
                some = rows[start : start + TILE]
                tile = self.vectors.product(self.vectors.take(some), self.vectors.rows[columns])
                tile[labels[some, None] == labels[columns]] = -np.inf
                self.values[some, block], self._places[some, block] = _row_maxima(tile)


def contract(vectors: Vectors, blocks: list[Block], combine: np.ufunc) -> Array:
    """Return the cluster-to-cluster matrix; `combine` is np.maximum for single linkage.

    The diagonal holds -inf. Takes one pass over all tiles, as `Maxima` does, but leaves the
    distances of all pairs of clusters.
    """
    count = blocks[-1].clusters.stop
    worst = -np.inf if combine is np.maximum else np.inf
    matrix = np.full((count, count), worst, vectors.rows.dtype)
    # All rows in the order of the blocks, copied once: a block's rows are then a slice, where
    # they would else be gathered for each of its tiles.
    ordered = vectors.rows.take(np.concatenate([block.items for block in blocks]), axis=0)
    parts = np.split(ordered, np.cumsum([len(block.items) for block in blocks])[:-1])
    for index, (rows, left) in enumerate(zip(blocks, parts, strict=True)):
        for columns, right in zip(blocks[index:], parts[index:], strict=True):
            if rows.clusters == columns.clusters and rows.is_of_one_cluster:
                continue  # it would end on the diagonal
            tile = _fold(vectors.product(left, right), rows.counts, combine)
            tile = _fold(tile.T, columns.counts, combine).T
            # A cluster cut into several blocks contributes to the same entry several times.
            entry = matrix[rows.clusters, columns.clusters]
            combine(entry, tile, out=entry)
            if rows.clusters != columns.clusters:
                matrix[columns.clusters, rows.clusters] = entry.T
    np.fill_diagonal(matrix, -np.inf)
    return matrix


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
            values, found = _row_maxima(tile)
            better = values > best[rows]
            best[rows][better] = values[better]
            partner[rows][better] = columns[found[better]]
    # The best query of each pair; of equals the one with the lowest indices.
    by_pair = np.lexsort((partner, asking, -best, pair))
    winner = by_pair[np.searchsorted(pair[by_pair], np.arange(len(clusters)))]
    found_pairs = np.stack([asking[winner], partner[winner]], axis=1)
    return np.where(swap[:, None], found_pairs[:, ::-1], found_pairs)


def _fold(tile: Array, counts: IntArray, combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, in place; the rows are ordered by slot.

    Slot after slot, the rows to combine are two slices, so that nothing is gathered.
    """
    clusters = counts[0]
    if clusters == 1:  # up to TILE slots of one row each, for which a loop would be slow
        return np.asarray(combine.reduce(tile, axis=0, keepdims=True))
    top, start = tile[:clusters], clusters
    for count in counts[1:]:
        combine(top[:count], tile[start : start + count], out=top[:count])
        start += count
    return top


def _row_maxima(tile: Array) -> tuple[Array, IntArray]:
    """Return each row's maximum and the first column that has it."""
    found = tile.argmax(axis=1)
    return np.take_along_axis(tile, found[:, None], axis=1)[:, 0], found


def _column_maxima(tile: Array) -> tuple[Array, IntArray]:
    """Return each column's maximum and the first row that has it.

    Two passes along the rows, yet ten times as fast as argmax(axis=0), which goes column by
    column through memory that lies row by row.
    """
    values = tile.max(axis=0)
    rows, columns = np.divmod(np.flatnonzero(tile == values), len(values))
    first = np.empty(len(values), np.int64)
    first[columns[::-1]] = rows[::-1]  # backwards, so that the first remains
    return values, first
