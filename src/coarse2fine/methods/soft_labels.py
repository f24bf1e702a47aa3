"""Soft labels (Bertinetto et al., 2020): a class near the target gets a share of its label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch.nn.functional as F
from torch import Tensor

from ..data.batches import Batch
from ._ancestry import Ancestry
from .base import Method, Plan, needed_hierarchy


def soft_labels(targets: Tensor, ancestry: Ancestry, beta: float) -> Tensor:
    """Return a probability for each class and target, (N, K): the softmax of -β times distances.

    The distance of two classes is the height of their lowest common ancestor, divided by that of
    the root.

    Args:
        targets: Classes, (N).
        ancestry: Of the hierarchy.
        beta: β. Where it is 0, all classes get the same; the larger it is, the more is left to
            the target.
    """
    heights = ancestry.heights[targets].gather(1, ancestry.steps(targets))
    return (-beta * heights / ancestry.heights.max()).softmax(1)


class SoftLabels(Method):
    """Cross-entropy with labels that give the more to a class the nearer it is to the target.

    Args:
        plan: What every method is given.
        beta: β, how much of the label is left to the target. Defaults to 10.0.
    """

    needs = frozenset({"hierarchy"})
    weighs_classes = True
    least: ClassVar[Mapping[str, float]] = {"beta": 0}

    def __init__(self, plan: Plan, *, beta: float = 10.0) -> None:
        super().__init__(plan)
        self.ancestry = Ancestry(needed_hierarchy(plan).nodes)
        self.stages = plan.single_stage
        self.beta = beta

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss."""
        labels = soft_labels(batch.targets, self.ancestry, self.beta).to(logits.dtype)
        return self.weighed(F.cross_entropy(logits, labels, reduction=self.reduction), batch)
