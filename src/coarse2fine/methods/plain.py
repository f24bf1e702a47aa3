"""Plain training: the baseline."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from .base import Method, Plan, Stage


class Plain(Method):
    """Cross-entropy on the target classes from the first epoch to the last."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.stages = (Stage(plan.num_classes, plan.epochs, plan.patience),)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy."""
        return F.cross_entropy(logits, targets)
