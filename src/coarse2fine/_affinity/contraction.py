"""From unit vectors to the matrix of their clusters, in one pass over the tiles."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .._util.arrays import Array, IntArray
from .._util.memory import check_memory
from . import tiles
from .rounds import members
from .spread import Spread, part_tiles
from .tiles import Vectors, aligned


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


def cluster_blocks(labels: IntArray) -> list[Block]:
    """Return blocks of whole clusters; `labels` must number the clusters by falling size."""
    items, starts, sizes = members(labels)
    ends = starts + sizes
    slots = np.arange(len(items)) - starts[labels[items]]
    blocks, cluster = [], 0
    while cluster < len(sizes):
        begin = starts[cluster]
        # As many clusters as fit in a tile; one that is too large by itself is cut below.
        stop = max(int(np.searchsorted(ends, begin + tiles.TILE, side="right")), cluster + 1)
        for left in range(int(begin), int(ends[stop - 1]), tiles.TILE):
            part = slice(left, min(left + tiles.TILE, int(ends[stop - 1])))
            by_slot = np.argsort(slots[part], kind="stable")
            counts = np.bincount(slots[part] - slots[part].min())
            blocks.append(Block(items[part][by_slot], counts, slice(cluster, stop)))
        cluster = stop
    return blocks


Part = tuple[Array, list[Block]]


def contract(vectors: Vectors, blocks: list[Block], combine: np.ufunc, spread: Spread) -> Array:
    """Return the cluster-to-cluster matrix; `combine` is np.maximum for single linkage.

    The diagonal holds -inf. Takes one pass over all tiles, as `Maxima` does, but leaves the
    distances of all pairs of clusters.
    """
    count, dtype = blocks[-1].clusters.stop, vectors.rows.dtype
    # Rounds on it take a third more.
    what = f"the matrix of the {count:,} clusters of the first round"
    check_memory(count**2 * dtype.itemsize * 4 // 3, what, "take single or average linkage")
    matrix = _unknown(count, count, combine, dtype)
    size = part_tiles(len(blocks), spread)
    groups = [blocks[at : at + size] for at in range(0, len(blocks), size)]
    # Rows in the order of the blocks, copied once: a block's rows are then a slice, where they
    # would else be gathered for each of its tiles.
    parts = [
        (vectors.rows.take(np.concatenate([block.items for block in group]), axis=0), group)
        for group in groups
    ]
    work = partial(contracted, combine=combine)
    for one, other, found in spread.over_pairs(work, parts):
        rows, columns = _clusters(groups[one]), _clusters(groups[other])
        # A cluster cut into several parts contributes to the same entry several times.
        combine(matrix[rows, columns], found, out=matrix[rows, columns])
        combine(matrix[columns, rows], found.T, out=matrix[columns, rows])
    np.fill_diagonal(matrix, -np.inf)
    return matrix


def contracted(left: Part, right: Part | None, combine: np.ufunc) -> Array:
    """Return the matrix of the clusters of two parts; right is None for the same part."""
    rows, own = aligned(left[0]), left[1]
    columns, others = (rows, own) if right is None else (aligned(right[0]), right[1])
    vectors = Vectors(rows, len(columns))
    first, start = _clusters(own), _clusters(others)
    matrix = _unknown(first.stop - first.start, start.stop - start.start, combine, rows.dtype)
    for at, (block, some) in enumerate(zip(own, _split(rows, own), strict=True)):
        for to, (other, more) in enumerate(zip(others, _split(columns, others), strict=True)):
            is_known = right is None and to < at  # by the other direction
            # What lies within a single cluster would end on the diagonal.
            if is_known or (block.clusters == other.clusters and block.is_of_one_cluster):
                continue
            tile = _fold(vectors.product(some, more), block.counts, combine)
            tile = _fold(tile.T, other.counts, combine).T
            places = _shifted(block.clusters, first), _shifted(other.clusters, start)
            combine(matrix[places], tile, out=matrix[places])
            if right is None:
                places = places[1], places[0]
                combine(matrix[places], tile.T, out=matrix[places])
    return matrix


def _unknown(rows: int, columns: int, combine: np.ufunc, dtype: np.dtype[Any]) -> Array:
    worst = -np.inf if combine is np.maximum else np.inf
    return np.full((rows, columns), worst, dtype)


def _clusters(blocks: list[Block]) -> slice:
    """Return the clusters of consecutive blocks."""
    return slice(blocks[0].clusters.start, blocks[-1].clusters.stop)


def _shifted(clusters: slice, whole: slice) -> slice:
    return slice(clusters.start - whole.start, clusters.stop - whole.start)


def _split(rows: Array, blocks: list[Block]) -> list[Array]:
    return np.split(rows, np.cumsum([len(block.items) for block in blocks])[:-1])


def _fold(tile: Array, counts: IntArray, combine: np.ufunc) -> Array:
    """Combine the rows of each cluster, in place; the rows are ordered by slot.

    Slot after slot, the rows to combine are two slices, so that nothing is gathered.
    """
    clusters = counts[0]
    if clusters == 1:  # up to tiles.TILE slots of one row each, for which a loop would be slow
        return np.asarray(combine.reduce(tile, axis=0, keepdims=True))
    top, start = tile[:clusters], clusters
    for count in counts[1:]:
        combine(top[:count], tile[start : start + count], out=top[:count])
        start += count
    return top
