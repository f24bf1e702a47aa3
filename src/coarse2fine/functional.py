"""The marginalised loss (equation 1 of the paper) as pure functions.

At a level of the hierarchy a class counts as right when it lies in the target's cluster, so
the loss is the negative log of the cluster's probability: the log-sum-exp over all classes
minus the log-sum-exp over the classes of the target's cluster. Its gradient is the softmax
over all classes minus the softmax within the cluster.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from ._arrays import to_integers

__all__ = ["coarse_cross_entropy", "coarse_log_softmax"]


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


def coarse_cross_entropy(
    input: Tensor,
    target: Tensor,
    clusters: Any,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Cross-entropy between logits over the classes and targets known up to their cluster.

    Takes all that `torch.nn.functional.cross_entropy` takes and follows the same formulas,
    with the log-probability of a class replaced by that of its cluster wherever it occurs.
    So class weights still belong to the target's class; a target of class probabilities
    counts by the sum over each cluster; and label smoothing, which moves that share of the
    target to all K classes evenly, gives each cluster a share in proportion to its size.
    With every class a cluster of its own this is torch's cross-entropy. Half-precision
    logits are computed in, and give a loss in, float32, as under autocast.

    Args:
        input: Logits of shape (K), (N, K) or (N, K, d1, ...).
        target: Class indices of shape (), (N) or (N, d1, ...), or class probabilities of
            the shape of `input`.
        clusters: The level: the cluster of each class, an array of length K.
        weight: A weight for each class. Defaults to None.
        ignore_index: The target index that does not count; of no use with probabilities.
            Defaults to -100.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``. Defaults to ``"mean"``.
        label_smoothing: The share of the target that is spread evenly over the classes.
            Defaults to 0.0.

    Example:
        >>> logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
        >>> coarse_cross_entropy(logits, torch.tensor([1]), [0, 0, 1, 1])
        tensor(0.1269)
        >>> logits.softmax(1)[0, :2].sum().log().neg()
        tensor(0.1269)
    """
    if not isinstance(clusters, Tensor):
        clusters = torch.from_numpy(to_integers(clusters, "clusters"))
    clusters = clusters.to(input.device)
    partition = None if torch.compiler.is_compiling() else Partition(clusters)
    return level_cross_entropy(
        input,
        target,
        clusters,
        partition,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def coarse_log_softmax(input: Tensor, clusters: Tensor) -> Tensor:
    """Return, for every class, the log-probability of the cluster that it belongs to.

    Args:
        input: Logits of shape (N, K) or (N, K, d1, ...).
        clusters: The cluster of each class, a tensor of length K.

    Example:
        >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
        >>> coarse_log_softmax(logits, torch.tensor([0, 0, 0, 1])).exp()
        tensor([[0.7500, 0.7500, 0.7500, 0.2500]])
    """
    index = _along_classes(clusters, input).expand_as(input)
    output: Tensor = _CoarseLogSoftmax.apply(input, index)  # type: ignore[no-untyped-call]
    return output


def level_cross_entropy(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    *,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Compute `coarse_cross_entropy` at a level that has been prepared.

    Without a `partition` all classes are looked at: more work, but nothing in it depends on
    the level's values, as torch.compile wants it.
    """
    _check(input, target, clusters, weight)
    _check_options(target, ignore_index, reduction, label_smoothing)
    if input.dtype in (torch.float16, torch.bfloat16):
        input = input.float()
    if target.is_floating_point():
        target = target.to(input.dtype)
    if weight is not None:
        weight = weight.to(input.dtype)
    try:
        if partition is not None and partition.is_finest:
            return F.cross_entropy(
                input,
                target,
                weight,
                ignore_index=ignore_index,
                reduction=reduction,
                label_smoothing=label_smoothing,
            )
        return _reduced_loss(
            input, target, clusters, partition, weight, ignore_index, reduction, label_smoothing
        )
    except IndexError as error:
        raise _target_error(target, len(clusters), ignore_index) from error


def _reduced_loss(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    is_single = input.dim() == 1
    if is_single:
        input, target = input[None], target[None]
    is_soft = target.is_floating_point()
    ignored = None if is_soft else _ignored(target, ignore_index, partition)
    is_plain = not is_soft and ignored is None and weight is None and label_smoothing == 0
    if is_plain and reduction == "mean":
        return _hard_losses(input, target, clusters, partition, mean=True)
    if is_soft:
        losses, counts = _soft_losses(input, target, clusters, weight, label_smoothing), None
    else:
        losses, counts = _index_losses(
            input, target, clusters, partition, weight, ignored, label_smoothing
        )
    if reduction == "none":
        return losses[0] if is_single else losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if counts is None else losses.sum() / counts.sum()


def _ignored(target: Tensor, ignore_index: int, partition: Partition | None) -> Tensor | None:
    """Return which targets do not count; None where it is known without cost that all do."""
    ignored = target == ignore_index
    # Only eagerly on the CPU is looking at the values free.
    can_look = partition is not None and target.device.type == "cpu"
    return None if can_look and not ignored.any() else ignored


def _soft_losses(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    weight: Tensor | None,
    label_smoothing: float,
) -> Tensor:
    """Return the losses for targets of class probabilities."""
    share = target * (1 - label_smoothing) + label_smoothing / len(clusters)
    if weight is not None:
        share = share * _along_classes(weight, input)
    return -(share * coarse_log_softmax(input, clusters)).sum(dim=1)


def _index_losses(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    weight: Tensor | None,
    ignored: Tensor | None,
    label_smoothing: float,
) -> tuple[Tensor, Tensor | None]:
    """Return each target's loss, and for how much it counts in a mean; None is all alike."""
    counts = None
    if ignored is not None:
        counts = (~ignored).to(input.dtype)
        target = target.masked_fill(ignored, 0)
    if weight is not None:
        weights = weight.index_select(0, target.reshape(-1)).view(target.shape)
        counts = weights if counts is None else weights * counts
    if label_smoothing == 0:
        losses = _hard_losses(input, target, clusters, partition, mean=False)
        return (losses if counts is None else losses * counts), counts

    log_probability = coarse_log_softmax(input, clusters)
    hard = -log_probability.gather(1, target.unsqueeze(1)).squeeze(1)
    hard = hard if counts is None else hard * counts
    if weight is not None:
        log_probability = log_probability * _along_classes(weight, input)
    smooth = -log_probability.mean(dim=1)
    smooth = smooth if ignored is None else smooth.masked_fill(ignored, 0)
    return (1 - label_smoothing) * hard + label_smoothing * smooth, counts


def _hard_losses(
    input: Tensor, target: Tensor, clusters: Tensor, partition: Partition | None, *, mean: bool
) -> Tensor:
    if partition is None or partition.is_dense:
        own = clusters.index_select(0, target.reshape(-1)).view(target.shape)
        mates, empty = None, own.unsqueeze(1) != _along_classes(clusters, input)
    else:
        mates, empty = partition.mates(target)
    output: Tensor = _ClusterLoss.apply(input, mates, empty, mean)  # type: ignore[no-untyped-call]
    return output


class _ClusterLoss(Function):
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
    return probability.scatter_add_(1, mates, -within)


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
    largest = members.amax(dim=1, keepdim=True).clamp_min(torch.finfo(input.dtype).min)
    share = (members - largest).exp()
    total = share.sum(dim=1, keepdim=True)
    within = share / total.clamp_min(torch.finfo(input.dtype).tiny)
    return log_probability, within, -(largest + total.log()).squeeze(1)


class _CoarseLogSoftmax(Function):
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


def _along_classes(values: Tensor, input: Tensor) -> Tensor:
    """Shape one value a class so that it broadcasts along dimension 1 of `input`."""
    return values.view(1, -1, *[1] * (input.dim() - 2))


def _check(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    weight: Tensor | None,
) -> None:
    classes = len(clusters)
    dimension = min(1, input.dim() - 1)
    if input.dim() == 0 or input.shape[dimension] != classes:
        raise ValueError(
            f"the level has {classes} classes, so the logits need {classes} entries along "
            f"dimension {max(dimension, 0)}. Got shape {tuple(input.shape)}."
        )
    without_classes = input.shape[:dimension] + input.shape[dimension + 1 :]
    expected = input.shape if target.is_floating_point() else without_classes
    if target.shape != expected:
        kind = "class probabilities" if target.is_floating_point() else "class indices"
        raise ValueError(
            f"a target of {kind} for logits of shape {tuple(input.shape)} must have shape "
            f"{tuple(expected)}. Got {tuple(target.shape)}."
        )
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"weight must have shape ({classes},). Got {tuple(weight.shape)}.")


def _check_options(
    target: Tensor, ignore_index: int, reduction: str, label_smoothing: float
) -> None:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"reduction {reduction!r} is not supported. Must be one of 'mean', 'sum', 'none'."
        )
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0 and 1. Got {label_smoothing}.")
    if target.is_floating_point() and ignore_index >= 0:
        raise ValueError(
            f"ignore_index={ignore_index} means nothing for a target of class probabilities; "
            f"give such a row a target of zeros instead."
        )


def _target_error(target: Tensor, classes: int, ignore_index: int) -> ValueError:
    wrong = (target != ignore_index) & ((target < 0) | (target >= classes))
    entry = tuple(wrong.nonzero()[0].tolist())
    place = f"[{', '.join(map(str, entry))}]" if entry else ""
    return ValueError(
        f"target{place} is {int(target[entry])}; class indices must lie in 0..{classes - 1} "
        f"or equal ignore_index ({ignore_index})."
    )
