"""Hierarchy-aware cross-entropy (Chan et al., 2026): a target and its ancestors share the label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..data.batches import Batch
from ._ancestry import Ancestry
from .base import Method, Plan, needed_hierarchy


def ancestral_cross_entropy(
    logits: Tensor, targets: Tensor, ancestry: Ancestry, dilution: float
) -> Tensor:
    """Return the loss of each sample: the cross-entropy of its class and all nodes above it.

    A node is as probable as its classes together. The class has a share d of the label; of what
    is left its parent has a share d again, and so on. The root has the rest, which costs nothing,
    as its probability is 1. Where d is 1, this is cross-entropy.

    Args:
        logits: Of the classes, (N, K).
        targets: Classes, (N).
        ancestry: Of the hierarchy.
        dilution: d, the share that stays at a node.
    """
    path = ancestry.log_probabilities(logits, targets)
    step = torch.arange(path.shape[1], device=path.device)
    return -(dilution * (1 - dilution) ** step * path).sum(1)


class HACE(Method):
    """The cross-entropy of the class, its cluster, that one's cluster and so on, at once.

    Args:
        plan: What every method is given.
        dilution: d, the share of the label that stays at a node; the rest goes on to the parent.
            Defaults to 0.7.
    """

    needs = frozenset({"hierarchy"})
    weighs_classes = True
    least: ClassVar[Mapping[str, float]] = {"dilution": 0.01}
    below: ClassVar[Mapping[str, float]] = {"dilution": 1}

    def __init__(self, plan: Plan, *, dilution: float = 0.7) -> None:
        super().__init__(plan)
        self.ancestry = Ancestry(needed_hierarchy(plan).nodes)
        self.stages = plan.single_stage
        self.dilution = dilution

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss."""
        losses = ancestral_cross_entropy(logits, batch.targets, self.ancestry, self.dilution)
        return self.weighed(losses, batch)
