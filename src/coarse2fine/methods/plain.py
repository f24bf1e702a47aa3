"""Plain training: the baseline."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from ..data.batches import Batch
from .base import Method, Plan
from .candidates import candidate_loss


class Plain(Method):
    """Cross-entropy on the target classes from the first epoch to the last."""

    weighs_classes = True
    takes_nodes = True

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        self.stages = plan.single_stage

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy, marginalised where labels are coarser than classes."""
        if self.candidates is not None:
            loss = candidate_loss(logits, self.wanted(batch), self.reduction)
            return self.weighed(loss, batch)
        return self.weighed(F.cross_entropy(logits, batch.targets, reduction=self.reduction), batch)
