"""The targets of a fused loss: how their losses are computed, and what divides their sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from ._candidates import Spans, check_mask, class_spans, mean_weights
from ._level_loss import level_cross_entropy
from ._linear_layer import Gradients, Layer, Wanted
from ._linear_rows import row_losses
from ._linear_sets import Sets
from ._linear_tiles import KEPT_ENTRIES, tiled_losses
from ._loss_checks import Options, check_indices
from ._marginal import Partition


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
    """

    target: Tensor
    clusters: Tensor
    partition: Partition | None
    options: Options
    spans: Spans | None
    dtype: torch.dtype

    def __post_init__(self) -> None:
        self.counts = _counts(self.target, self.options, self.spans, self.dtype)
        #: What the sum of the losses is multiplied by; None where there is to be no sum.
        self.share: Tensor | None = None
        if self.options.reduction == "sum":
            self.share = self.counts.new_ones(())
        elif self.options.reduction == "mean":
            self.share = 1 / self.counts.sum()

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

    def plain_loss(self, logits: Tensor) -> Tensor:
        """Return the loss of all logits at once."""
        parts = self.clusters, self.partition, self.options, self.spans
        return level_cross_entropy(logits, self.target, *parts)


class SetTargets(Targets):
    """Classes, or nodes: each target is one set of classes."""

    def losses(
        self, layer: Layer, scale: Tensor | None, wanted: Wanted
    ) -> tuple[Tensor, Gradients]:
        """Return the losses in tiles, without samples whose loss is 0 anyway."""
        spans = class_spans(self.clusters) if self.spans is None else self.spans
        known = self.target.masked_fill(self.counts == 0, 0)
        counting = ((self.counts != 0) & ~spans.is_everything(known)).nonzero().squeeze(1)
        # Samples with the same set side by side.
        starts, stops = spans.edges(known[counting])
        counting = counting[(starts * len(self.clusters) + stops).argsort()]
        counts, sets = self.counts[counting], _sets(spans, known[counting])
        some = layer.take(counting)
        grads = Gradients(some, wanted)
        factor = None if scale is None else counts * scale.expand(len(known))[counting]
        found = tiled_losses(some, sets, grads, factor) * counts
        grads.spread(counting, len(known))
        return found.new_zeros(len(known)).index_copy_(0, counting, found), grads


class OtherTargets(Targets):
    """Probabilities, masks of candidates, and all targets that are smoothed."""

    def losses(
        self, layer: Layer, scale: Tensor | None, wanted: Wanted
    ) -> tuple[Tensor, Gradients]:
        """Return the losses in blocks of samples."""
        grads = Gradients(layer, wanted)
        factor = None if scale is None else scale.expand(len(self.target))
        partition = self.partition or Partition(self.clusters)
        options = self.options._replace(reduction="none")

        def loss_of(logits: Tensor, rows: slice) -> Tensor:
            target = self.target[rows]
            return level_cross_entropy(
                logits, target, self.clusters, partition, options, self.spans
            )

        return row_losses(layer, loss_of, grads, factor), grads


def targets_of(
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    spans: Spans | None,
    dtype: torch.dtype,
) -> Targets:
    """Return targets of shape (...) or (..., K) whose shapes have been checked."""
    is_index = _is_index(target)
    target = target.reshape(-1) if is_index else target.reshape(-1, len(clusters))
    if is_index:
        nodes = len(clusters) if spans is None else len(spans.own)
        check_indices(target, len(clusters), nodes, options.ignore_index)
    elif target.dtype == torch.bool:
        check_mask(target)
    if options.weight is not None:
        options = options._replace(weight=options.weight.to(dtype))
    kind = SetTargets if is_index and options.label_smoothing == 0 else OtherTargets
    return kind(target, clusters, partition, options, spans, dtype)


def _is_index(target: Tensor) -> bool:
    return not target.is_floating_point() and target.dtype != torch.bool


def _sets(spans: Spans, target: Tensor) -> Sets:
    """Return the classes that each target is at the level."""
    order = torch.empty_like(spans.places)
    order[spans.places] = torch.arange(len(order), device=order.device)
    return Sets(order, spans.places, *spans.edges(target))


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
