"""Sums over the clusters of a level, whose classes may be divided among processes."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ._shards import Shards


class ClusterSums:
    """The clusters of the classes that this process has.

    A cluster with classes in several processes is added up over them; the others are nobody
    else's business. So if classes of a cluster stand side by side, little is sent.

    Args:
        clusters: The level.
        shards: Where the classes are.
    """

    def __init__(self, clusters: Tensor, shards: Shards) -> None:
        known, self._of_class = torch.unique(clusters[shards.own], return_inverse=True)
        self._shards, self._count = shards, len(known)
        process = torch.arange(len(clusters), device=clusters.device) // shards.largest
        first = torch.full_like(clusters, shards.processes).scatter_reduce(
            0, clusters, process, "amin"
        )
        last = torch.zeros_like(clusters).scatter_reduce(0, clusters, process, "amax")
        is_common = first < last
        #: How many clusters have classes in several processes.
        self.common = int(is_common.sum())
        self._here = is_common[known].nonzero().squeeze(1)
        self._places = (is_common.cumsum(0) - 1)[known[self._here]]
        self._is_finest = not self.common and self._count == len(self._of_class)

    def add(self, values: Tensor) -> Tensor:
        """Return, for each class, the sum over its cluster.

        Args:
            values: Of shape (rows, classes of this process).
        """
        if self._is_finest:
            return values
        return self._spread(self._add(values))

    def log_add(self, logits: Tensor) -> Tensor:
        """Return, for each class, the log-sum-exp over its cluster, of the shape of `logits`.

        Where each class is a cluster of its own, they are the logits themselves.
        """
        if self._is_finest:
            return logits
        largest = logits.new_full((len(logits), self._count), -torch.inf)
        largest.scatter_reduce_(1, self._of_class.expand(logits.shape), logits, "amax")
        self._reduce(largest, dist.ReduceOp.MAX, -torch.inf)
        largest.clamp_min_(torch.finfo(logits.dtype).min)  # as -inf - -inf is NaN
        shares = self._spread(largest).neg_().add_(logits).exp_()
        found = self._add(shares).log_().add_(largest)
        # Finite, as a share of 0 times -inf is NaN.
        return self._spread(found.clamp_min_(torch.finfo(logits.dtype).min))

    def _add(self, values: Tensor) -> Tensor:
        found = values.new_zeros(len(values), self._count)
        found.index_add_(1, self._of_class, values)
        self._reduce(found, dist.ReduceOp.SUM, 0)
        return found

    def _spread(self, of_cluster: Tensor) -> Tensor:
        return of_cluster.index_select(1, self._of_class)

    def _reduce(self, of_cluster: Tensor, how: dist.ReduceOp.RedOpType, nothing: float) -> None:
        if not self.common:
            return
        of_common = of_cluster.new_full((len(of_cluster), self.common), nothing)
        of_common[:, self._places] = of_cluster[:, self._here]
        of_cluster[:, self._here] = self._shards.reduced(of_common, how)[:, self._places]
