"""All levels of the hierarchy at once: the curriculum without its order."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data.batches import Batch
from ..loss import CoarseToFineLoss
from .base import Method, Plan, needed_hierarchy


class Multitask(Method):
    """The mean of the marginalised losses of all levels, in every epoch."""

    needs = frozenset({"hierarchy"})
    weighs_classes = True
    takes_nodes = True

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        hierarchy = needed_hierarchy(plan)
        self.num_levels = len(hierarchy.levels)
        # It prepares each level once. The function would do so in every batch, and wait for the
        # device each time to learn how large the largest cluster is.
        self.criterion = CoarseToFineLoss(hierarchy, reduction=self.reduction)
        self.stages = plan.single_stage

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean over the levels of the mean loss at each."""
        wanted = self.wanted(batch)
        losses: list[Tensor] = []
        for level in range(self.num_levels):
            self.criterion.level = level
            losses.append(self.weighed(self.criterion(logits, wanted), batch))
        # The mean, not the sum, so that learning rates mean the same as in plain training.
        return torch.stack(losses).mean()
