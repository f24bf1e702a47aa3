"""Label smoothing that fades over the epochs."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from coarse2fine.data import Batch
from coarse2fine.methods.base import Method, Plan


class Fading(Method):
    """Cross-entropy with label smoothing that fades over the epochs.

    Args:
        plan: What every method is given.
        start: The smoothing in the first epoch. Defaults to 0.1.
    """

    def __init__(self, plan: Plan, *, start: float = 0.1) -> None:
        super().__init__(plan)
        self.stages = plan.single_stage
        self.start = start

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:
        """Smooth less than in the epoch before."""
        self.smoothing = self.start * (1 - epoch / self.stages[stage].epochs)

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the loss of a batch."""
        return F.cross_entropy(logits, batch.targets, label_smoothing=self.smoothing)
