"""The targets of a fused loss: how their losses are computed, and what divides their sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from ._candidates import Spans, check_mask, class_spans, mean_weights
from ._cluster_sums import ClusterSums
from ._level_loss import level_cross_entropy
from ._linear_layer import Gradients, Layer, Wanted
from ._linear_rows import ROW_ENTRIES, Asked, row_losses
from ._linear_sets import Sets
from ._linear_tiles import KEPT_ENTRIES, make_plan, tiled_losses
from ._loss_checks import Options, check_indices
from ._marginal import Partition
from ._shards import Shards
from ._shared_batch import Batch


@dataclass
class Targets(ABC):
    """The targets of a batch, for a loss at a level.

    Args:
        target: Of shape (N) or (N, K).
        clusters: The level.
        partition: The same, prepared; None if it has not been.
        options: With a weight in the type that all is computed in.
        spans: Where targets may be nodes.
        dtype: The type that all is computed in.
        batch: The samples, of all processes that have some of the classes.
    """

    target: Tensor
    clusters: Tensor
    partition: Partition | None
    options: Options
    spans: Spans | None
    dtype: torch.dtype
    batch: Batch

    def __post_init__(self) -> None:
        counts = _counts(self.target, self.options, self.spans, self.dtype)
        self.counts = self.batch.gather(counts)
        #: What the sum of the losses is multiplied by; None where there is to be no sum.
        self.share: Tensor | None = None
        if self.options.reduction == "sum":
            self.share = self.counts.new_ones(())
        elif self.options.reduction == "mean":
            self.share = 1 / self.counts.sum()
        of_all = self.batch.gather if self.target.dim() == 1 else self.batch.own_columns
        self.target = of_all(self.target)

    @abstractmethod
    def losses(
        self, layer: Layer, scale: Tensor | None, wanted: Wanted
    ) -> tuple[Tensor, Gradients]:
        """Return each sample's loss, and the gradients of their sum.

        Args:
            layer: What gives the logits.
            scale: What the losses are multiplied by before, one number or one for each; None
                if there are to be no gradients.
            wanted: The gradients that somebody needs.
        """

    @abstractmethod
    def logits_at_once(self) -> int:
        """Return of how many logits there are tensors at a time, those of all processes counted."""

    def plain_loss(self, logits: Tensor) -> Tensor:
        """Return the loss of all logits at once."""
        parts = self.clusters, self.partition, self.options, self.spans
        return level_cross_entropy(logits, self.target, *parts)


class SetTargets(Targets):
    """Classes, or nodes: each target is one set of classes."""

    def logits_at_once(self) -> int:
        """Return those of a block and of a tile."""
        plan = make_plan(len(self.target), self.batch.shards.largest)
        return plan.rows * (self.batch.shards.largest * plan.is_kept + 2 * plan.columns)

    def losses(
        self, layer: Layer, scale: Tensor | None, wanted: Wanted
    ) -> tuple[Tensor, Gradients]:
        """Return the losses in tiles, without samples whose loss is 0 anyway."""
        spans = class_spans(self.clusters) if self.spans is None else self.spans
        known = self.target.masked_fill(self.counts == 0, 0)
        counting = ((self.counts != 0) & ~spans.is_everything(known)).nonzero().squeeze(1)
        # Samples with the same set side by side, in the same order in all processes.
        starts, stops = spans.edges(known[counting])
        counting = counting[(starts * len(self.clusters) + stops).argsort(stable=True)]
        counts, shards = self.counts[counting], self.batch.shards
        sets = _sets(spans, known[counting]).within(shards.own)
        some = layer.take(counting)
        grads = Gradients(some, wanted)
        factor = None if scale is None else counts * scale.expand(len(known))[counting]
        found = tiled_losses(some, sets, grads, factor, shards) * counts
        grads.spread(counting, len(known))
        return found.new_zeros(len(known)).index_copy_(0, counting, found), grads


class OtherTargets(Targets):
    """Probabilities, masks of candidates, and all targets that are smoothed."""

    def logits_at_once(self) -> int:
        """Return those of a block, for each of the tensors that are of its size."""
        return 6 * max(ROW_ENTRIES, self.batch.shards.largest)

    def losses(
        self, layer: Layer, scale: Tensor | None, wanted: Wanted
    ) -> tuple[Tensor, Gradients]:
        """Return the losses in blocks of samples."""
        grads, shards = Gradients(layer, wanted), self.batch.shards
        factor = None if scale is None else scale.expand(len(self.target))
        sums = ClusterSums(self.clusters, shards)
        asked_of = self._asked_of(sums, shards)
        return row_losses(layer, asked_of, sums, shards, grads, factor), grads

    def _asked_of(self, sums: ClusterSums, shards: Shards) -> Callable[[slice], Asked]:
        """Return a function that returns what the targets in a slice ask for."""
        smoothing, own = self.options.label_smoothing, shards.own
        weight = self.clusters.new_ones(own.stop - own.start, dtype=self.dtype)
        weight = weight if self.options.weight is None else self.options.weight[own]
        even = smoothing / shards.classes
        spread = even * weight[None] if smoothing else None
        ones = torch.ones_like(self.counts)
        if self.target.is_floating_point():
            target = self.target.to(self.dtype)
            return lambda rows: Asked(
                None, ones[rows], (target[rows] * (1 - smoothing) + even) * weight, ones[rows]
            )
        is_mask = self.target.dtype == torch.bool
        inside_of = self._widened(sums, shards) if is_mask else self._of_nodes(own)
        of_spread = ones if is_mask else (self.target != self.options.ignore_index).to(self.dtype)

        def asked_of(rows: slice) -> Asked:
            inside, is_everything = inside_of(rows)
            of_set = self.counts[rows].masked_fill(is_everything, 0) * (1 - smoothing)
            return Asked(inside, of_set, spread, of_spread[rows])

        return asked_of

    def _widened(self, sums: ClusterSums, shards: Shards) -> Callable[[slice], tuple[Tensor, ...]]:
        """Return a function of masks: the clusters of their classes, and which are everything."""

        def inside_of(rows: slice) -> tuple[Tensor, ...]:
            inside = sums.add(self.target[rows].to(self.dtype)) > 0
            outside = (~inside).sum(dim=1)
            return inside, shards.reduced(outside, dist.ReduceOp.SUM) == 0

        return inside_of

    def _of_nodes(self, own: slice) -> Callable[[slice], tuple[Tensor, ...]]:
        """Return the same of classes and nodes."""
        spans = class_spans(self.clusters) if self.spans is None else self.spans
        known = self.target.masked_fill(self.target == self.options.ignore_index, 0)
        places, is_everything = spans.places[own], spans.is_everything(known)
        starts, stops = (edge[:, None] for edge in spans.edges(known))

        def inside_of(rows: slice) -> tuple[Tensor, ...]:
            inside = (places >= starts[rows]) & (places < stops[rows])
            return inside, is_everything[rows]

        return inside_of


def flat_targets(target: Tensor, clusters: Tensor, options: Options, spans: Spans | None) -> Tensor:
    """Return targets of shape (...) or (..., K), whose shapes have been checked, as (N) or (N, K).

    Raises:
        ValueError: One of them is nothing.
    """
    is_index = _is_index(target)
    target = target.reshape(-1) if is_index else target.reshape(-1, len(clusters))
    if is_index:
        nodes = len(clusters) if spans is None else len(spans.own)
        check_indices(target, len(clusters), nodes, options.ignore_index)
    elif target.dtype == torch.bool:
        check_mask(target)
    return target


def targets_of(
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    spans: Spans | None,
    dtype: torch.dtype,
    batch: Batch,
) -> Targets:
    """Return the targets of all processes from what `flat_targets` returned in each."""
    if options.weight is not None:
        options = options._replace(weight=options.weight.to(dtype))
    kind = SetTargets if _is_index(target) and options.label_smoothing == 0 else OtherTargets
    return kind(target, clusters, partition, options, spans, dtype, batch)


def _is_index(target: Tensor) -> bool:
    return not target.is_floating_point() and target.dtype != torch.bool


def _sets(spans: Spans, target: Tensor) -> Sets:
    """Return the classes that each target is at the level."""
    order = torch.empty_like(spans.places)
    order[spans.places] = torch.arange(len(order), device=order.device)
    return Sets(order, *spans.edges(target))


def _counts(target: Tensor, options: Options, spans: Spans | None, dtype: torch.dtype) -> Tensor:
    """Return how much each target counts in a mean."""
    weight = options.weight
    if _is_index(target):
        ignored = target == options.ignore_index
        counts = (~ignored).to(dtype)
        if weight is None:
            return counts
        return counts * _weights(weight, target.masked_fill(ignored, 0), spans)
    if target.dtype != torch.bool or weight is None:
        return torch.ones(len(target), dtype=dtype, device=target.device)
    blocks = torch.split(target, max(1, KEPT_ENTRIES // len(weight)))
    return torch.cat([mean_weights(weight, block) for block in blocks])


def _weights(weight: Tensor, target: Tensor, spans: Spans | None) -> Tensor:
    """Return the weight of each class, and the mean weight of each node's classes."""
    is_node = target >= len(weight)
    weights = weight[target.masked_fill(is_node, 0)]
    if spans is not None and is_node.any():
        blocks = torch.split(target[is_node], max(1, KEPT_ENTRIES // len(weight)))
        found = [spans.weights(weight, block, weight[None]) for block in blocks]
        weights[is_node] = torch.cat(found)
    return weights
