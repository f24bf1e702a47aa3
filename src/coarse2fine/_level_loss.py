"""The marginalised loss at a level that has been prepared, for every kind of target."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from ._candidates import Spans, check_mask, mean_weights, widened
from ._loss_checks import Options, check_options, check_shapes, target_error, to_target
from ._marginal import ClusterLoss, Partition, along_classes, cluster_log_softmax

_NO_TARGET = torch.iinfo(torch.int64).min


def level_cross_entropy(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    spans: Spans | None = None,
) -> Tensor:
    """Compute `coarse_cross_entropy` at a level that has been prepared.

    Without a `partition` a mask over all classes is used: more work, but no shape depends on
    the level, so that torch.compile needs no new graph for another one. With `spans`, targets
    may be nodes.
    """
    target = to_target(target)
    check_shapes(input, target, clusters, options.weight)
    check_options(target, options)
    if input.dtype in (torch.float16, torch.bfloat16):
        input = input.float()
    if target.is_floating_point():
        target = target.to(input.dtype)
    if options.weight is not None:
        options = options._replace(weight=options.weight.to(input.dtype))
    # Elsewhere, to look would be to wait for the device, or to break a compiled graph.
    is_watched = target.device.type == "cpu" and not torch.compiler.is_compiling()
    if target.dtype == torch.bool and is_watched:
        check_mask(target)
    is_single = input.dim() == 1
    batch = (input[None], target[None]) if is_single else (input, target)
    try:
        loss = _level_loss(*batch, clusters, partition, options, spans)
    except IndexError as error:
        count = len(clusters) if spans is None else len(spans.own)
        raise target_error(target, len(clusters), count, options.ignore_index) from error
    return loss[0] if is_single and options.reduction == "none" else loss


def _level_loss(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    spans: Spans | None,
) -> Tensor:
    """Compute the loss of checked arguments, by whichever way suits the target."""
    if target.dtype == torch.bool:
        return _mask_loss(input, target, clusters, partition, options)
    # On a GPU a wrong index fails an assertion on the device, too late to be caught here, and
    # a compiled graph cannot try again.
    is_caught = partition is not None and input.device.type == "cpu"
    is_index = not target.is_floating_point()
    if is_index and spans is not None and not is_caught:
        return _node_loss(input, target, clusters, spans, options, is_watched=False)
    arguments = input, target, clusters, partition, options
    # Most batches have neither nodes nor targets to ignore, and to look for one is a good part
    # of a loss that is this small. So we first hope for none: an index that is no class raises
    # an error.
    try:
        return _class_loss(*arguments, find_ignored=not is_caught)
    except IndexError:
        if spans is not None and _has_nodes(target, len(clusters), options.ignore_index):
            return _node_loss(input, target, clusters, spans, options, is_watched=True)
        return _class_loss(*arguments, find_ignored=True)


def _class_loss(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    *,
    find_ignored: bool,
) -> Tensor:
    """Compute the loss of targets that are classes, or probabilities of them.

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
    if target.is_floating_point():
        losses = _soft_losses(input, target, clusters, weight, label_smoothing)
        return _reduced(losses, None, reduction)
    is_class = 0 <= ignore_index < len(clusters)  # an ignored class raises no error
    ignored = target == ignore_index if find_ignored or is_class else None
    if ignored is None and weight is None and label_smoothing == 0 and reduction == "mean":
        return _hard_losses(input, target, clusters, partition, mean=True)
    losses, counts = _index_losses(
        input, target, clusters, partition, weight, ignored, label_smoothing
    )
    return _reduced(losses, counts, reduction)


def _mask_loss(
    input: Tensor, mask: Tensor, clusters: Tensor, partition: Partition | None, options: Options
) -> Tensor:
    """Compute the loss of targets that are masks of candidate classes."""
    is_finest = partition is not None and partition.is_finest
    outside = ~(mask if is_finest else widened(mask, clusters))
    counts = None if options.weight is None else mean_weights(options.weight, mask)
    is_everything = ~outside.any(dim=1)
    losses = _set_losses(input, None, outside, is_everything, counts)
    losses = _smoothed(losses, input, clusters, None, options)
    return _reduced(losses, counts, options.reduction)


def _node_loss(
    input: Tensor,
    target: Tensor,
    clusters: Tensor,
    spans: Spans,
    options: Options,
    *,
    is_watched: bool,
) -> Tensor:
    """Compute the loss of targets that are nodes, whose sizes may be looked at if `is_watched`."""
    ignored = target == options.ignore_index
    target = target.masked_fill(ignored, len(clusters))  # the root, whose loss is 0
    counts = (~ignored).to(input.dtype)
    if options.weight is not None:
        counts = counts * spans.weights(options.weight, target, input)
    members = spans.members(target) if is_watched else None
    slots, empty = members or (None, spans.outside(target, input))
    losses = _set_losses(input, slots, empty, spans.is_everything(target), counts)
    losses = _smoothed(losses, input, clusters, ignored, options)
    return _reduced(losses, counts, options.reduction)


def _set_losses(
    input: Tensor,
    members: Tensor | None,
    empty: Tensor,
    is_everything: Tensor,
    counts: Tensor | None,
) -> Tensor:
    """Return -log of the probability of each set of classes, times its weight."""
    losses: Tensor = ClusterLoss.apply(input, members, empty, False)  # type: ignore[no-untyped-call]
    losses = losses.masked_fill(is_everything, 0)  # rather than what rounding leaves of it
    return losses if counts is None else losses * counts


def _smoothed(
    losses: Tensor, input: Tensor, clusters: Tensor, ignored: Tensor | None, options: Options
) -> Tensor:
    """Return losses with their share of label smoothing."""
    share = options.label_smoothing
    if share == 0:
        return losses
    log_probability = cluster_log_softmax(input, clusters)
    return (1 - share) * losses + share * _spread(log_probability, ignored, options.weight)


def _spread(log_probability: Tensor, ignored: Tensor | None, weight: Tensor | None) -> Tensor:
    """Return the loss of a target that is spread evenly over the classes."""
    # As torch does: with the weights of all classes, not that of the target.
    if weight is not None:
        log_probability = log_probability * along_classes(weight, log_probability)
    smooth = -log_probability.mean(dim=1)
    return smooth if ignored is None else smooth.masked_fill(ignored, 0)


def _reduced(losses: Tensor, counts: Tensor | None, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    return losses.mean() if counts is None else losses.sum() / counts.sum()


def _has_nodes(target: Tensor, classes: int, ignore_index: int) -> bool:
    return bool(((target >= classes) & (target != ignore_index)).any())


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
    return -(share * cluster_log_softmax(input, clusters)).sum(dim=1)


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

    log_probability = cluster_log_softmax(input, clusters)
    # Those to ignore are class 0 by now, and nll_loss must ignore no others: by its default it
    # would pass over a target of -100 where ignore_index is another number.
    hard = F.nll_loss(log_probability, target, reduction="none", ignore_index=_NO_TARGET)
    hard = hard if counts is None else hard * counts
    smooth = _spread(log_probability, ignored, weight)
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
