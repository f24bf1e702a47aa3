"""Affinity clustering (Bateni et al., 2017): from distances or embeddings to levels.

Every round joins each cluster with the cluster closest to it, until one is left; the
partition after each round is a level. With single linkage this is Borůvka's algorithm, and
the edges along which clusters join are the minimum spanning tree. As each round at least
halves the number of clusters, K classes have O(log K) levels, where a binary dendrogram can
be K deep; a curriculum that visits all levels needs few of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from ._affinity.matrix import cluster_matrix
from ._affinity.rounds import Tree, first_items, to_distances
from ._affinity.spread import TORCHRUN, spread
from ._affinity.tiles import lengths
from ._affinity.vectors import cluster_means, cluster_tiles
from ._util.arrays import Array, IntArray, check_entries_finite, to_floats
from .executors import check_executor

Linkage = Literal["single", "average", "complete"]

# Up to this many classes (16 MiB of float32), all distances are kept. For 1,024 classes that is
# twice as fast as tiles, some of which are computed twice; for 4,096 half as fast.
KEEP_CLASSES = 2048


@dataclass(frozen=True, eq=False)
class Clustering:
    """What affinity clustering found.

    Attributes:
        levels: The partitions, coarsest first, each an array class → cluster; the last is
            the classes themselves. The single cluster at the root is left out.
        edges: The K-1 pairs of classes along which clusters were joined. With single
            linkage the closest classes of the two clusters, so the edges are the minimum
            spanning tree; otherwise the first class of each of the two.
        heights: The distance of the two clusters joined by each edge.
        rounds: The round, from 0, in which each edge joined its clusters.
        approximate: Whether some of it may differ from what exact clustering finds.
    """

    levels: tuple[IntArray, ...]
    edges: IntArray
    heights: Array
    rounds: IntArray
    approximate: bool = False


def cluster_distances(distances: Any, linkage: Linkage = "single") -> Clustering:
    """Cluster classes by a matrix of their distances.

    Equal distances are ordered by a fixed hash of the two classes, so the same matrix
    always gives the same levels, and a matrix full of zeros still gives useful ones.
    Time and memory are O(K²).

    Args:
        distances: A symmetric K×K matrix. Only the order of the entries matters, so
            negative ones are fine; the diagonal is not used.
        linkage: How far apart two clusters are: the distance of their closest classes
            (``"single"``), the mean over all pairs (``"average"``) or the distance of
            their farthest classes (``"complete"``). Defaults to ``"single"``.

    Examples:
        >>> found = cluster_distances([[0, 1, 5, 6], [1, 0, 7, 8], [5, 7, 0, 2], [6, 8, 2, 0]])
        >>> [level.tolist() for level in found.levels]
        [[0, 0, 1, 1], [0, 1, 2, 3]]
        >>> found.edges.tolist(), found.heights.tolist()
        ([[0, 1], [2, 3], [0, 2]], [1.0, 2.0, 5.0])
    """
    _check_linkage(linkage)
    matrix = check_distances(distances).copy()
    return _assemble(cluster_matrix(matrix, linkage, hashed=True), linkage)


def cluster_embeddings(
    embeddings: Any,
    linkage: Linkage = "single",
    *,
    approximate: bool = False,
    executor: str | None = None,
) -> Clustering:
    """Cluster classes by the cosine distances of their embeddings.

    Beyond 2,048 classes the K×K distances are never stored. They are computed in tiles, few of
    which are computed again in later rounds. Equal distances are ordered by the classes'
    indices; beyond 2,048 classes, by their places in a fixed order. All arithmetic is in the
    embeddings' dtype, in float32 for half precision. Time is O(K²E). Memory is one to two
    copies of the embeddings, 6 bytes for every 1,024 pairs of classes in float32, and at times
    the distances of clusters: with single linkage at most 128 MiB, with complete linkage those
    of the clusters after the first round. Where less is free, that is said first.

    Args:
        embeddings: A K×E matrix, one row per class, none of them zero.
        linkage: See `cluster_distances`. Defaults to ``"single"``.
        approximate: Have faiss look for the nearest neighbours of each class instead of
            computing all distances, and cluster by the spanning tree of what it finds: faster
            for many classes, with single linkage only. What the neighbours leave apart is linked
            by the closest classes. Needs the extra ``faiss``. Defaults to False.
        executor: What computes the tiles of all distances: ``"processes:N"``, so many processes
            of this machine; the address of a Dask cluster; or ``"torchrun"``, the processes that
            torchrun has started, all of which must call this with the same embeddings. The
            result is the same to the last bit on processors of one kind. Defaults to None: this
            process.

    Raises:
        MemoryError: Less memory is free than it takes.
        RunError: Workers have died again and again, or one of torchrun's processes has.
    """
    _check_linkage(linkage)
    if approximate and linkage != "single":
        raise ValueError(f"approximate clustering is by single linkage only. Got {linkage!r}.")
    if executor is not None:
        _check_spread(executor, approximate)
    rows = unit_embeddings(embeddings)
    if approximate:
        from ._affinity.neighbours import cluster_neighbours

        tree = cluster_neighbours(rows)
    elif len(rows) <= KEEP_CLASSES:
        tree = cluster_matrix(to_distances(rows @ rows.T), linkage, hashed=False)
    else:
        cluster = cluster_means if linkage == "average" else partial(cluster_tiles, linkage=linkage)
        with spread(executor) as found:
            tree = cluster(rows, spread=found)
    # Rounding can put a distance a little below 0 or above 2.
    tree = tree._replace(heights=tree.heights.clip(0, 2))
    return replace(_assemble(tree, linkage), approximate=approximate)


def check_distances(distances: Any) -> Array:
    """Return `distances` as an exactly symmetric matrix, or raise an error naming an entry.

    Exactly, since clusters that disagree about their distance could join in a cycle.
    """
    matrix = to_floats(distances, "distances")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"distances must be a square matrix, one row and column a class. Got shape "
            f"{matrix.shape}."
        )
    if len(matrix) < 2:
        raise ValueError(f"distances must be between at least two classes. Got {len(matrix)}.")
    check_entries_finite(matrix, "distances")
    if np.array_equal(matrix, matrix.T):
        return matrix
    # What comes from float32 arithmetic is symmetric up to rounding only; the mean repairs that.
    gap = np.abs(matrix - matrix.T)
    tolerance = 1e-5 * np.abs(matrix).max()
    if gap.max() > tolerance:
        row, column = map(int, np.unravel_index(gap.argmax(), gap.shape))
        raise ValueError(
            f"distances must be symmetric, but distances[{row}, {column}] is "
            f"{matrix[row, column]} and distances[{column}, {row}] is {matrix[column, row]}. "
            f"Pass (D + D.T) / 2 if that is what you mean."
        )
    return np.asarray((matrix + matrix.T) / 2)


def unit_embeddings(embeddings: Any) -> Array:
    """Return the rows of `embeddings` scaled to length one, or raise an error naming a row."""
    rows = to_floats(embeddings, "embeddings")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise ValueError(f"embeddings must be a matrix, one row a class. Got shape {rows.shape}.")
    if len(rows) < 2:
        raise ValueError(f"embeddings must be of at least two classes. Got {len(rows)}.")
    length = lengths(rows)
    # A NaN or an infinity in a row is one in its length, so the entries need a look only then.
    if not np.isfinite(length).all():
        check_entries_finite(rows, "embeddings")
        row = int(np.argmin(np.isfinite(length)))
        raise ValueError(f"embeddings[{row}] is too long for {rows.dtype}; scale it down.")
    if not length.all():
        row = int(np.argmin(length))
        raise ValueError(
            f"embeddings[{row}] is zero, so it has no cosine distance to the others; leave "
            f"that class out or give it a vector."
        )
    # The inverse of a subnormal length may be infinite.
    if (length < np.finfo(rows.dtype).tiny).any():
        row = int(np.argmin(length))
        raise ValueError(f"embeddings[{row}] is too short for {rows.dtype}; scale it up.")
    return np.asarray(rows * (1 / length)[:, None])


def _check_linkage(linkage: str) -> None:
    if linkage not in get_args(Linkage):
        valid = ", ".join(map(repr, get_args(Linkage)))
        raise ValueError(f"linkage {linkage!r} is not supported. Must be one of {valid}.")


def _check_spread(executor: str, approximate: bool) -> None:
    if approximate:
        raise ValueError(
            f"executor is for exact clustering, whose tiles it computes. Got {executor!r} beside "
            f"approximate=True."
        )
    if executor != TORCHRUN:
        check_executor(executor)


def _assemble(tree: Tree, linkage: str) -> Clustering:
    """Return the result in a canonical order, whichever way the tree was found."""
    pairs = tree.pairs if linkage == "single" else _first_classes(tree)
    pairs = np.sort(pairs, axis=1)
    count = len(pairs) + 1
    # One key for (round, first class, second class): int64 holds O(log K) · K².
    order = np.argsort((tree.rounds * count + pairs[:, 0]) * count + pairs[:, 1])
    # Without the root, and without a round that left two classes apart to avoid the root.
    coarse = [part for part in reversed(tree.partitions) if 0 < part.max() < count - 1]
    levels = (*coarse, np.arange(count))
    return Clustering(levels, pairs[order], tree.heights[order], tree.rounds[order])


def _first_classes(tree: Tree) -> IntArray:
    """Return for each edge the first class of each of the two clusters that it joins.

    A tree has any of their classes; which one depends on the order in which tiles were made.
    """
    pairs = tree.pairs.copy()
    for round_, before in enumerate(tree.partitions[:-1], start=1):
        here = tree.rounds == round_
        pairs[here] = first_items(before)[before[pairs[here]]]
    return pairs
