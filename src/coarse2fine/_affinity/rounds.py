"""What every round of affinity clustering does, however the distances are come by."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._arrays import Array, IntArray

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

    In the first round, where all would become one, the most expensive edge is given up:
    the root would be all there is.

    Args:
        partner: The cluster closest to each cluster.
        cost: How far that is.
        classes: See `matrix_rounds`.
        first: Whether this is the first round.

    Returns:
        Which of the edges cluster → partner join, each pair counted once, and the merged
        cluster of each cluster, numbered in the order of their first members.
    """
    own = np.arange(len(partner))
    joined = (partner[partner] != own) | (own < partner)
    parent = np.where(joined, partner, own)
    roots = _roots(parent)
    if (parent[roots] != roots).any():
        joined = _without_circles(partner, cost, joined)
        roots = _roots(np.where(joined, partner, own))
    if first and (roots == roots[0]).all():
        keys = own if classes is None else pair_hash(classes, classes[partner])
        chosen = np.flatnonzero(joined)
        joined[chosen[np.lexsort((keys[chosen], cost[chosen]))[-1]]] = False
        roots = _roots(np.where(joined, partner, own))
    return joined, number(roots)


def _roots(parent: IntArray) -> IntArray:
    """Follow the parents to the end, twice as far each time; a root is its own parent."""
    for _ in range(len(parent).bit_length()):
        parent = parent[parent]
    return parent


def _without_circles(partner: IntArray, cost: Array, joined: Array) -> Array:
    """Drop what closes a circle, which rounding can make of costs that are nearly equal."""
    from scipy.sparse import coo_array  # slow to import, and seldom needed
    from scipy.sparse.csgraph import minimum_spanning_tree

    chosen = np.flatnonzero(joined)
    chosen = chosen[np.argsort(cost[chosen], kind="stable")]
    ranks = np.arange(1, len(chosen) + 1)
    graph = coo_array((ranks, (chosen, partner[chosen])), shape=(len(partner),) * 2)
    kept = np.zeros_like(joined)
    kept[chosen[minimum_spanning_tree(graph).data.astype(np.int64) - 1]] = True
    return kept


def number(ids: IntArray) -> IntArray:
    """Number clusters, given by any ids below the number of items, by their first members."""
    first = np.empty(len(ids), np.int64)
    own = np.arange(len(ids))
    # Written backwards, so that the first member of each cluster stays.
    first[ids[::-1]] = own[::-1]
    first = first[ids]
    return (np.cumsum(first == own) - 1)[first]


def first_items(labels: IntArray) -> IntArray:
    """Return the first item of each cluster."""
    first = np.empty(labels.max() + 1, np.int64)
    first[labels[::-1]] = np.arange(len(labels))[::-1]
    return first


def members(labels: IntArray) -> Members:
    """Return the items sorted by cluster, where each cluster starts, and its size."""
    sizes = np.bincount(labels)
    return np.argsort(labels, kind="stable"), np.cumsum(sizes) - sizes, sizes


def shares(merged: IntArray, sizes: IntArray) -> coo_array:
    """Return the matrix that averages items of the given sizes over their clusters."""
    from scipy.sparse import coo_array  # slow to import, and seldom needed

    totals = np.bincount(merged, sizes)
    return coo_array((sizes / totals[merged], (merged, np.arange(len(merged)))))


def pair_hash(left: IntArray, right: IntArray) -> Array:
    """Return a number for each unordered pair of classes, well mixed and never the same twice.

    The finalizer of SplitMix64 (Steele et al., 2014) is a bijection of 64-bit numbers.
    """
    low, high = np.minimum(left, right), np.maximum(left, right)
    mixed = (low.astype(np.uint64) << np.uint64(32)) | high.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def one_round(
    partner: IntArray, heights: Array, joined: Array, merged: IntArray, round_: int
) -> Tree:
    own = np.flatnonzero(joined)
    pairs = np.stack([own, partner[own]], axis=1)
    return Tree(pairs, heights[own], np.full(len(own), round_), [merged])


def with_items(tree: Tree, pairs: IntArray, labels: IntArray) -> Tree:
    """Express a tree over clusters by their items."""
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
