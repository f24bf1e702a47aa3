"""The marginalised loss as a module with a level."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ._candidates import spans_at
from ._level_loss import level_cross_entropy
from ._level_module import LevelLoss
from ._loss_checks import to_target, without_hierarchy
from .hierarchy import Hierarchy


class CoarseToFineLoss(LevelLoss, nn.CrossEntropyLoss):
    """A drop-in for `torch.nn.CrossEntropyLoss` that treats clusters as classes at coarse levels.

    It takes the same logits over the K classes and the same targets at every level. At
    level 0, the coarsest, where it starts, and at every level but the last, the model is
    only asked for the target's cluster. At the last level, which is also -1, this is torch's
    cross-entropy with the same options. In eval mode it is always that, so that validation
    losses of different epochs can be compared. A model's `eval` does not reach a loss outside
    of it: call ``criterion.eval()`` too. A loss in training mode that is computed without
    gradients at a coarse level warns, once.

    Targets known up to a cluster may be nodes of ``hierarchy.nodes``, mixed with classes, and
    targets of several candidates a boolean mask, see `coarse_cross_entropy`. A sample counts at
    the coarser of its own node and the level in force, in eval mode at its own node.

    Its state dict has the same keys as that of `torch.nn.CrossEntropyLoss`, and loads into it
    and from it; the level is kept in the state dict's metadata.

    Args:
        hierarchy: The levels. Defaults to None: plain cross-entropy until one is set.
        weight: See `coarse_cross_entropy`, as for all that follow. Defaults to None.
        ignore_index: Defaults to -100.
        reduction: Defaults to ``"mean"``.
        label_smoothing: Defaults to 0.0.

    Attributes:
        hierarchy: The levels, if there are any yet; setting others goes back to the coarsest level.
        level: The level in force, from 0, the coarsest; -1 may be set for the finest.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> criterion = CoarseToFineLoss(hierarchy)
        >>> logits, target = torch.tensor([[2.0, 1.0, 0.0, -1.0]]), torch.tensor([1])
        >>> criterion(logits, target)
        tensor(0.1269)
        >>> criterion.level = 1
        >>> criterion(logits, target)
        tensor(1.4402)
        >>> hierarchy.nodes.names[5]
        'level 0 cluster 0'
        >>> criterion(logits, torch.tensor([5]))  # the first cluster, at any level
        tensor(0.1269)
    """

    def __init__(
        self,
        hierarchy: Hierarchy | None = None,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(
            weight,
            ignore_index=ignore_index,
            reduction=reduction,
            label_smoothing=label_smoothing,
        )
        self._begin(hierarchy)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss at the level in force; in eval mode at the finest."""
        if self._clusters is None:
            return self._plain(input, target)
        self._count_evaluated(input, target)
        options = self._options
        if torch.compiler.is_compiling():
            clusters = self._compiled_level(self._clusters)
            spans = spans_at(*self._slices, clusters)
            return level_cross_entropy(input, target, clusters, None, options, spans)
        self._notice()
        level = self._current if self.training else -1
        partition, spans = self._prepared(self._clusters, level)
        return level_cross_entropy(input, target, partition.clusters, partition, options, spans)

    def _plain(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss without a hierarchy, which can be of classes and of masks of them."""
        target = to_target(target)
        if target.dtype == torch.bool:
            classes = torch.arange(input.shape[min(1, input.dim() - 1)], device=input.device)
            return level_cross_entropy(input, target, classes, None, self._options)
        try:
            return super().forward(input, target)
        except IndexError as error:
            raise without_hierarchy(error) from error

    def _compiled_level(self, clusters: Tensor) -> Tensor:
        """Return a row of all levels, chosen on the device."""
        return clusters.index_select(0, self._level[None])[0] if self.training else clusters[-1]
