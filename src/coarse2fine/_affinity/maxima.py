"""The nearest neighbours of all rows, in one pass over the tiles, and again with few of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array, IntArray
from . import tiles
from .spread import Spread, part_tiles
from .tiles import Vectors, aligned, column_maxima, row_maxima

# How many maxima are looked through at a time: a few arrays of 64 MiB.
CHUNK_MAXIMA = 2**24


class Maxima:
    """Each row's largest similarity to the rows of each block, and where it is.

    That is K / TILE numbers a row instead of K, computed in one pass over the tiles on and
    above the diagonal, since each tile serves its rows and, transposed, its columns. It
    answers the first round exactly, and later rounds with few tiles computed again: as
    clusters only grow, a maximum stays an upper bound of what is outside of the row's
    cluster, and is exact as long as the place it was found at is outside.

    Args:
        vectors: The rows.
        spread: Computes the pass.
    """

    def __init__(self, vectors: Vectors, spread: Spread) -> None:
        rows, self.vectors = vectors.rows, vectors
        count = len(rows)
        self.blocks = _blocks(count)
        self.values = np.empty((count, len(self.blocks)), rows.dtype)
        self._places = np.empty((count, len(self.blocks)), np.int16)
        size = part_tiles(len(self.blocks), spread)
        step = size * tiles.TILE
        parts = [(rows[at : at + step], None) for at in range(0, count, step)]
        for one, other, (found, transposed) in spread.over_pairs(block_maxima, parts):
            self._note(one * size, other * size, *found)
            if transposed is not None:
                self._note(other * size, one * size, *transposed)

    def _note(self, block: int, column: int, values: Array, places: Array) -> None:
        """Note the maxima of some rows, from a block on, and in some columns, from one on."""
        rows = slice(block * tiles.TILE, block * tiles.TILE + len(values))
        columns = slice(column, column + values.shape[1])
        self.values[rows, columns], self._places[rows, columns] = values, places

    def nearest(self) -> tuple[IntArray, Array]:
        """Return each row's most similar other row, the first of equals, and how similar."""
        block = self.values.argmax(axis=1)
        everyone = np.arange(len(block))
        return block * tiles.TILE + self._places[everyone, block], self.values[everyone, block]

    def nearest_outside(self, labels: IntArray, limit: float) -> tuple[IntArray, Array] | None:
        """Return each cluster's closest pair of rows (its own, another's), and how similar.

        Maxima at a row of the same cluster are computed again, without that cluster, where
        they could hide the cluster's best. Returns None if there are more than `limit`.
        """
        best = np.full(labels.max() + 1, -np.inf, self.values.dtype)
        for part in self._chunks():
            np.maximum.at(best, labels[part], self._outside(part, labels).max(axis=1))
        hidden = self._hidden(labels, best, limit)
        if hidden is None:
            return None
        self._renew(labels, *hidden)
        block = np.empty(len(labels), np.int64)
        similar = np.empty(len(labels), self.values.dtype)
        for part in self._chunks():
            outside = self._outside(part, labels)
            block[part] = outside.argmax(axis=1)
            similar[part] = outside[np.arange(len(outside)), block[part]]
        # The first row of each cluster once rows are sorted by cluster and falling similarity.
        order = np.lexsort((-similar, labels))
        winner = order[np.searchsorted(labels[order], np.arange(len(best)))]
        found = block[winner] * tiles.TILE + self._places[winner, block[winner]]
        return np.stack([winner, found], axis=1), similar[winner]

    def _chunks(self) -> list[slice]:
        step = max(1, CHUNK_MAXIMA // len(self.blocks))
        return [slice(at, at + step) for at in range(0, len(self.values), step)]

    def _inside(self, part: slice, labels: IntArray) -> Array:
        """Return which maxima of some rows are at a row of the same cluster."""
        # int32 for places and labels, as these arrays have an entry for each row and block.
        partner = np.arange(len(self.blocks), dtype=np.int32) * tiles.TILE + self._places[part]
        return np.asarray(labels.astype(np.int32)[partner] == labels[part, None])

    def _outside(self, part: slice, labels: IntArray) -> Array:
        """Return the maxima of some rows, -inf where they are at a row of the same cluster."""
        return np.where(self._inside(part, labels), -np.inf, self.values[part])

    def _hidden(
        self, labels: IntArray, best: Array, limit: float
    ) -> tuple[IntArray, IntArray] | None:
        """Return the rows and blocks whose maxima could hide what is best, unless they are many."""
        found: list[tuple[IntArray, IntArray]] = []
        for part in self._chunks():
            # Below what the cluster has already, an upper bound need not be looked into. "Equal"
            # is looked into as well, so that ties are always decided among all candidates.
            over = self.values[part] >= best[labels[part], None]
            rows, blocks = np.nonzero(self._inside(part, labels) & over)
            found.append((rows + part.start, blocks))
            limit -= len(rows)
            if limit < 0:
                return None
        rows, blocks = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return rows, blocks

    def _renew(self, labels: IntArray, rows: IntArray, blocks: IntArray) -> None:
        """Compute maxima again, over what is outside of the row's own cluster."""
        order = np.argsort(blocks, kind="stable")
        edges = np.searchsorted(blocks[order], np.arange(len(self.blocks) + 1))
        for block, columns in enumerate(self.blocks):
            asking = rows[order[edges[block] : edges[block + 1]]]
            for start in range(0, len(asking), tiles.TILE):
                some = asking[start : start + tiles.TILE]
                tile = self.vectors.product(self.vectors.take(some), self.vectors.rows[columns])
                tile[labels[some, None] == labels[columns]] = -np.inf
                self.values[some, block], self._places[some, block] = row_maxima(tile)


Part = tuple[Array, None]
Side = tuple[Array, Array]


def block_maxima(left: Part, right: Part | None) -> tuple[Side, Side | None]:
    """Return the maxima of each row of two parts in each block of the other, and their places.

    Args:
        left: Rows, in whole tiles but for the last.
        right: Others; None for the same, and then the second result is None.
    """
    rows = aligned(left[0])
    columns = rows if right is None else aligned(right[0])
    vectors = Vectors(rows, len(columns))
    above, below = _sides(rows, columns), _sides(columns, rows)
    for at, some in enumerate(_blocks(len(rows))):
        for to, others in enumerate(_blocks(len(columns))):
            if right is None and to < at:
                continue
            # Both directions of a pair must have the same similarity to the last bit, or rounding
            # could let cycles arise. Off the diagonal they are one entry. On it, the factors are
            # one array, for which numpy calls syrk, which computes a half and mirrors it.
            tile = vectors.product(rows[some], columns[others])
            if right is None and at == to:
                np.fill_diagonal(tile, -np.inf)
            else:
                transposed = above if right is None else below
                transposed[0][others, at], transposed[1][others, at] = column_maxima(tile)
            above[0][some, to], above[1][some, to] = row_maxima(tile)
    return above, None if right is None else below


def _sides(rows: Array, columns: Array) -> Side:
    shape: Any = len(rows), len(_blocks(len(columns)))
    return np.empty(shape, rows.dtype), np.empty(shape, np.int16)


def _blocks(count: int) -> list[slice]:
    return [slice(at, min(at + tiles.TILE, count)) for at in range(0, count, tiles.TILE)]
