"""The protocol between the training loop and a method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..data.batches import Batch
from ..hierarchy import Hierarchy
from ..nodes import Nodes
from .candidates import Candidates

Need = Literal["hierarchy", "length", "class_vectors"]


@dataclass(frozen=True)
class Stage:
    """A stretch of training with one final layer and one optimiser.

    Args:
        outputs: The width of the final layer.
        epochs: The most epochs.
        patience: Stop after so many epochs without a better validation accuracy; 0 for
            never.
        counts_from: How many of the stage's first epochs cannot be the best. Defaults to 0.
        exactly: Train for so many epochs, whatever `epochs` and `patience` say. Defaults to
            None: they decide.
    """

    outputs: int
    epochs: int
    patience: int
    counts_from: int = 0
    exactly: int | None = None


@dataclass(frozen=True)
class Plan:
    """What a method is given to plan its stages.

    Args:
        num_classes: K.
        epochs: The most epochs for training on the target classes.
        patience: See `Stage`.
        hierarchy: The levels. Defaults to None, as all that follows: for methods that need
            none.
        curriculum_epochs: T; None also where levels last as long as they teach.
        stage_epochs: The most epochs for each coarse stage. Defaults to None: `epochs`.
        num_samples: How many samples there are to train on. Defaults to 0.
        class_vectors: The final layer's weight in the trained baseline, one row a class.
        exactly: See `Stage`; for plain training alone. Defaults to None.
        class_weights: How much a sample of each class counts in the loss. Defaults to None: all
            count alike.
        labels: What targets are numbered by, where some of them are clusters. Defaults to None:
            all are classes.
    """

    num_classes: int
    epochs: int
    patience: int
    hierarchy: Hierarchy | None = None
    curriculum_epochs: int | None = None
    stage_epochs: int | None = None
    num_samples: int = 0
    class_vectors: NDArray[Any] | None = None
    exactly: int | None = None
    class_weights: NDArray[Any] | None = None
    labels: Nodes | None = None

    @property
    def single_stage(self) -> tuple[Stage, ...]:
        """One stage on the target classes that takes all epochs."""
        return (Stage(self.num_classes, self.epochs, self.patience, exactly=self.exactly),)


class Method(nn.Module, ABC):
    """A way to train: its stages, its loss, and what changes from epoch to epoch.

    It is created from a `Plan` and from its own settings: numbers, keyword arguments with
    defaults. Its buffers are its state: they move with the module and are saved with a run. A
    method that depends on the epoch alone, as the curriculum does, needs none. Of several
    processes each has its own copy, and all must end a batch with the same state.

    Attributes:
        needs: What its plan must have beside numbers: ``"hierarchy"``, ``"length"`` (T),
            ``"class_vectors"``.
        least: The smallest valid value of each setting that has one.
        below: What the values of each setting that has a limit must stay below.
        weighs_classes: Whether its `forward` counts each sample by the weight of its class, as
            `weighed` does. A subclass with a `forward` of its own declares it again.
        takes_nodes: Whether its `forward` learns from samples that are labelled with a cluster
            instead of a class, as by `candidates`. Declared again like `weighs_classes`.
        candidates: Turns targets into the classes that they leave, where some are clusters;
            None where all are classes.
        stages: In the order in which they are trained; the last is on the target classes. The
            loop looks at them anew in every epoch.
        curriculum_epochs: How many epochs the coarse levels took, for a method that finds out
            while it trains; None before it has, and for all others.
        level: The level of the hierarchy in force, None where there is none.
        clusters: Class → output at that level, None where each class is its own.
    """

    needs: ClassVar[frozenset[Need]] = frozenset()
    least: ClassVar[Mapping[str, float]] = {}
    below: ClassVar[Mapping[str, float]] = {}
    weighs_classes: ClassVar[bool] = False
    takes_nodes: ClassVar[bool] = False
    class_weights: Tensor | None
    candidates: Candidates | None
    stages: tuple[Stage, ...]
    curriculum_epochs: int | None = None
    level: int | None = None
    clusters: Tensor | None = None

    def __init__(self, plan: Plan | None = None) -> None:
        super().__init__()
        labels = None if plan is None else plan.labels
        given = None if plan is None else plan.class_weights
        if given is not None and labels is not None:  # a cluster has the mean of its classes
            given = labels.probabilities(given[None])[0] / labels.sizes
        weights = None if given is None else torch.as_tensor(given, dtype=torch.float32)
        self.candidates = None if labels is None else Candidates(labels)
        # Not saved, as they are made from the run's own samples.
        self.register_buffer("class_weights", weights, persistent=False)

    def begin_epoch(self, stage: int, epoch: int, sample_losses: Callable[[], Tensor]) -> None:
        """Prepare for an epoch.

        Args:
            stage: Counted from 0.
            epoch: Of the stage, counted from 0.
            sample_losses: Returns the cross-entropy of each training sample now, by the
                model in evaluation mode and without augmentation. It costs a pass over the
                data, and all processes must call it equally often.
        """

    @abstractmethod
    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss of a batch, or of this process's part of one."""

    @property
    def reduction(self) -> str:
        """What a loss of torch's has to return: the mean, or one loss a sample to be weighed."""
        return "mean" if self.class_weights is None else "none"

    def wanted(self, batch: Batch) -> Tensor:
        """Return the targets of a batch as `coarse_cross_entropy` takes them.

        They are classes or, where samples may be labelled with clusters, a mask of candidates.
        """
        return batch.targets if self.candidates is None else self.candidates(batch.targets)

    def weighed(self, loss: Tensor, batch: Batch) -> Tensor:
        """Return the mean loss, each sample counted by the weight of its class.

        The sum is divided by the number of samples, not by the sum of their weights, which
        would make a batch in several parts another than the same batch as a whole.

        Args:
            loss: Of a batch, by `reduction`, or one a sample.
            batch: Whose classes the weights are of.
        """
        if self.class_weights is None:
            return loss.mean()
        return (loss * self.class_weights[batch.targets]).mean()

    def end_batch(self, total: Callable[[Tensor], Tensor]) -> None:
        """Learn from a batch, after the model has.

        Args:
            total: Returns the sum of a tensor over all processes, which must all call it.
        """

    def end_epoch(self, accuracy: float | None) -> None:
        """Learn from the validation after an epoch.

        Args:
            accuracy: At the level in force, over all processes; None without validation samples.
        """

    def decide(self, logits: Tensor) -> dict[str, Tensor]:
        """Return the predicted classes at the finest level, by each rule of inference.

        Accuracies are those of the first rule; the others are reported beside it.
        """
        return by_argmax(logits)


def by_argmax(logits: Tensor) -> dict[str, Tensor]:
    """Return the most probable outputs, the rule of most methods."""
    return {"argmax": logits.argmax(1)}


def needed_hierarchy(plan: Plan) -> Hierarchy:
    """Return the plan's hierarchy, or raise a ValueError if it has none that fits."""
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
