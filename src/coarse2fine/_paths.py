"""The most probable way from the root of a hierarchy down to a class, for each sample."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ._logits import blocks, log_softmax
from ._util.arrays import Array, IntArray
from .nodes import Nodes


@dataclass(frozen=True)
class Paths:
    """For each sample the nodes from the root to a class, each the likeliest child of the last.

    A path does not depend on a threshold, which only says how far down it one goes. So a lower
    threshold makes an answer finer, and never turns a wrong one into a right one.

    Args:
        nodes: Of shape (N, D), the root first; a class is repeated to the end.
        probabilities: Of these nodes, never growing along a path; infinite for the root, which
            holds every class.
    """

    nodes: IntArray
    probabilities: Array

    def answers(self, threshold: float) -> IntArray:
        """Return the last node of each path whose probability is not below a threshold."""
        passing = (self.probabilities >= threshold).sum(axis=1)
        passing[passing == 0] = 1  # the root, also for a threshold of infinity
        return np.take_along_axis(self.nodes, passing[:, None] - 1, axis=1)[:, 0]

    def mistakes(self, targets: IntArray, nodes: Nodes) -> Array:
        """Return the probability of the first wrong node of each path, -inf where none is.

        The answer for a threshold is wrong if and only if this is not below the threshold.

        Args:
            targets: The classes of the samples.
            nodes: Of the hierarchy.
        """
        place = nodes.starts[targets][:, None]
        is_right = (nodes.starts[self.nodes] <= place) & (place < nodes.stops[self.nodes])
        return np.asarray(np.where(is_right, -np.inf, self.probabilities).max(axis=1))


def likeliest_paths(logits: Array, temperature: float, nodes: Nodes) -> Paths:
    """Return the paths of samples; of children of equal probability the first is taken.

    Args:
        logits: Of the classes, (N, K).
        temperature: They are divided by it.
        nodes: Of the hierarchy.
    """
    children = _Children(nodes)
    parts = [
        _paths(np.exp(log_softmax(logits[rows] / temperature)), children)
        for rows in blocks(len(logits), len(nodes))
    ]
    return Paths(
        np.concatenate([part.nodes for part in parts]),
        np.concatenate([part.probabilities for part in parts]),
    )


class _Children:
    """The nodes below each node, side by side.

    Attributes:
        order: All nodes but the root, those of the same parent side by side.
        starts: Where in `order` the children of each inner node begin.
        inner: The row of `starts` of each node; classes have none.
        depth: How many nodes the longest path has.
    """

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.order = np.argsort(nodes.parents, kind="stable")[1:]  # the root's parent is -1
        parents, self.starts = np.unique(nodes.parents[self.order], return_index=True)
        self.inner = np.full(len(nodes), -1)
        self.inner[parents] = np.arange(len(parents))
        self.depth = nodes.upwards.shape[1]

    def likeliest(self, probabilities: Array) -> IntArray:
        """Return the most probable child of each inner node, (N, inner nodes)."""
        ordered = probabilities[:, self.order]
        highest = np.maximum.reduceat(ordered, self.starts, axis=1)
        sizes = np.diff(self.starts, append=len(self.order))
        is_highest = ordered == np.repeat(highest, sizes, axis=1)
        places = np.where(is_highest, np.arange(len(self.order)), len(self.order))
        return np.asarray(self.order[np.minimum.reduceat(places, self.starts, axis=1)])


def _paths(classes: Array, children: _Children) -> Paths:
    probabilities = children.nodes.probabilities(classes)
    likeliest = children.likeliest(probabilities)
    rows, root = np.arange(len(classes)), children.nodes.root
    path, shares = [np.full(len(classes), root)], [np.full(len(classes), np.inf)]
    for _ in range(children.depth - 1):
        at = path[-1]
        node = np.where(at < root, at, likeliest[rows, children.inner[at]])
        path.append(node)
        # Sums are rounded, so a child could exceed its parent by the last bit.
        shares.append(np.minimum(shares[-1], probabilities[rows, node]))
    return Paths(np.stack(path, axis=1), np.stack(shares, axis=1))
