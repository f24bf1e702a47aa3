"""The curriculum with a new final layer for each level: the paper's Algorithm 4."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor

from ..data.batches import Batch
from .base import Method, Plan, Stage, needed_hierarchy, stacked_levels
from .candidates import candidate_loss


class Staged(Method):
    """Plain training on the clusters of one level after the other; the encoder is kept.

    Each stage has as many outputs as its level has clusters, and lasts until validation
    accuracy at that level no longer improves, or for as many epochs as it may have. The next
    stage starts from the encoder of the best epoch, with a new final layer and a new
    optimiser, as in the authors' release.
    """

    needs = frozenset({"hierarchy"})
    weighs_classes = True
    takes_nodes = True
    levels: Tensor

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        hierarchy = needed_hierarchy(plan)
        self.register_buffer("levels", stacked_levels(hierarchy), persistent=False)
        *coarse, classes = hierarchy.num_clusters
        cap = plan.stage_epochs or plan.epochs
        stages = [Stage(clusters, cap, plan.patience) for clusters in coarse]
        self.stages = (*stages, Stage(classes, plan.epochs, plan.patience))

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:  # noqa: ARG002
        """Set the level of the stage."""
        self.level = stage
        self.clusters = None if stage == len(self.stages) - 1 else self.levels[stage]

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean cross-entropy on the level's clusters."""
        if self.candidates is not None:
            loss = candidate_loss(logits, self._wanted_outputs(batch, logits), self.reduction)
            return self.weighed(loss, batch)
        groups = batch.targets if self.clusters is None else self.clusters[batch.targets]
        return self.weighed(F.cross_entropy(logits, groups, reduction=self.reduction), batch)

    def _wanted_outputs(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return which of the stage's outputs each target leaves."""
        if self.candidates is None or self.clusters is None:
            return self.wanted(batch)
        return self.candidates.outputs(batch.targets, self.clusters, logits.shape[1])
