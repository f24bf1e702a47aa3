"""The loss of any other target, from features, in blocks of samples with all of their logits.

Probabilities, masks and smoothing say something of every class. Whatever they are, the loss of a
sample is a sum of up to two parts. The first is -log of the probability of a set of classes.
The second is -log of the probability of each cluster, times a share; a share of a class is one of
its cluster. The derivatives are those of `_marginal` for either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ._cluster_sums import ClusterSums
from ._linear_layer import Gradients, Layer
from ._linear_tiles import slices
from ._shards import Shards

# Of a block's logits: 32 MiB in float32; the loss has several tensors of that size.
ROW_ENTRIES = 2**23


class Asked(NamedTuple):
    """What the targets of a block ask for, of the classes of this process.

    Args:
        inside: Which classes are in each sample's set; None where there are no sets.
        of_set: What the part of the set is multiplied by, for each sample.
        shares: Of each class, of shape (rows, classes) or (1, classes); None if there are none.
        of_shares: What the part of the shares is multiplied by, for each sample.
    """

    inside: Tensor | None
    of_set: Tensor
    shares: Tensor | None
    of_shares: Tensor


def row_losses(
    layer: Layer,
    asked_of: Callable[[slice], Asked],
    sums: ClusterSums,
    shards: Shards,
    grads: Gradients,
    scale: Tensor | None,
) -> Tensor:
    """Return the loss of each sample, and add up the gradients.

    Args:
        layer: What gives the logits.
        asked_of: Returns what the targets of the samples in a slice ask for.
        sums: Those of the level.
        shards: Where the classes are. All else is of those of this process.
        grads: Those to add to.
        scale: What each loss is multiplied by for the gradients; None if there are to be none.
    """
    own = slice(0, len(layer.weight))
    losses = [layer.input.new_empty(0)]
    for rows in slices(len(layer.input), max(1, ROW_ENTRIES // shards.largest)):
        logits = layer.input.new_empty(rows.stop - rows.start, own.stop)
        layer.logits(rows, own, logits)
        found, slope = _block(logits, asked_of(rows), sums, shards)
        losses.append(found)
        if scale is not None:
            grads.begin(rows, scale[rows])
            grads.add(own, slope)
            grads.end()
    return torch.cat(losses)


def _block(
    logits: Tensor, asked: Asked, sums: ClusterSums, shards: Shards
) -> tuple[Tensor, Tensor]:
    """Return the losses of a block, and their derivatives by its logits."""
    total = shards.log_sums(logits.logsumexp(dim=1))
    losses, weight = torch.zeros_like(total), torch.zeros_like(total)
    less: Tensor | float = 0.0
    if asked.inside is not None:
        found, less = _of_set(logits, asked, total, shards)
        losses, weight = losses + found, weight + asked.of_set
    if asked.shares is not None:
        found, shared, within = _of_shares(logits, asked.shares, total, sums, shards)
        losses, weight = losses + asked.of_shares * found, weight + asked.of_shares * shared
        less = within.mul_(asked.of_shares[:, None]).add_(less)
    slope = logits.sub_(total[:, None]).exp_().mul_(weight[:, None])
    return losses, slope.sub_(less)


def _of_set(logits: Tensor, asked: Asked, total: Tensor, shards: Shards) -> tuple[Tensor, Tensor]:
    """Return the part of the sets, and the softmax within them, both multiplied by `of_set`."""
    within = logits.masked_fill(~asked.inside, -torch.inf)  # type: ignore[operator]
    own = shards.log_sums(within.logsumexp(dim=1))
    found = (total - own) * asked.of_set
    own = own.clamp_min(torch.finfo(own.dtype).min)  # as -inf - -inf is NaN
    return found, within.sub_(own[:, None]).exp_().mul_(asked.of_set[:, None])


def _of_shares(
    logits: Tensor, shares: Tensor, total: Tensor, sums: ClusterSums, shards: Shards
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the part of the shares, their sum, and what each logit takes off the softmax."""
    # Finite, as a share of 0 times an output of -inf is NaN.
    of_cluster = sums.log_add(logits).clamp_min(torch.finfo(logits.dtype).min)
    found = (shares * (total[:, None] - of_cluster)).sum(dim=1)
    together = torch.stack([found, shares.sum(dim=1).expand_as(found)])
    found, shared = shards.reduced(together, dist.ReduceOp.SUM)
    within = (logits - of_cluster).exp_()
    return found, shared, within.mul_(sums.add(shares))
