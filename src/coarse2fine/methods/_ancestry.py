"""The way from each target up to the root, for losses that count all of its ancestors.

The classes around a target lie in shells: the target itself, what its parent adds, what the next
ancestor adds, and so on. So the ancestors' probabilities are running sums over as many shells as
the tree is deep, and what they cost hardly depends on that depth.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from .._util.arrays import IntArray
from ..nodes import Nodes


class Ancestry(nn.Module):
    """The paths from all classes up to the root.

    A cluster that several levels share is one node, see `Nodes`, so each step up adds classes.
    It holds a few numbers for each class and each step, and no matrix of classes by classes.

    Args:
        nodes: Of the hierarchy.

    Attributes:
        depths: (K). How many steps it is from each class to the root.
        heights: (K, D + 1). The height of each class's ancestors, which is how many steps it is
            from there to the lowest class: that of the class, 0, first, then its parent's. Where
            a path is shorter than the longest, the root's fills the row.
        places: (K). Where each class stands when those of a node stand side by side.
        starts: (K, D). Where in that order each class and its ancestors begin.
        stops: (K, D). Where they end, exclusive.
    """

    depths: Tensor
    heights: Tensor
    places: Tensor
    starts: Tensor
    stops: Tensor

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        paths = nodes.upwards[: nodes.num_classes]
        below = paths[:, :-1]
        tables = {
            "depths": (paths != nodes.root).sum(axis=1),
            "heights": _heights(nodes)[paths],
            "places": np.argsort(nodes.order),
            "starts": nodes.starts[below],
            "stops": nodes.stops[below],
        }
        # Not saved, as the run has the hierarchy.
        for name, table in tables.items():
            self.register_buffer(name, torch.from_numpy(table), persistent=False)

    def steps(self, targets: Tensor) -> Tensor:
        """Return how many steps up from each target it meets each class, (N, K).

        Args:
            targets: Classes, (N).
        """
        starts, stops = self.starts[targets], self.stops[targets]
        edges = starts.new_zeros(len(starts), len(self.places) + 1)
        edges.scatter_add_(1, starts, torch.ones_like(starts))
        edges.scatter_add_(1, stops, -torch.ones_like(stops))
        # In how many nodes of the target's path each place lies.
        common = edges.cumsum(1)
        return starts.shape[1] - common[:, self.places]

    def log_probabilities(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the log-probabilities of each target and its ancestors, (N, D + 1).

        The target's own is first, then its parent's. From the root on they are 0, up to rounding.

        Args:
            logits: Of the classes, (N, K); half precision is converted to float32.
            targets: Classes, (N).
        """
        log_probability = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(1)
        count = self.heights.shape[1]
        shells = _segment_logsumexp(log_probability, self.steps(targets), count)
        # As one table, for torch.logcumsumexp has no second derivatives here.
        is_later = torch.ones(count, count, dtype=torch.bool, device=shells.device).triu(1)
        lowest = torch.finfo(shells.dtype).min
        return shells[:, None].masked_fill(is_later, lowest).logsumexp(2)


def _segment_logsumexp(values: Tensor, segments: Tensor, count: int) -> Tensor:
    """Return the log-sum-exp of the entries of each segment of a row.

    That of no entries, or of -inf alone, is the lowest number: infinite ones would have
    derivatives that are NaN.

    Args:
        values: (N, K).
        segments: (N, K). The segment of each entry.
        count: How many segments a row has.
    """
    limits = torch.finfo(values.dtype)
    values = values.clamp_min(limits.min)
    empty = values.new_full((len(values), count), limits.min)
    # The largest of each segment is taken out, so that improbable clusters keep their digits. It
    # is added again, and so has no gradient.
    largest = empty.scatter_reduce(1, segments, values.detach(), "amax")
    shares = (values - largest.gather(1, segments)).exp()
    totals = torch.zeros_like(empty).scatter_add(1, segments, shares)
    return totals.clamp_min(limits.tiny).log() + largest


def _heights(nodes: Nodes) -> IntArray:
    """Return how many steps it is from each node down to the lowest class in it."""
    heights = np.zeros(len(nodes), np.int64)
    for step, ancestors in enumerate(nodes.upwards[: nodes.num_classes].T):
        heights[ancestors] = step  # the last that is written is the longest way
    return heights
