"""The marginalised loss (equation 1 of the paper) as pure functions.

At a level of the hierarchy any class in the target's cluster counts as right, so the loss is
the negative log of the cluster's probability: the log-sum-exp over all classes minus the
log-sum-exp over the classes of the target's cluster. The paper's equation 1 lacks the first
term; without it, the loss could be lowered without end by raising all logits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from ._marginal import ClusterLoss, CoarseLogSoftmax, Partition, along_classes
from ._util.arrays import to_integers

__all__ = ["coarse_cross_entropy", "coarse_log_softmax"]

_NO_TARGET = torch.iinfo(torch.int64).min


class Options(NamedTuple):
    """What torch's cross-entropy takes beside logits and targets."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float


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
    So class weights still belong to the target's class; of a target of class probabilities
    only the sum over each cluster matters; and label smoothing, which spreads a share of the
    target evenly over all K classes, gives each cluster a share in proportion to its size.
    If every class is a cluster of its own, this is torch's cross-entropy. Half-precision
    logits are converted to float32, and so is the loss, as under autocast.

    Args:
        input: Logits of shape (K), (N, K) or (N, K, d1, ...).
        target: Class indices of shape (), (N) or (N, d1, ...), or class probabilities of
            the shape of `input`.
        clusters: The level: the cluster of each class, an array of length K.
        weight: A weight for each class. Defaults to None.
        ignore_index: The target index that is ignored; not with probabilities. Defaults to
            -100.
        reduction: ``"mean"``, ``"sum"`` or ``"none"``. Defaults to ``"mean"``.
        label_smoothing: The share of the target that is spread evenly over the classes.
            Defaults to 0.0.

    Examples:
        >>> logits = torch.tensor([[2.0, 1.0, 0.0, -1.0]])
        >>> coarse_cross_entropy(logits, torch.tensor([1]), [0, 0, 1, 1])
        tensor(0.1269)
        >>> logits.softmax(1)[0, :2].sum().log().neg()
        tensor(0.1269)
    """
    if not isinstance(clusters, Tensor):
        clusters = torch.from_numpy(to_integers(clusters, "clusters"))
    clusters = clusters.to(input.device)
    # A partition's shapes depend on the values of `clusters`, which a compiled graph cannot.
    partition = None if torch.compiler.is_compiling() else _prepare(clusters)
    options = Options(weight, ignore_index, reduction, label_smoothing)
    return level_cross_entropy(input, target, clusters, partition, options)


def coarse_log_softmax(input: Tensor, clusters: Tensor) -> Tensor:
    """Return, for every class, the log-probability of the cluster that it belongs to.

    Args:
        input: Logits of shape (N, K) or (N, K, d1, ...).
        clusters: The cluster of each class, a tensor of length K.

    Examples:
        >>> logits = torch.tensor([[0.0, 0.0, 0.0, 0.0]])
        >>> coarse_log_softmax(logits, torch.tensor([0, 0, 0, 1])).exp()
        tensor([[0.7500, 0.7500, 0.7500, 0.2500]])
    """
    index = along_classes(clusters, input).expand_as(input)
    output: Tensor = CoarseLogSoftmax.apply(input, index)  # type: ignore[no-untyped-call]
    return output


def level_cross_entropy(
    input: Tensor, target: Tensor, clusters: Tensor, partition: Partition | None, options: Options
) -> Tensor:
    """Compute `coarse_cross_entropy` at a level that has been prepared.

    Without a `partition` a mask over all classes is used: more work, but no shape depends on
    the level, so that torch.compile needs no new graph for another one.
    """
    _check_shapes(input, target, clusters, options.weight)
    _check_options(target, options)
    if input.dtype in (torch.float16, torch.bfloat16):
        input = input.float()
    if target.is_floating_point():
        target = target.to(input.dtype)
    if options.weight is not None:
        options = options._replace(weight=options.weight.to(input.dtype))
    arguments = input, target, clusters, partition, options
    # Most batches have no target to ignore, and to look for one is a good part of a loss that
    # is this small. So we first hope for none: an index that is no class raises an error.
    try:
        return _level_loss(*arguments, find_ignored=False)
    except IndexError:
        try:
            return _level_loss(*arguments, find_ignored=True)
        except IndexError as error:
            raise _target_error(target, len(clusters), options.ignore_index) from error


def _level_loss(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    *,
    find_ignored: bool,
) -> Tensor:
    """Compute the loss of checked arguments.

    Without `find_ignored`, targets to ignore are looked for only where they could pass
    unnoticed; elsewhere they raise an IndexError.
    """
    weight, ignore_index, reduction, label_smoothing = options
    if partition is not None and partition.is_finest:
        return F.cross_entropy(
            input,
            target,
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
    is_single = input.dim() == 1
    if is_single:
        input, target = input[None], target[None]
    if target.is_floating_point():
        losses, counts = _soft_losses(input, target, clusters, weight, label_smoothing), None
    else:
        # On a GPU a wrong index fails an assertion on the device, too late to be caught here, and
        # a compiled graph cannot try again. An ignore_index that is a class raises no error.
        is_caught = partition is not None and input.device.type == "cpu"
        is_class = 0 <= ignore_index < len(clusters)
        ignored = target == ignore_index if find_ignored or is_class or not is_caught else None
        if ignored is None and weight is None and label_smoothing == 0 and reduction == "mean":
            return _hard_losses(input, target, clusters, partition, mean=True)
        losses, counts = _index_losses(
            input, target, clusters, partition, weight, ignored, label_smoothing
        )
    if reduction == "none":
        return losses[0] if is_single else losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if counts is None else losses.sum() / counts.sum()


def _soft_losses(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    weight: Tensor | None,
    label_smoothing: float,
) -> Tensor:
    """Return the losses for targets of class probabilities."""
    # Summed over the classes, each cluster's log-probability counts once for every class in
    # it, weighted by that class's share: the cluster gets the sum of its classes' shares.
    share = target * (1 - label_smoothing) + label_smoothing / len(clusters)
    if weight is not None:
        share = share * along_classes(weight, input)
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
    """Return each target's loss, and its weight in a mean; None if all are 1."""
    counts = None
    if ignored is not None:
        counts = (~ignored).to(input.dtype)
        target = target.masked_fill(ignored, 0)  # any valid class; its loss is multiplied by 0
    if weight is not None:
        weights = weight.index_select(0, target.reshape(-1)).view(target.shape)
        counts = weights if counts is None else weights * counts
    if label_smoothing == 0:
        losses = _hard_losses(input, target, clusters, partition, mean=False)
        return (losses if counts is None else losses * counts), counts

    # As torch does: the smoothed part has the weights of all classes, not that of the target.
    log_probability = coarse_log_softmax(input, clusters)
    # Those to ignore are class 0 by now, and nll_loss must ignore no others: by its default it
    # would pass over a target of -100 where ignore_index is another number.
    hard = F.nll_loss(log_probability, target, reduction="none", ignore_index=_NO_TARGET)
    hard = hard if counts is None else hard * counts
    if weight is not None:
        log_probability = log_probability * along_classes(weight, input)
    smooth = -log_probability.mean(dim=1)
    smooth = smooth if ignored is None else smooth.masked_fill(ignored, 0)
    return (1 - label_smoothing) * hard + label_smoothing * smooth, counts


