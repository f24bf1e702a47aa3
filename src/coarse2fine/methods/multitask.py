"""All levels of the hierarchy at once: the curriculum without its order."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data.batches import Batch
from ..functional import coarse_cross_entropy
from .base import Method, Plan, needed_hierarchy, stacked_levels


class Multitask(Method):
    """The mean of the marginalised losses of all levels, in every epoch."""

    needs = frozenset({"hierarchy"})
    levels: Tensor

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        levels = stacked_levels(needed_hierarchy(plan))
        self.register_buffer("levels", levels, persistent=False)
        self.stages = plan.single_stage

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean over the levels of the mean loss at each."""
        losses = [coarse_cross_entropy(logits, batch.targets, level) for level in self.levels]
        return torch.stack(losses).mean()
