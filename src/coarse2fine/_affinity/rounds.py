"""What every round of affinity clustering does, however it gets its distances."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._util.arrays import Array, IntArray

if TYPE_CHECKING:
    from scipy.sparse import coo_array


# The items sorted by cluster, where each cluster starts among them, and its size.
Members = tuple[IntArray, IntArray, IntArray]


class Tree(NamedTuple):
    """The edges found in one round and all later ones.

    `partitions` holds, for each of these rounds, the cluster of each item after it.
    """

    pairs: IntArray
    heights: Array
    rounds: IntArray
    partitions: list[IntArray]


def merge(
    partner: IntArray, cost: Array, classes: IntArray | None, *, first: bool
) -> tuple[Array, IntArray]:
    """Join each cluster with its partner.

    If the first round would join all classes, its most expensive edge is left out.

    Args:
        partner: The cluster closest to each cluster.
        cost: How far away it is.
        classes: See `matrix_rounds`.
        first: Whether this is the first round.

    Returns:
        Which of the edges cluster → partner are used, each pair once, and the merged
        cluster of each cluster, numbered in the order of their first members.
    """
    # Along a path cluster → partner → its partner → ... costs never rise, so all costs on a
    # cycle are equal. Where ties are broken consistently (by index, or by a symmetric hash),
    # the only cycles are pairs that chose each other. Dropping one of their two edges leaves
    # a forest, rooted at the member of the pair whose edge was dropped.
    own = np.arange(len(partner))
    joined = (partner[partner] != own) | (own < partner)
    parent = np.where(joined, partner, own)
    roots = _roots(parent)
    # A longer cycle has no root: after any number of steps one is still at some member of it.
    if (parent[roots] != roots).any():
        joined = _without_cycles(partner, cost, joined)
        roots = _roots(np.where(joined, partner, own))
    # The root is no level. Without a coarse level before it, there would be no hierarchy at
    # all; leaving out one edge of the spanning tree gives two clusters. In later rounds the
    # partition of the round before is the coarsest level, and nothing is lost.
    if first and (roots == roots[0]).all():
        keys = own if classes is None else pair_hash(classes, classes[partner])
        chosen = np.flatnonzero(joined)
        joined[chosen[np.lexsort((keys[chosen], cost[chosen]))[-1]]] = False
        roots = _roots(np.where(joined, partner, own))
    return joined, number_by_first(roots)


def _roots(parent: IntArray) -> IntArray:
    """Return the root of each item's tree; a root is its own parent.

    Each step doubles the distance looked ahead, so log2 of the longest path is enough, and
    a long chain of nearest neighbours costs no more than a star.
    """
    for _ in range(len(parent).bit_length()):
        parent = parent[parent]
    return parent


def _without_cycles(partner: IntArray, cost: Array, joined: Array) -> Array:
    """Drop edges that close a cycle, the most expensive first.

    Cycles come from exact ties between clusters of embeddings, whose order is not symmetric,
    and from distances whose two directions were rounded differently.
    """
    from scipy.sparse import coo_array  # slow to import, and seldom needed
    from scipy.sparse.csgraph import minimum_spanning_tree

    chosen = np.flatnonzero(joined)
    chosen = chosen[np.argsort(cost[chosen], kind="stable")]
    # Ranks instead of costs: distinct, positive (scipy takes 0 for "no edge"), and they say
    # afterwards which edges were kept.
    ranks = np.arange(1, len(chosen) + 1)
    # scipy's trees take no other integers before 1.17
    ends = (chosen.astype(np.int32), partner[chosen].astype(np.int32))
    graph = coo_array((ranks, ends), shape=(len(partner),) * 2)
    kept = np.zeros_like(joined)
    kept[chosen[minimum_spanning_tree(graph).data.astype(np.int64) - 1]] = True
    return kept


def number_by_first(ids: IntArray) -> IntArray:
    """Number clusters, given by any ids below the number of items, by their first members.

    Whatever way a partition was found, equal partitions are then equal arrays.
    """
    first = first_items(ids)[ids]
    return (np.cumsum(first == np.arange(len(ids))) - 1)[first]


def by_falling_size(labels: IntArray) -> IntArray:
    """Renumber the clusters, larger ones first."""
    order = np.argsort(-np.bincount(labels), kind="stable")
    return np.argsort(order)[labels]


def first_items(labels: IntArray) -> IntArray:
    """Return the first item of each cluster."""
    first = np.empty(labels.max() + 1, np.int64)
    # Of several writes to one place numpy keeps the last; backwards, that is the first item.
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def members(labels: IntArray) -> Members:
    """Return the items sorted by cluster, where each cluster starts, and its size."""
    sizes = np.bincount(labels)
    return np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes, sizes


def averaging_matrix(merged: IntArray, sizes: IntArray) -> coo_array:
    """Return the matrix that averages items of the given sizes over their clusters."""
    from scipy.sparse import coo_array  # slow to import, and seldom needed

    totals = np.bincount(merged, sizes)
    return coo_array((sizes / totals[merged], (merged, np.arange(len(merged)))))


def pair_hash(left: IntArray, right: IntArray) -> Array:
    """Return a well-mixed number for each unordered pair of classes, different for each pair.

    It breaks ties. By index, all classes of a matrix full of zeros, as confusion matrices
    often are, would join class 0, and there would be no hierarchy. The order must be strict
    and the same seen from both ends, or cycles could arise.
    """
    low, high = np.minimum(left, right), np.maximum(left, right)
    mixed = (low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)
    # The finalizer of SplitMix64 (Steele et al., 2014), a bijection of 64-bit numbers.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def round_tree(
    partner: IntArray, heights: Array, joined: Array, merged: IntArray, round_: int
) -> Tree:
    """Return the tree of one round alone, from what `merge` found in it."""
    own = np.flatnonzero(joined)
    pairs = np.stack([own, partner[own]], axis=1)
    return Tree(pairs, heights[own], np.full(len(own), round_), [merged])


def over_items(tree: Tree, pairs: IntArray, labels: IntArray) -> Tree:
    """Return a tree over clusters as one over their items: its edges are now `pairs`."""
    return tree._replace(pairs=pairs, partitions=[part[labels] for part in tree.partitions])


def stack(*trees: Tree) -> Tree:
    """Put the rounds of all trees, over the same items, one after the other."""
    pairs, heights, rounds, partitions = zip(*trees, strict=True)
    return Tree(
        np.concatenate(pairs),
        np.concatenate(heights),
        np.concatenate(rounds),
        [part for parts in partitions for part in parts],
    )


def to_distances(similarities: Array) -> Array:
    """Turn cosine similarities into distances, in place."""
    return np.subtract(1, similarities, out=similarities)
