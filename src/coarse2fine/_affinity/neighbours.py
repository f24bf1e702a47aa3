"""Affinity clustering by nearest neighbours that faiss finds: approximate, but fast.

faiss gives each class a few neighbours. Borůvka's rounds on this graph find its minimum spanning
tree. As clusters grow, the neighbours of a class may all come to lie in its own cluster, while
those outside, which it does not know, could be the closest to the cluster. It then asks faiss for
neighbours outside. A cluster for which faiss finds none is compared with all classes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._util.arrays import Array, IntArray
from .._util.memory import check_memory
from ..errors import require
from . import tiles
from .rounds import Tree, members, merge, stack, to_distances
from .tiles import Vectors

# How many neighbours a class knows.
NEIGHBOURS = 16
# A class of a smaller cluster asks for so many, of which some must lie outside. Those of larger
# clusters ask cluster by cluster, for neighbours that are not in it.
ASKED = 128
# Up to this many classes faiss compares all of them, which then takes less than a second.
COMPARE_ALL = 8192
# Beyond that it divides them into 4·√K cells, and looks into so many of these.
PROBED_CELLS = 16
# So many neighbours are held at a time while they are looked through: 96 MiB.
CHUNK_FOUND = 2**23


def cluster_neighbours(rows: Array) -> Tree:
    """Cluster unit vectors by single linkage, nearly as `cluster_tiles` does."""
    # What faiss keeps, what each row knows, arrays as long as there are rows, and a chunk.
    needed = len(rows) * (4 * rows.shape[1] + 8 * NEIGHBOURS + 300)
    needed += 24 * min(CHUNK_FOUND, len(rows) * ASKED)
    what = f"approximate clustering of {len(rows):,} classes"
    check_memory(needed, what, "free some, or take another machine")
    neighbours = Neighbours(rows)
    labels = np.arange(len(rows))
    trees: list[Tree] = []
    while labels.any():
        pairs, similar = neighbours.nearest_outside(labels)
        joined, merged = merge(labels[pairs[:, 1]], -similar, None, first=not trees)
        labels = merged[labels]
        heights = to_distances(similar[joined])
        trees.append(Tree(pairs[joined], heights, np.full(joined.sum(), len(trees)), [labels]))
    return stack(*trees)


class Neighbours:
    """What each row knows of its neighbours, by falling similarity; -inf where it knows no more."""

    def __init__(self, rows: Array) -> None:
        self.vectors = Vectors(rows)
        self._rows = np.ascontiguousarray(rows, np.float32)
        self._index = _index(self._rows)
        shape = len(rows), min(NEIGHBOURS, len(rows) - 1)
        self._found = np.empty(shape, np.int32)
        self._similar = np.empty(shape, np.float32)
        self._ask(np.arange(len(rows)), np.arange(len(rows)), shape[1] + 1)

    def nearest_outside(self, labels: IntArray) -> tuple[IntArray, Array]:
        """Return each cluster's closest pair of rows (its own, another's), and how similar.

        The largest cluster may have none, and then its pair is a row of its own with itself; the
        others find it.
        """
        sizes = np.bincount(labels)
        known = self._known(labels)
        best = np.full(len(sizes), -np.inf, np.float32)
        np.maximum.at(best, labels, known)
        # No row that it does not know is more similar than the last that it does.
        hidden = np.flatnonzero((known == -np.inf) & (self._similar[:, -1] >= best[labels]))
        self._renew(hidden, labels, sizes)
        pairs, similar = self._nearest_known(labels)
        for cluster in np.flatnonzero(similar == -np.inf).tolist():
            if cluster != sizes.argmax():
                pairs[cluster], similar[cluster] = self._compare_all(cluster, labels)
        return pairs, similar.astype(self.vectors.rows.dtype)

    def _nearest_known(self, labels: IntArray) -> tuple[IntArray, Array]:
        outside = np.where(self._inside(labels), -np.inf, self._similar)
        column = outside.argmax(axis=1)
        everyone = np.arange(len(labels))
        similar = outside[everyone, column]
        found = np.where(similar > -np.inf, self._found[everyone, column], everyone)
        # What a row knows of another holds for that one too, which faiss may not have told it.
        pairs = np.stack([np.append(everyone, found), np.append(found, everyone)], axis=1)
        similar = np.append(similar, similar)
        # The first pair of each cluster once they are sorted by cluster and falling similarity.
        own = labels[pairs[:, 0]]
        order = np.lexsort((-similar, own))
        winner = order[np.searchsorted(own[order], np.arange(labels.max() + 1))]
        return pairs[winner], similar[winner]

    def _inside(self, labels: IntArray) -> Array:
        return np.asarray(labels.astype(np.int32)[self._found] == labels[:, None])

    def _known(self, labels: IntArray) -> Array:
        """Return how similar the nearest known row outside of the own cluster is."""
        return np.asarray(np.where(self._inside(labels), -np.inf, self._similar).max(axis=1))

    def _renew(self, asking: IntArray, labels: IntArray, sizes: IntArray) -> None:
        """Replace what some rows know by neighbours outside of their clusters."""
        is_large = (sizes >= ASKED)[labels[asking]]
        self._ask(asking[~is_large], labels, ASKED)
        large = asking[is_large]
        order, starts, counts = members(labels[large])
        for start, count in zip(starts[counts > 0], counts[counts > 0], strict=True):
            some = large[order[start : start + count]]
            self._ask(some, labels, NEIGHBOURS, self._selecting_others(labels, labels[some[0]]))

    def _selecting_others(self, labels: IntArray, cluster: int) -> Any:
        """Return parameters of a search that leaves a cluster's own rows out."""
        faiss = require("faiss", "faiss")
        others = faiss.IDSelectorBitmap(np.packbits(labels != cluster, bitorder="little"))
        if len(self._rows) <= COMPARE_ALL:
            return faiss.SearchParameters(sel=others)
        return faiss.SearchParametersIVF(sel=others, nprobe=PROBED_CELLS)

    def _ask(self, asking: IntArray, labels: IntArray, count: int, params: Any = None) -> None:
        """Let rows know the nearest of some rows that are outside of their clusters.

        Args:
            asking: The rows.
            labels: The cluster of each row.
            count: How many rows faiss is asked for, those in the own cluster among them.
            params: Of the search. Defaults to None.
        """
        count = min(count, len(self._rows))
        step = max(1, CHUNK_FOUND // count)
        for start in range(0, len(asking), step):
            some = asking[start : start + step]
            similar, found = self._index.search(self._rows[some], count, params=params)
            # -1 where there are no more.
            outside = (found >= 0) & (labels[found] != labels[some, None])
            kept = np.argsort(~outside, axis=1, kind="stable")[:, : self._found.shape[1]]
            similar[~outside] = -np.inf
            width = kept.shape[1]
            self._found[some, :width] = np.take_along_axis(found, kept, axis=1)
            self._similar[some, :width] = np.take_along_axis(similar, kept, axis=1)
            self._similar[some, width:] = -np.inf

    def _compare_all(self, cluster: int, labels: IntArray) -> tuple[Array, float]:
        """Return a cluster's closest pair of rows (its own, another's), and how similar."""
        own, others = np.flatnonzero(labels == cluster), np.flatnonzero(labels != cluster)
        best, pair = -np.inf, own[:2]
        for start in range(0, len(own), tiles.TILE):
            left = self.vectors.take(own[start : start + tiles.TILE])
            for begin in range(0, len(others), tiles.TILE):
                right = self.vectors.rows[others[begin : begin + tiles.TILE]]
                tile = self.vectors.product(left, right)
                row, column = np.unravel_index(tile.argmax(), tile.shape)
                if tile[row, column] > best:
                    best = float(tile[row, column])
                    pair = np.array([own[start + row], others[begin + column]])
        return pair, best


def _index(rows: Array) -> Any:
    """Return what faiss looks neighbours up in."""
    faiss = require("faiss", "faiss")
    whole = faiss.IndexFlatIP(rows.shape[1])
    if len(rows) <= COMPARE_ALL:
        whole.add(rows)
        return whole
    cells = int(4 * len(rows) ** 0.5)
    index = faiss.IndexIVFFlat(whole, rows.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
    # A few rounds of k-means on some of the rows are enough for cells.
    index.cp.niter, index.cp.spherical = 5, True
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, 32
    index.train(rows)
    index.add(rows)
    index.nprobe = PROBED_CELLS
    return index
