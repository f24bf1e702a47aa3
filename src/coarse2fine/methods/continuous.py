"""The curriculum with one final layer throughout: the paper's Algorithm 3."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ..curriculum import Curriculum
from ..data.batches import Batch
from ..loss import CoarseToFineLoss
from .base import Method, Plan, Stage, needed_hierarchy, stacked_levels


class Continuous(Method):
    """The marginalised loss, from the coarsest level to the classes, in one stage.

    The final layer has K outputs throughout, so that model and optimiser are kept at level
    changes. Only epochs at the finest level can be the best, and patience counts from there.
    """

    needs = frozenset({"hierarchy", "length"})
    weighs_classes = True
    levels: Tensor

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan)
        if plan.curriculum_epochs is None:
            raise ValueError("the continuous curriculum needs its length, curriculum_epochs.")
        hierarchy = needed_hierarchy(plan)
        # Buffers, so that they move with the method; not saved, as the run has the hierarchy.
        self.register_buffer("levels", stacked_levels(hierarchy), persistent=False)
        self.criterion = CoarseToFineLoss(hierarchy, reduction=self.reduction)
        self._curriculum = Curriculum(self.criterion, epochs=plan.curriculum_epochs)
        finest = self._curriculum.finest_epoch
        if finest >= plan.epochs:
            raise ValueError(
                f"the curriculum takes {finest} epochs before the finest level, but there "
                f"are only {plan.epochs}; give more epochs or fewer curriculum_epochs."
            )
        # Validation accuracies at coarse levels are of an easier task: they must neither be the
        # best ones nor make those at the finest level look like a decline.
        self.stages = (Stage(plan.num_classes, plan.epochs, plan.patience, finest),)

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:  # noqa: ARG002
        """Set the level of the epoch."""
        # From the epoch, not by counting steps, so that a resumed run needs no further state.
        self._curriculum.step(epoch)
        self.level = self._curriculum.level
        self.clusters = None if self._curriculum.is_finest else self.levels[self.level]

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss at the level in force."""
        return self.weighed(self.criterion(logits, batch.targets), batch)
