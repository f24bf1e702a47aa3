"""The marginalised log-probability and its gradient in closed form.

With z the logits, p their softmax and C the cluster of the target, the loss is

    L = logsumexp(z) - logsumexp(z over C) = -log Σ_{c in C} p_c

which is equation 1 of the paper with the normaliser that it leaves out. By the chain rule

    ∂L/∂z_j = p_j - [j in C] p_j / Σ_{c in C} p_c

the softmax over all classes minus the softmax within the cluster. Autograd would get there
too, by more passes over tensors of the size of the logits (for 1,000 classes in two to three
times the time). Here the forward pass leaves the gradient itself, in the memory of the
log-softmax, and the backward pass only scales it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

# A table of the members of every class's cluster is kept up to this many entries (12 MiB: an
# int64 and a float32 each). It is several times as fast as finding them for every batch.
TABLE_ENTRIES = 2**20
# Where the largest cluster has more than this share of the classes, a mask over all classes is
# used instead of slots. Slots are as wide as the largest cluster and take 12 bytes an entry,
# the mask 1 byte a class; on a CPU the two take the same time, and memory, at about a half.
LARGE_SHARE = 0.5


class Partition:
    """A level prepared for the loss: it finds the classes in a target's cluster.

    Clusters differ in size, tensors are rectangular: so each target has as many slots as the
    largest cluster has classes, and slots beyond its own cluster are empty.

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
        # Padded, so that slots beyond the last cluster's end are still valid indices.
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
        """Whether the clusters are so large that a mask over all classes is better."""
        return self.largest > LARGE_SHARE * len(self.clusters)

    def members(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the classes in each target's cluster, and 0 for each, -inf for empty slots.

        Both have the shape of `target` with a dimension of slots inserted at 1.
        """
        classes = target.reshape(-1)
        if self._table is None:
            members, empty = self._look_up(classes)
        else:
            members, empty = (part.index_select(0, classes) for part in self._table)
        if target.dim() == 1:
            return members, empty
        shape = *target.shape, self.largest
        return members.view(shape).movedim(-1, 1), empty.view(shape).movedim(-1, 1)

    def _look_up(self, classes: Tensor) -> tuple[Tensor, Tensor]:
        # index_select refuses negative indices, which plain indexing would wrap around.
        places = self._starts.index_select(0, classes)[:, None] + self._slots
        is_empty = self._slots >= self._sizes[classes, None]
        # float32 whatever torch's default is: it must not widen the logits it is added to.
        empty = torch.zeros(is_empty.shape, dtype=torch.float32, device=is_empty.device)
        return self._order[places], empty.masked_fill_(is_empty, -torch.inf)


class ClusterLoss(Function):
    """-log of the probability of each target's cluster, or the mean of that.

    `members` holds the classes of that cluster, in slots, and `empty` 0 or, for slots without
    one, -inf. Where `members` is None, `empty` is a mask of all classes outside the cluster.
    """

    @staticmethod
    def forward(
        ctx: Any, input: Tensor, members: Tensor | None, empty: Tensor, mean: bool
    ) -> Tensor:
        log_probability, within, loss = _cluster_terms(input, members, empty)
        ctx.mean = mean
        # Nothing else needs the log-probabilities, so the gradient takes their memory.
        slope = _slope(log_probability.exp_(), within, members)
        ctx.save_for_backward(input, members, empty, slope)
        return loss.mean() if mean else loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None]:
        input, members, empty, slope = ctx.saved_tensors
        # Gradients are on here only with create_graph=True: a second derivative is wanted, and
        # the saved slope has no history. So it is computed again, by operations that have one.
        if torch.is_grad_enabled():
            log_probability, within, _ = _cluster_terms(input, members, empty)
            slope = _slope(log_probability.exp(), within, members)
        count = slope.numel() // slope.shape[1]
        grad = grads[0] / count if ctx.mean else grads[0].unsqueeze(1)
        return slope * grad, None, None, None


def _slope(probability: Tensor, within: Tensor, members: Tensor | None) -> Tensor:
    """Return the softmax minus the softmax within the cluster."""
    if members is None:
        return probability - within
    # Empty slots hold classes of other clusters, but `within` is exactly 0 there.
    if torch.is_grad_enabled():
        return probability.scatter_add(1, members, -within)
    return probability.scatter_add_(1, members, within.neg_())


def _cluster_terms(
    input: Tensor, members: Tensor | None, empty: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-softmax, the softmax within each target's cluster, and the loss.

    A cluster whose logits are all -inf has an infinite loss, and zeros for its softmax.
    """
    log_probability = input.log_softmax(dim=1)
    if members is None:
        inside = log_probability.masked_fill(empty, -torch.inf)
    else:
        inside = log_probability.gather(1, members) + empty
    # A log-sum-exp with the largest term taken out, so that exp neither overflows nor loses
    # all of a cluster that is very improbable. torch.logsumexp would do that again, but the
    # shares are needed themselves, for the softmax within.
    limits = torch.finfo(input.dtype)
    # Where all are -inf, a finite largest one, as -inf - -inf is NaN. The shift is subtracted
    # and added again, so it has no gradient.
    largest = inside.detach().amax(dim=1, keepdim=True).clamp_min_(limits.min)
    share = inside.sub_(largest).exp_()
    total = share.sum(dim=1, keepdim=True)
    # The total is at least 1 (the largest share) or exactly 0, and then 0/tiny is 0.
    within = share / total.clamp_min(limits.tiny)
    return log_probability, within, total.log().add_(largest).neg_().squeeze(1)


class CoarseLogSoftmax(Function):
    """See `coarse_log_softmax`; `index` is the cluster of each entry of `input`.

    With w_k the softmax of class k within its cluster, the derivative of output j by logit k
    is [k in C(j)] w_k - p_k. So a gradient g over the outputs becomes
    w_k Σ_{j in C(k)} g_j - p_k Σ_j g_j: two sums, and no K×K matrix.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, index: Tensor) -> Tensor:
        log_probability, within, output = _coarse_terms(input, index)
        ctx.save_for_backward(input, index, log_probability, within)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        input, index, log_probability, within = ctx.saved_tensors
        if torch.is_grad_enabled():  # as in `ClusterLoss`
            log_probability, within, _ = _coarse_terms(input, index)
        of_cluster = torch.zeros_like(grads[0]).scatter_add(1, index, grads[0]).gather(1, index)
        total = grads[0].sum(dim=1, keepdim=True)
        return within * of_cluster - log_probability.exp() * total, None


def cluster_log_softmax(input: Tensor, clusters: Tensor) -> Tensor:
    """Return, for every class, the log-probability of the cluster that it belongs to."""
    index = along_classes(clusters, input).expand_as(input)
    output: Tensor = CoarseLogSoftmax.apply(input, index)  # type: ignore[no-untyped-call]
    return output


def _coarse_terms(input: Tensor, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log-softmax, the softmax within each class's cluster, and the output.

    Sums over clusters are kept in K columns, of which only as many are used as there are
    clusters: their number is then no part of any shape, as torch.compile wants it.
    """
    log_probability = input.log_softmax(dim=1)
    # Finite, as -inf - -inf is NaN, and so is a target's share of 0 times an output of -inf.
    finite = log_probability.clamp_min(torch.finfo(input.dtype).min)
    largest = torch.full_like(finite, -torch.inf)
    largest = largest.scatter_reduce(1, index, finite.detach(), "amax").gather(1, index)
    share = (finite - largest).exp()
    total = torch.zeros_like(share).scatter_add(1, index, share).gather(1, index)
    return log_probability, share / total, total.log() + largest


def along_classes(values: Tensor, input: Tensor) -> Tensor:
    """Shape one value a class so that it broadcasts along dimension 1 of `input`."""
    return values.view(1, -1, *[1] * (input.dim() - 2))
