"""The final layer and the marginalised loss in one module with a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from ._level_module import LevelLoss
from ._linear_layer import Layer, layer_name
from ._linear_loss import level_linear_cross_entropy
from ._sharded_linear import ShardedLinear, sharded_logits
from ._shards import Shards, shards_of
from ._tally import Tally
from .hierarchy import Hierarchy

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh

_COUNTED = 2**23  # logits that are there at once while hits are counted: 32 MiB in float32


class CoarseToFineLinearLoss(LevelLoss):
    """`CoarseToFineLoss` together with the model's final layer, for very many classes.

    It takes features in place of logits and never has all logits at once, see
    `coarse_linear_cross_entropy`; it is to `CoarseToFineLoss` what
    `torch.nn.LinearCrossEntropyLoss` is to `torch.nn.CrossEntropyLoss`. Hierarchy, level,
    modes, targets and a `Curriculum` are those of `CoarseToFineLoss`. The layer is `linear`:
    ``criterion.linear(features)`` are the logits, and another `torch.nn.Linear` may be set in
    its place, such as one that the model has already.

    Its parameters are the layer's: give them to the optimiser too. The keys of its state dict
    are those of `torch.nn.LinearCrossEntropyLoss`, and the level is in the metadata.

    With a `mesh`, each process of torch.distributed has a part of the classes, and samples of
    its own; see [many classes](scale.md#more-classes-than-one-process-can-hold).

    Args:
        in_features: E, the number of features.
        num_classes: K, the number of classes.
        hierarchy: The levels. Defaults to None: plain cross-entropy until one is set.
        bias: Whether the layer has one. Defaults to False.
        device: Of the layer. Defaults to None: torch's own, or that of `mesh`.
        dtype: Of the layer. Defaults to None: torch's own.
        mesh: The processes that the classes are divided among, a `DeviceMesh` of one dimension.
            Defaults to None: all classes are in each process.
        weight: See `coarse_cross_entropy`, as for all that follow. Defaults to None.
        ignore_index: Defaults to -100.
        reduction: Defaults to ``"mean"``.
        label_smoothing: Defaults to 0.0.

    Attributes:
        linear: The final layer.
        hierarchy: The levels, if there are any yet; setting others goes back to the coarsest level.
        level: The level in force, from 0, the coarsest; -1 may be set for the finest.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> criterion = CoarseToFineLinearLoss(8, 4, hierarchy)
        >>> features, target = torch.randn(5, 8), torch.tensor([0, 3, 1, 2, 2])
        >>> criterion(features, target).backward()
        >>> criterion.linear.weight.grad.shape
        torch.Size([4, 8])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        hierarchy: Hierarchy | None = None,
        *,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        mesh: DeviceMesh | None = None,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if mesh is None:
            self.linear = _linear(in_features, num_classes, bias, device, dtype)
        elif device is not None:
            raise ValueError("give device or mesh, not both; the layer is where its mesh is.")
        else:
            self.linear = ShardedLinear(in_features, num_classes, bias, mesh, dtype)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing
        self._begin(hierarchy)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Return the loss of features at the level in force; in eval mode at the finest."""
        layer = Layer(input, self.linear.weight, self.linear.bias)
        if self._clusters is None:
            classes = torch.arange(len(layer.weight), device=layer.weight.device)
            return level_linear_cross_entropy(layer, target, classes, None, self._options)
        self._count_evaluated(input, target)
        self._notice()
        level = self._current if self.training else -1
        partition, spans = self._prepared(self._clusters, level)
        clusters = partition.clusters
        return level_linear_cross_entropy(layer, target, clusters, partition, self._options, spans)

    @torch.no_grad()
    def _count(self, tally: Tally, input: Tensor, target: Tensor) -> None:
        is_index = not target.is_floating_point() and target.dtype != torch.bool
        features = input.reshape(-1, self.linear.in_features)
        targets = target.reshape(-1) if is_index else target.reshape(-1, target.shape[-1])
        rows = max(1, _COUNTED // self.linear.out_features)
        # The processes that have some of the classes each must ask for as many pieces.
        most = max(shards_of(self.linear.weight).agree({}, len(features)))
        for at in range(0, most, rows):
            some, wanted = features[at : at + rows], targets[at : at + rows]
            tally.note(sharded_logits(self.linear, some), wanted, self.ignore_index)


def _linear(
    features: int,
    classes: int,
    bias: bool,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> nn.Linear:
    """Return a layer, if there is memory for it."""
    planned = torch.empty(classes, features + bias, device="meta", dtype=dtype)
    place = torch.device(torch.get_default_device() if device is None else device)
    Shards(classes, device=place.type).check_memory(layer_name(classes, features), planned.nbytes)
    return nn.Linear(features, classes, bias, device=device, dtype=dtype)
