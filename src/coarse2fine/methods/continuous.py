"""The curriculum with one final layer throughout: the paper's Algorithm 3, or adaptive."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..curriculum import Curriculum
from ..data.batches import Batch
from ..loss import CoarseToFineLoss
from .base import Method, Plan, Stage, needed_hierarchy, stacked_levels

_STATE = "schedule"  # in the method's state dict


class Continuous(Method):
    """The marginalised loss, from the coarsest level to the classes, in one stage.

    The final layer has K outputs throughout, so that model and optimiser are kept at level
    changes. Only epochs at the finest level can be the best, and patience counts from there.
    Where the plan has no length, each level lasts as long as it teaches, see `Curriculum`.

    Args:
        plan: What every method is given.
        patience: Of an adaptive curriculum. Defaults to 5.
        share: Of all epochs that the coarse levels of an adaptive curriculum may take. Defaults
            to 0.5.
    """

    needs = frozenset({"hierarchy", "length"})
    least: ClassVar[Mapping[str, float]] = {"patience": 1, "share": 0}
    below: ClassVar[Mapping[str, float]] = {"share": 1}
    weighs_classes = True
    takes_nodes = True
    levels: Tensor

    def __init__(self, plan: Plan, patience: int = 5, share: float = 0.5) -> None:
        super().__init__(plan)
        hierarchy = needed_hierarchy(plan)
        # Buffers, so that they move with the method; not saved, as the run has the hierarchy.
        self.register_buffer("levels", stacked_levels(hierarchy), persistent=False)
        self.criterion = CoarseToFineLoss(hierarchy, reduction=self.reduction)
        self._curriculum = self._planned(plan, patience, share)
        # Validation accuracies at coarse levels are of an easier task: they must neither be the
        # best ones nor make those at the finest level look like a decline. Before an adaptive
        # curriculum is over, no epoch can be the best.
        finest = self._curriculum.finest_epoch
        counts_from = plan.epochs if finest is None else finest
        self.stages = (Stage(plan.num_classes, plan.epochs, plan.patience, counts_from),)

    def _planned(self, plan: Plan, patience: int, share: float) -> Curriculum:
        """Return the curriculum, or raise a ValueError if it would not reach the classes."""
        if plan.curriculum_epochs is None:
            levels = len(needed_hierarchy(plan).levels)
            if levels > plan.epochs:
                raise ValueError(
                    f"each of the {levels} levels takes an epoch at least, but there are only "
                    f"{plan.epochs}; give a larger epochs= or a smaller max_levels=."
                )
            limits: dict[str, Any] = {"total_epochs": plan.epochs, "share": share}
            return Curriculum(self.criterion, patience=patience, **limits)
        curriculum = Curriculum(self.criterion, epochs=plan.curriculum_epochs)
        finest = curriculum.finest_epoch or 0
        if finest >= plan.epochs:
            raise ValueError(
                f"the curriculum takes {finest} epochs before the finest level, but there "
                f"are only {plan.epochs}; give a larger epochs= or a smaller curriculum_epochs=."
            )
        return curriculum

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:  # noqa: ARG002
        """Set the level of the epoch."""
        if not self._curriculum.is_adaptive:
            # From the epoch, not by counting steps, so that a resumed run needs no further state.
            self._curriculum.step(epoch=epoch)
        self.level = self._curriculum.level
        self.clusters = None if self._curriculum.is_finest else self.levels[self.level]

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss at the level in force."""
        return self.weighed(self.criterion(logits, self.wanted(batch)), batch)

    def end_epoch(self, accuracy: float | None) -> None:
        """Let an adaptive curriculum decide whether the level has taught what it can."""
        if self._curriculum.is_adaptive:
            self._curriculum.step(accuracy)
            self._note_finest()

    def _note_finest(self) -> None:
        """Let epochs count as soon as the finest level is reached."""
        finest = self._curriculum.finest_epoch
        if self.curriculum_epochs is None and finest is not None:
            self.curriculum_epochs = finest
            self.stages = (replace(self.stages[0], counts_from=finest),)

    # An adaptive curriculum depends on the accuracies so far, which a resumed run must know.

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if self._curriculum.is_adaptive:
            destination[prefix + _STATE] = _to_tensor(self._curriculum)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        if self._curriculum.is_adaptive:
            _from_tensor(self._curriculum, state_dict.pop(prefix + _STATE))
            self._note_finest()
        super()._load_from_state_dict(state_dict, prefix, *args)


def _to_tensor(curriculum: Curriculum) -> Tensor:
    """Return where an adaptive curriculum is: epoch, plateau and boundaries, as integers."""
    state = curriculum.state_dict()
    # By its bits: not every device that a state may be on has floats of 64 bits.
    best = torch.tensor(state["plateau"]["best"], dtype=torch.float64).view(torch.int64).item()
    return torch.tensor([state["epoch"], state["plateau"]["since"], best, *state["boundaries"]])


def _from_tensor(curriculum: Curriculum, stored: Tensor) -> None:
    """Bring a curriculum to where another one was."""
    epoch, since, bits, *boundaries = stored.tolist()
    best = torch.tensor(bits).view(torch.float64).item()
    plateau = {"best": best, "since": since}
    state = {"epoch": epoch, "boundaries": boundaries, "plateau": plateau}
    curriculum.load_state_dict(curriculum.state_dict() | state)
