"""The marginalised log-probability and its gradient in closed form."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

# A table of every class's cluster mates is kept up to this many entries (8 MiB).
TABLE_ENTRIES = 2**20
# Where the largest cluster has more than this share of the classes, looking at all is as fast.
LARGE_SHARE = 0.25


class Partition:
    """A level prepared for the loss: it finds the classes in a target's cluster.

    Args:
        clusters: The cluster of each class.
    """

    def __init__(self, clusters: Tensor) -> None:
        self.clusters = clusters
        sizes = torch.bincount(clusters)
        self.largest = int(sizes.max())
        self._slots = torch.arange(self.largest, device=clusters.device)
        self._sizes = sizes[clusters]
        self._starts = (sizes.cumsum(0) - sizes)[clusters]
        # Padded, so that every class can look at as many slots as the largest cluster has.
        order = torch.argsort(clusters, stable=True)
        self._order = torch.cat([order, order.new_zeros(self.largest)])
        self._table: tuple[Tensor, Tensor] | None = None
        if len(clusters) * self.largest <= TABLE_ENTRIES:
            self._table = self._look_up(torch.arange(len(clusters), device=clusters.device))

    @property
    def is_finest(self) -> bool:
        """Whether every class is a cluster of its own."""
        return self.largest == 1

    @property
    def is_dense(self) -> bool:
        """Whether the clusters are so large that looking at all classes is as fast."""
        return self.largest > LARGE_SHARE * len(self.clusters)

    def mates(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the classes in each target's cluster, and -inf for slots that are empty, else 0.

        Both have the shape of `target` with a dimension of slots inserted at 1.
        """
        classes = target.reshape(-1)
        if self._table is None:
            mates, empty = self._look_up(classes)
        else:
            mates, empty = (part.index_select(0, classes) for part in self._table)
        if target.dim() == 1:
            return mates, empty
        shape = *target.shape, self.largest
        return mates.view(shape).movedim(-1, 1), empty.view(shape).movedim(-1, 1)

    def _look_up(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        # index_select refuses negative indices, which plain indexing would wrap around.
        places = self._starts.index_select(0, classes)[:, None] + self._slots
        is_empty = self._slots >= self._sizes[classes, None]
        return self._order[places], torch.where(is_empty, -torch.inf, 0.0)


class ClusterLoss(Function):
    """-log of the probability of each target's cluster, or the mean of that.

    `mates` holds the classes of that cluster, in slots, and `empty` -inf for those without
    one; where `mates` is None, `empty` says for every class whether it is outside.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, mates: Tensor | None, empty: Tensor, mean: bool) -> Tensor:
        log_probability, within, loss = _cluster_terms(input, mates, empty)
        ctx.mean = mean
        # The log-probabilities make room for the gradient, so that memory is that of one.
        slope = _slope(log_probability.exp_(), within, mates)
        ctx.save_for_backward(input, mates, empty, slope)
        return loss.mean() if mean else loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        input, mates, empty, slope = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            log_probability, within, _ = _cluster_terms(input, mates, empty)
            slope = _slope(log_probability.exp(), within, mates)
        count = slope.numel() // slope.shape[1]
        grad = grads[0] / count if ctx.mean else grads[0].unsqueeze(1)
        return slope * grad, None, None, None


def _slope(probability: Tensor, within: Tensor, mates: Tensor | None) -> Tensor:
    """Return the softmax minus the softmax within the cluster."""
    if mates is None:
        return probability - within
    if torch.is_grad_enabled():
        return probability.scatter_add(1, mates, -within)
    return probability.scatter_add_(1, mates, within.neg_())


def _cluster_terms(
    input: Tensor, mates: Tensor | None, empty: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-softmax, the softmax within each target's cluster, and the loss.

    A cluster all at -inf has an infinite loss, and zeros for its softmax.
    """
    log_probability = input.log_softmax(dim=1)
    if mates is None:
        members = log_probability.masked_fill(empty, -torch.inf)
    else:
        members = log_probability.gather(1, mates) + empty
    limits = torch.finfo(input.dtype)
    # Subtracted and added again, so the gradient need not know of it.
    largest = members.detach().amax(dim=1, keepdim=True).clamp_min_(limits.min)
    share = members.sub_(largest).exp_()
    total = share.sum(dim=1, keepdim=True)
    within = share / total.clamp_min(limits.tiny)
    return log_probability, within, total.log().add_(largest).neg_().squeeze(1)


class CoarseLogSoftmax(Function):
    """See `coarse_log_softmax`; `index` is the cluster of each entry of `input`."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, index: Tensor) -> Tensor:
        log_probability, within, output = _coarse_terms(input, index)
        ctx.save_for_backward(input, index, log_probability, within)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        input, index, log_probability, within = ctx.saved_tensors
        if torch.is_grad_enabled():  # a second derivative is wanted
            log_probability, within, _ = _coarse_terms(input, index)
        of_cluster = torch.zeros_like(grads[0]).scatter_add(1, index, grads[0]).gather(1, index)
        total = grads[0].sum(dim=1, keepdim=True)
        return within * of_cluster - log_probability.exp() * total, None


def _coarse_terms(input: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-softmax, the softmax within each class's cluster, and the output."""
    log_probability = input.log_softmax(dim=1)
    members = log_probability.clamp_min(torch.finfo(input.dtype).min)
    largest = torch.full_like(members, -torch.inf)
    largest = largest.scatter_reduce(1, index, members.detach(), "amax").gather(1, index)
    share = (members - largest).exp()
    total = torch.zeros_like(share).scatter_add(1, index, share).gather(1, index)
    return log_probability, share / total, total.log() + largest


def along_classes(values: Tensor, input: Tensor) -> Tensor:
    """Shape one value a class so that it broadcasts along dimension 1 of `input`."""
    return values.view(1, -1, *[1] * (input.dim() - 2))
