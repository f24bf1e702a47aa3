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
    """Return the losses of a block, and their derivatives by its logits, in their memory."""
    losses = weight = logits.new_zeros(len(logits))
    within = less = None
    if asked.inside is not None:
        within = logits.masked_fill(~asked.inside, -torch.inf)
        own, factor = _exponentials(within, shards)
        losses, weight = losses - asked.of_set * own, weight + asked.of_set
        within.mul_((factor * asked.of_set)[:, None])
    if asked.shares is not None:
        found, shared, less = _of_shares(logits, asked.shares, sums, shards)
        losses, weight = losses - asked.of_shares * found, weight + asked.of_shares * shared
    total, factor = _exponentials(logits, shards)
    slope = logits.mul_((factor * weight)[:, None])
    if within is not None:
        slope.sub_(within)
    if less is not None:
        slope.addcmul_(less.expand_as(slope), asked.of_shares[:, None], value=-1)
    return losses.add_(total * weight), slope


def _exponentials(logits: Tensor, shards: Shards) -> tuple[Tensor, Tensor]:
    """Return the log-sum-exp of each row, and what makes a softmax of what is left of the logits.

    All of a row may be -inf; it is 0 then.
    """
    if not logits.shape[1]:
        nothing = logits.new_full((len(logits),), -torch.inf)
        return shards.log_sums(nothing), nothing
    largest = logits.amax(dim=1)
    largest.clamp_min_(torch.finfo(logits.dtype).min)  # as -inf - -inf is NaN
    total = shards.log_sums(logits.sub_(largest[:, None]).exp_().sum(dim=1).log_().add_(largest))
    return total, (largest - total.clamp_min(torch.finfo(logits.dtype).min)).exp_()


def _of_shares(
    logits: Tensor, shares: Tensor, sums: ClusterSums, shards: Shards
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum of the clusters' log-sum-exp by their shares, and that of the shares.

    And what each logit takes off the softmax.
    """
    of_cluster, within = sums.log_add(logits), sums.add(shares)
    is_even = len(shares) == 1
    found = of_cluster @ shares[0] if is_even else (shares * of_cluster).sum(dim=1)
    together = torch.stack([found, shares.sum(dim=1).expand_as(found)])
    found, shared = shards.reduced(together, dist.ReduceOp.SUM)
    if of_cluster is not logits:
        within = of_cluster.neg_().add_(logits).exp_().mul_(within)
    return found, shared, within
