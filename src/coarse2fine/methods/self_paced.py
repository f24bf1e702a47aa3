"""Self-paced learning: easy samples first, by the model's own losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.batches import Batch
from .base import Method, Plan


class SelfPaced(Method):
    """Cross-entropy on the samples whose loss is below a growing threshold.

    The first epochs use all samples. Then half of them count, those of smallest loss; each
    epoch raises the threshold, until all of them count. For weights v in {0, 1},
    Σ vᵢ Lᵢ - (1/K) Σ vᵢ (Kumar et al., 2010) is smallest if vᵢ is 1 where Lᵢ < 1/K: the
    threshold is 1/K, and dividing K by 1.3 multiplies it by 1.3.

    Args:
        plan: What every method is given.
        warm_epochs: For how many epochs all samples count at first. Defaults to 1.
        growth: What the threshold is multiplied by each epoch. Defaults to 1.3.
    """

    least: ClassVar[Mapping[str, float]] = {"warm_epochs": 1, "growth": 1.01}
    weighs_classes = True
    threshold: Tensor
    is_complete: Tensor

    def __init__(self, plan: Plan, *, warm_epochs: int = 1, growth: float = 1.3) -> None:
        super().__init__(plan)
        self.stages = plan.single_stage
        self.warm_epochs = warm_epochs
        self.growth = growth
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("is_complete", torch.zeros((), dtype=torch.bool))
        self.counts: Tensor | None = None  # sample → whether it counts; None for all

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:  # noqa: ARG002
        """Choose the samples that count."""
        # Not a buffer: it belongs to one epoch, and runs are resumed where an epoch begins.
        self.counts = None
        if epoch < self.warm_epochs or self.is_complete:
            return
        losses = sample_losses()  # a pass over the data, so not before it is needed
        grown = self.threshold * self.growth if self.threshold else median(losses)
        self.threshold.copy_(grown)
        counts = losses < self.threshold
        # A threshold of 0, where half of the losses are 0, would never grow.
        self.is_complete.copy_(counts.all() | (self.threshold == 0))
        self.counts = None if self.is_complete else counts

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean over the batch, in which samples that do not count are zeros.

        Over the batch, not over those that count: each sample's gradient is then as large as in
        plain training, and a batch in which none counts is no division by zero.
        """
        if self.counts is None:
            loss = F.cross_entropy(logits, batch.targets, reduction=self.reduction)
            return self.weighed(loss, batch)
        losses = F.cross_entropy(logits, batch.targets, reduction="none")
        counted = losses * self.counts[batch.rows.to(losses.device)]
        return self.weighed(counted, batch).mean()


def median(losses: Tensor) -> Tensor:
    """Return the loss below which half of all losses lie.

    Examples:
        >>> median(torch.tensor([4.0, 1.0, 3.0, 2.0])).item()
        3.0
    """
    return losses.sort().values[len(losses) // 2]