def _hard_losses(
    input: Tensor, target: Tensor, clusters: Tensor, partition: Partition | None, *, mean: bool
) -> Tensor:
    """Return -log of the probability of each target's cluster, or the mean of that."""
    if partition is None or partition.is_dense:
        own = clusters.index_select(0, target.reshape(-1)).view(target.shape)
        members, empty = None, own.unsqueeze(1) != along_classes(clusters, input)
    else:
        members, empty = partition.members(target)
    output: Tensor = ClusterLoss.apply(input, members, empty, mean)  # type: ignore[no-untyped-call]
    return output


def _prepare(clusters: Tensor) -> Partition:
    if clusters.dim() != 1 or clusters.is_floating_point() or clusters.dtype == torch.bool:
        raise ValueError(
            f"clusters must give an integer to each class. Got dtype {clusters.dtype} and shape "
            f"{tuple(clusters.shape)}."
        )
    if clusters.min() < 0:
        at = int(clusters.argmin())
        raise ValueError(f"clusters[{at}] is {int(clusters[at])}; clusters count from 0.")
    return Partition(clusters.long())


def _check_shapes(input: Tensor, target: Tensor, clusters: Tensor, weight: Tensor | None) -> None:
    classes = len(clusters)
    dimension = min(1, input.dim() - 1)  # of the classes: 1, or 0 for a single prediction
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


def _check_options(target: Tensor, options: Options) -> None:
    _, ignore_index, reduction, label_smoothing = options
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
