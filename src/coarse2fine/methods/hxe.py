"""Hierarchical cross-entropy (Bertinetto et al., 2020): coarse decisions weigh more than fine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..data.batches import Batch
from ._ancestry import Ancestry
from .base import Method, Plan, needed_hierarchy


def hierarchical_cross_entropy(
    logits: Tensor, targets: Tensor, ancestry: Ancestry, alpha: float
) -> Tensor:
    """Return the loss of each sample: the weighed surprise at each step down to its class.

    A class's probability is the product of the conditional ones on its path, each that of a
    node given its parent. Their logarithms are added with weights: 1 for the step from the root,
    exp(-α) for the next one down, and so on. Where α is 0, this is cross-entropy.

    Args:
        logits: Of the classes, (N, K).
        targets: Classes, (N).
        ancestry: Of the hierarchy.
        alpha: α, how fast the weights fall.
    """
    path = ancestry.log_probabilities(logits, targets)
    conditional = path[:, :-1] - path[:, 1:]
    # How many steps lie above each step of a path. A shorter path ends in steps from the root to
    # itself, which are certain.
    step = torch.arange(conditional.shape[1], device=path.device)
    above = (ancestry.depths[targets, None] - 1 - step).clamp_min(0)
    return -(torch.exp(-alpha * above) * conditional).sum(1)


class HXE(Method):
    """Cross-entropy along the path to the class, where coarse decisions weigh more than fine.

    Args:
        plan: What every method is given.
        alpha: α, how fast the weights of the decisions fall on the way down. Defaults to 0.4.
    """

    needs = frozenset({"hierarchy"})
    weighs_classes = True
    least: ClassVar[Mapping[str, float]] = {"alpha": 0}

    def __init__(self, plan: Plan, *, alpha: float = 0.4) -> None:
        super().__init__(plan)
        self.ancestry = Ancestry(needed_hierarchy(plan).nodes)
        self.stages = plan.single_stage
        self.alpha = alpha

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss."""
        losses = hierarchical_cross_entropy(logits, batch.targets, self.ancestry, self.alpha)
        return self.weighed(losses, batch)
