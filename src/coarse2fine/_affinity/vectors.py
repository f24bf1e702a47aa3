"""Affinity clustering on embeddings, without a matrix of all their distances.

One pass over the tiles gives every class its nearest neighbour. Average linkage goes on with the
means of the clusters, as the mean cosine of two clusters of unit vectors is the inner product of
their means. The other linkages need the classes again, in one of two ways:

With single linkage the first pass keeps, for every class, one maximum for each block of columns.
If it lies outside the class's cluster, it is exact. If inside, it is an upper bound, and that part
of the tile is computed again only where the bound reaches the best value known for the cluster. To
keep such parts few, the classes are first ordered by the most similar of some landmarks.

If more than a quarter of a pass would have to be computed again, and always with complete linkage,
a second pass contracts each tile, its classes sorted by cluster, into the small matrix of the
clusters, on which all later rounds run.
"""

from __future__ import annotations

import numpy as np

from .._util.arrays import Array, IntArray
from .._util.memory import check_memory
from . import tiles
from .contraction import cluster_blocks, contract
from .matrix import cluster_matrix, matrix_rounds
from .maxima import Maxima
from .rounds import (
    Tree,
    averaging_matrix,
    by_falling_size,
    first_items,
    merge,
    number_by_first,
    over_items,
    round_tree,
    stack,
    to_distances,
)
from .spread import Spread
from .tiles import Vectors, closest_members

# How much memory the matrix of cluster-to-cluster distances may take with single linkage.
MATRIX_BYTES = 128 * 2**20
# Every 32nd row is a landmark. Comparing all rows with these takes K²/32 products, a sixteenth
# of a pass over the tiles, which takes K²/2.
LANDMARK_STEP = 32
# Up to this part of a pass, a round by maxima is preferred to contraction, which takes one.
PASS_SHARE = 0.25


def cluster_tiles(rows: Array, linkage: str, spread: Spread) -> Tree:
    """Cluster unit vectors, which are overwritten, by single or complete linkage."""
    check_tiles_fit(rows)
    order = _coherent_order(rows)
    rows[:] = rows[order]
    tree = _cluster_ordered(Vectors(rows), linkage, spread)
    # Back to the given order; clusters are numbered by their first members in that one.
    tree = over_items(tree, order[tree.pairs], np.argsort(order))
    return tree._replace(partitions=[number_by_first(part) for part in tree.partitions])


def check_tiles_fit(rows: Array) -> None:
    """Raise a `MemoryError` where there is no room for the maxima of all rows in all blocks."""
    count, itemsize = len(rows), rows.dtype.itemsize
    # Beside a copy of the rows, in another order, and what is as long as there are rows.
    needed = count * (-(-count // tiles.TILE) * (itemsize + 2) + rows.shape[1] * itemsize + 100)
    remedy = "take approximate=True, or another machine"
    check_memory(needed, f"exact clustering of {count:,} classes", remedy)


def _coherent_order(rows: Array) -> IntArray:
    """Return an order of unit vectors that puts similar ones near each other.

    Each goes to the most similar of some landmarks, which are clustered among themselves.
    Except for ties, the result of clustering does not depend on the order. But what a row is
    similar to, its own cluster above all, then lies in few blocks. So few block maxima are
    hidden by the row's own cluster, and later rounds compute few of them again.
    """
    landmarks = rows[:: min(LANDMARK_STEP, len(rows) // 2)]
    nearest = [
        (rows[at : at + tiles.TILE] @ landmarks.T).argmax(axis=1)
        for at in range(0, len(rows), tiles.TILE)
    ]
    tree = cluster_matrix(to_distances(landmarks @ landmarks.T), "single", hashed=False)
    # lexsort takes the last key, the coarsest partition, first: clusters stay together at
    # every level.
    place = np.empty(len(landmarks), np.int64)
    place[np.lexsort(tree.partitions)] = np.arange(len(landmarks))
    return np.argsort(place[np.concatenate(nearest)], kind="stable")


def _cluster_ordered(vectors: Vectors, linkage: str, spread: Spread) -> Tree:
    """Cluster by maxima while that is cheap, then contract to a matrix of clusters."""
    maxima = Maxima(vectors, spread)
    partner, best = maxima.nearest()
    joined, labels = merge(partner, -best, None, first=True)
    tree = round_tree(partner, to_distances(best), joined, labels, 0)
    # Maxima say which rows are closest, which is single linkage; the farthest rows, which
    # complete linkage asks for, are in no maximum. So that one contracts after the first round.
    while linkage == "single":
        # To compute one maximum again takes a row of tiles.TILE products; a pass has K²/2. If the
        # matrix of clusters does not fit, maxima are the way, however many it takes: rounds
        # halve the number of clusters until it does.
        fits = (labels.max() + 1) ** 2 * vectors.rows.itemsize <= MATRIX_BYTES
        limit = PASS_SHARE * len(labels) ** 2 / 2 / tiles.TILE if fits else np.inf
        found = maxima.nearest_outside(labels, limit)
        if found is None:
            break
        pairs, best = found
        joined, merged = merge(labels[pairs[:, 1]], -best, None, first=False)
        edges = pairs[joined], to_distances(best[joined])
        labels = merged[labels]
        tree = stack(tree, Tree(*edges, np.full(joined.sum(), len(tree.partitions)), [labels]))
        if merged.max() == 0:
            return tree
    del maxima  # before the matrix is allocated
    labels = by_falling_size(labels)
    combine = np.maximum if linkage == "single" else np.minimum
    matrix = to_distances(contract(vectors, cluster_blocks(labels), combine, spread))
    later = matrix_rounds(matrix, linkage, np.bincount(labels), None, len(tree.partitions))
    if linkage == "single":
        pairs = closest_members(vectors, labels, later.pairs)
    else:
        pairs = first_items(labels)[later.pairs]
    return stack(tree, over_items(later, pairs, labels))


def cluster_means(rows: Array, spread: Spread) -> Tree:
    """Cluster unit vectors by average linkage.

    The mean cosine of two clusters is the inner product of their means. So the means are all
    that a round needs, and each round has at most half as many of them: together, the passes
    over the tiles cost at most a third more than the first.
    """
    check_tiles_fit(rows)
    means = rows
    sizes = np.ones(len(rows), np.int64)
    labels = np.arange(len(rows))
    trees: list[Tree] = []
    while len(means) > 1:
        partner, best = Maxima(Vectors(means), spread).nearest()
        joined, merged = merge(partner, -best, None, first=not trees)
        tree = round_tree(partner, to_distances(best), joined, merged, len(trees))
        trees.append(over_items(tree, first_items(labels)[tree.pairs], labels))
        means = np.asarray(averaging_matrix(merged, sizes) @ means, rows.dtype)
        sizes = np.bincount(merged, sizes).astype(np.int64)
        labels = merged[labels]
    return stack(*trees)
