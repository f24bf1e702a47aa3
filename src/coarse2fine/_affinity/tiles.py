"""Nearest neighbours and cluster contraction over tiles of a similarity matrix.

A *tile* is the block of inner products of two groups of unit vectors, made by one matrix
product and gone before the next one, so that the K×K matrix never exists. Everything here
speaks of similarities: the nearest neighbour has the largest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._arrays import Array, IntArray

# A tile of this many rows and columns stays in the level-two cache of a current core.
TILE = 1024
# Columns a query tile has: narrow, since a query needs one cluster's columns only.
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


class Vectors:
    """Unit vectors, and workspaces for what is made of a few of them at a time.

    Workspaces are used again and again: the system calls behind fresh memory would cost a
    good part of a tile.
    """

    def __init__(self, rows: Array) -> None:
        self.rows = rows
        side = min(TILE, len(rows))
        self._tile = np.empty(side * side, rows.dtype)
        self._left = np.empty((side, rows.shape[1]), rows.dtype)

    def take(self, items: IntArray) -> Array:
        """Return the given rows in a workspace."""
        # "clip" spares numpy a second buffer; the indices are in range.
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
        # What the dtype cannot hold as a square it may hold as a length.
        squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.asarray(np.sqrt(squares), rows.dtype)


def ragged(sizes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the group of each element, and its place in it, of groups of the given sizes."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    starts = np.cumsum(sizes) - sizes
    return group, np.arange(len(group)) - starts[group]


def cluster_blocks(labels: IntArray) -> list[Block]:
    """Return blocks of whole clusters; `labels` must number the clusters by falling size."""
    sizes = np.bincount(labels)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    items = np.argsort(labels, kind="stable")
    slots = np.arange(len(items)) - starts[labels[items]]
    blocks, cluster = [], 0
    while cluster < len(sizes):
        begin = starts[cluster]
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

    One pass over the tiles on and above the diagonal fills it: each tile serves its rows
    and, transposed, its columns.
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
        # On the diagonal the same array twice, of which BLAS makes an exactly symmetric tile.
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

    def nearest_outside(self, labels: IntArray, most: float) -> tuple[IntArray, Array] | None:
        """Return each cluster's closest pair of rows (its own, another's), and how similar.

        A maximum that lies within the row's own cluster says only that nothing else in that
        block is more similar. Such a one is made anew where it could hide the cluster's
        best; None is returned where these are more than `most`.
        """
        partner = np.arange(len(self.blocks), dtype=np.int32) * TILE + self._places
        inside = labels.astype(np.int32)[partner] == labels[:, None]
        known = np.where(inside, -np.inf, self.values).max(axis=1)
        best = np.full(labels.max() + 1, -np.inf, known.dtype)
        np.maximum.at(best, labels, known)
        hidden = inside & (self.values >= best[labels, None])
        if hidden.sum() > most:
            return None
        self._renew(labels, hidden)
        outside = np.where(inside & ~hidden, -np.inf, self.values)
        block = outside.argmax(axis=1)
        everyone = np.arange(len(block))
        similar = outside[everyone, block]
        order = np.lexsort((-similar, labels))
        winner = order[np.searchsorted(labels[order], np.arange(len(best)))]
        found = block[winner] * TILE + self._places[winner, block[winner]]
        return np.stack([winner, found], axis=1), similar[winner]

    def _renew(self, labels: IntArray, hidden: Array) -> None:
        """Make maxima over what is outside of the row's own cluster."""
        for block, columns in enumerate(self.blocks):
            rows = np.flatnonzero(hidden[:, block])
            for start in range(0, len(rows), TILE):
                some = rows[start : start + TILE]
                tile = self.vectors.product(self.vectors.take(some), self.vectors.rows[columns])
                tile[labels[some, None] == labels[columns]] = -np.inf
                self.values[some, block], self._places[some, block] = _row_maxima(tile)


def contract(vectors: Vectors, blocks: list[Block], combine: np.ufunc) -> Array:
    """Return the cluster-to-cluster matrix; `combine` is np.maximum for single linkage.

    The diagonal holds -inf.
    """
    count = blocks[-1].clusters.stop
    worst = -np.inf if combine is np.maximum else np.inf
    matrix = np.full((count, count), worst, vectors.rows.dtype)
    ordered = vectors.rows.take(np.concatenate([block.items for block in blocks]), axis=0)
    parts = np.split(ordered, np.cumsum([len(block.items) for block in blocks])[:-1])
    for index, (rows, left) in enumerate(zip(blocks, parts, strict=True)):
        for columns, right in zip(blocks[index:], parts[index:], strict=True):
            tile = _fold(vectors.product(left, right), rows.counts, combine)
            tile = _fold(tile.T, columns.counts, combine).T
            # A cluster cut over several blocks meets the same entry more than once.
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
        clusters: Pairs of clusters, an (n, 2) array.
    """
    sizes = np.bincount(labels)
    members = np.argsort(labels, kind="stable")
    starts = np.cumsum(sizes) - sizes
    swap = sizes[clusters[:, 0]] > sizes[clusters[:, 1]]
    small, large = np.where(swap, clusters[:, ::-1].T, clusters.T)
    # Each member of the smaller cluster asks for its nearest in the larger one.
    pair, slot = ragged(sizes[small])
    asking = members[starts[small][pair] + slot]
    order = np.argsort(large[pair], kind="stable")
    pair, asking, wanted = pair[order], asking[order], large[pair][order]

    partner = np.zeros(len(pair), np.int64)
    best = np.full(len(pair), -np.inf, vectors.rows.dtype)
    for begin in range(0, len(members), QUERY_TILE):
        columns = members[begin : begin + QUERY_TILE]
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
    by_pair = np.lexsort((partner, asking, -best, pair))
    winner = by_pair[np.searchsorted(pair[by_pair], np.arange(len(clusters)))]
    found_pairs = np.stack([asking[winner], partner[winner]], axis=1)
    return np.where(swap[:, None], found_pairs[:, ::-1], found_pairs)


def _fold(tile: Array, counts: IntArray, combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, in place; the rows are ordered by slot."""
    clusters = counts[0]
    if clusters == 1:
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

    Twice over the tile, yet faster than argmax(axis=0), which walks it against the grain.
    """
    values = tile.max(axis=0)
    rows, columns = np.divmod(np.flatnonzero(tile == values), len(values))
    first = np.empty(len(values), np.int64)
    first[columns[::-1]] = rows[::-1]
    return values, first
