"""What the training loop asks of a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ..hierarchy import Hierarchy


@dataclass(frozen=True)
class Stage:
    """A stretch of training with one final layer and one optimiser.

    Args:
        outputs: The width of the final layer.
        epochs: The most epochs.
        patience: Stop after so many epochs without a better validation accuracy; 0 for
            never.
        counts_from: The first epoch of the stage that may be the best. Defaults to 0.
    """

    outputs: int
    epochs: int
    patience: int
    counts_from: int = 0


@dataclass(frozen=True)
class Plan:
    """What a method is given to plan its stages.

    Args:
        num_classes: K.
        epochs: The most epochs for training on the target classes.
        patience: See `Stage`.
        hierarchy: The levels. Defaults to None: for methods that need none.
        curriculum_epochs: T. Defaults to None: for methods that need none.
        stage_epochs: The most epochs for each coarse stage. Defaults to None: `epochs`.
    """

    num_classes: int
    epochs: int
    patience: int
    hierarchy: Hierarchy | None = None
    curriculum_epochs: int | None = None
    stage_epochs: int | None = None


class Method(nn.Module, ABC):
    """A way to train: its stages, its loss, and what changes from epoch to epoch.

    It is made from a `Plan`. The module's buffers are its state: they move with it and are
    saved with a run. A method that is a function of the epoch alone, as the curriculum is,
    needs none.

    Attributes:
        stages: In the order in which they are trained; the last is on the target classes.
        level: The level of the hierarchy in force, None where there is none.
        clusters: Class → output at that level, None where each class is its own.
    """

    stages: tuple[Stage, ...]
    level: int | None = None
    clusters: Tensor | None = None

    def begin_epoch(self, stage: int, epoch: int) -> None:
        """Bring the method to an epoch of a stage, both counted from 0."""

    @abstractmethod
    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """Return the mean loss of a batch, given its target classes."""


def needed_hierarchy(plan: Plan) -> Hierarchy:
    """Return the plan's hierarchy, which the method cannot do without."""
    if plan.hierarchy is None:
        raise ValueError("this method needs a hierarchy.")
    if plan.hierarchy.num_classes != plan.num_classes:
        raise ValueError(
            f"the hierarchy has {plan.hierarchy.num_classes} classes, the data {plan.num_classes}."
        )
    return plan.hierarchy


def stacked_levels(hierarchy: Hierarchy) -> Tensor:
    """Return all levels, class → cluster, as one tensor, coarsest first."""
    return torch.from_numpy(np.stack(hierarchy.levels))
