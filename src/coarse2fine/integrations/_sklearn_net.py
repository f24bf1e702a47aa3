"""How the scikit-learn estimator trains: skorch, and a loss that goes through the levels."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from skorch import NeuralNetClassifier  # type: ignore[import-untyped]
from skorch.callbacks import EarlyStopping  # type: ignore[import-untyped]
from skorch.helper import predefined_split  # type: ignore[import-untyped]
from skorch.history import History  # type: ignore[import-untyped]
from torch import Tensor, nn

from ..curriculum import Curriculum, equal_shares
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ._curriculum import curriculum_from
from ._sklearn_epochs import LeanNet
from ._sklearn_mlp import StandardisedMLP
from ._sklearn_samples import SampleBatches, Samples

CONTINUOUS = "continuous"  # the method that trains through the levels
# The settings of the estimator that skorch's net takes under the same names.
NET_SETTINGS = ("max_epochs", "lr", "batch_size", "optimizer", "device", "verbose")
PATIENCE = 5  # of an adaptive curriculum, as by default in `coarse2fine.fit`
_VALID_FACTOR = 4  # how many times larger batches may be without gradients
_MANY_WEIGHTS = 200_000  # from which on threads are worth their while
# One call for all weights instead of a dozen for each; the steps are the same.
_FUSED = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)


@dataclass(frozen=True)
class Training:
    """What the baseline's and the curriculum's training have in common.

    Args:
        estimator: Its settings.
        module: Freshly made; each training starts from its weights.
        samples: To train on.
        valid: To validate on.
        class_weights: Of the classes, in the loss and in the validation accuracy.
        seed: Of the order of the samples and of dropout, in each training alike.
        labelled_by: The hierarchy whose nodes some of the samples are labelled with. Defaults to
            None: all are labelled with classes.
    """

    estimator: Any
    module: nn.Module
    samples: Samples
    valid: Samples
    class_weights: NDArray[Any] | None
    seed: int
    labelled_by: Hierarchy | None = None

    def train(
        self, hierarchy: Hierarchy | None = None, length: int | None = None
    ) -> NeuralNetClassifier:
        """Return a net trained through the levels or, without a hierarchy, plainly.

        It has its best weights, its history and, as ``finest_epoch_``, the first epoch at the
        finest level, and is fit for prediction only.

        Args:
            hierarchy: With a coarse level at least. Defaults to None.
            length: T. Defaults to None: each level lasts as long as it teaches.
        """
        criterion = self._criterion()
        curriculum = self._curriculum(hierarchy, length, criterion) if hierarchy else None
        net = self._net(criterion, CurriculumCallback(curriculum, self.estimator.patience))
        with seeded(self.seed), threads_for(self.module):
            net.fit(self.samples, None)
        history = History(net.history)  # a copy, as it is emptied with all it was trained by
        net.trim_for_prediction()
        net.history_ = history
        net.finest_epoch_ = curriculum.finest_epoch if curriculum else 0
        net.module = None  # else the weights would be pickled twice, and bound to their device
        if isinstance(net.module_, StandardisedMLP):
            net.module_.to(net.module_.mean.dtype)
        return net

    def _curriculum(
        self, hierarchy: Hierarchy, length: int | None, criterion: CoarseToFineLoss
    ) -> Curriculum:
        epochs = self.estimator.max_epochs
        coarse = len(hierarchy.levels) - 1
        check_finest_fits(
            coarse if length is None else equal_shares(length, coarse + 1)[-1], epochs
        )
        if length is None:
            patience: dict[str, Any] = {"patience": PATIENCE, "total_epochs": epochs}
            return curriculum_from(hierarchy, **patience, criterion=criterion)
        return curriculum_from(hierarchy, length, criterion=criterion)

    def _net(self, criterion: CoarseToFineLoss, callback: CurriculumCallback) -> LeanNet:
        settings = {name: getattr(self.estimator, name) for name in NET_SETTINGS}
        if self.estimator.optimizer in _FUSED and torch.device(settings["device"]).type == "cpu":
            settings["optimizer__fused"] = True
        return LeanNet(
            copy.deepcopy(self.module),
            criterion=criterion,
            optimizer__weight_decay=self.estimator.weight_decay,
            train_split=predefined_split(self.valid),
            iterator_train=SampleBatches,
            iterator_train__shuffle=True,
            iterator_valid=SampleBatches,
            iterator_valid__batch_size=_VALID_FACTOR * self.estimator.batch_size,
            predict_nonlinearity=probabilities,
            callbacks=[callback],
            callbacks__train_loss=None,
            callbacks__valid_loss=None,
            callbacks__valid_acc=None,
            **settings,
        )

    def _criterion(self) -> CoarseToFineLoss:
        weight = None
        if self.class_weights is not None:
            weight = torch.as_tensor(self.class_weights, dtype=torch.float32)
        criterion = CoarseToFineLoss(
            self.labelled_by,
            weight,
            reduction="mean" if self.samples.weights is None else "none",
            label_smoothing=self.estimator.label_smoothing,
        )
        criterion.level = -1  # the classes, unless a curriculum comes
        return criterion


class CurriculumCallback(EarlyStopping):  # type: ignore[misc]
    """Sets the level of every epoch, and keeps the weights of the best one at the finest level.

    The level is noted in the history. Early stopping counts from the finest level on.

    Args:
        curriculum: Of the net's criterion; None for plain training.
        patience: Stop after so many epochs without a better one; 0 for never.
    """

    def __init__(self, curriculum: Curriculum | None, patience: int) -> None:
        super().__init__(
            monitor="valid_acc",
            lower_is_better=False,
            patience=patience or math.inf,
            threshold=0,
            load_best=True,
        )
        self.curriculum = curriculum

    def on_epoch_begin(self, net: Any, **_: Any) -> None:
        """Set the level."""
        if self.curriculum is not None:
            self._set_level(self.curriculum, net.history)
        net.history.record("level", net.criterion_.level)

    def _set_level(self, curriculum: Curriculum, history: Any) -> None:
        if not curriculum.is_adaptive:
            curriculum.step(len(history) - 1)
        elif len(history) > 1:
            curriculum.step(history[-2]["valid_level_acc"])

    def on_epoch_end(self, net: Any, **kwargs: Any) -> None:
        """Count the epoch if it is at the finest level."""
        if self.curriculum is None or self.curriculum.is_finest:
            super().on_epoch_end(net, **kwargs)

    def on_train_end(self, net: Any, **kwargs: Any) -> None:
        """Load the best weights."""
        # skorch swallows the interrupt of a user; half a training must not pass for a whole one.
        is_whole = len(net.history) == net.max_epochs and self.monitor in net.history[-1]
        if not (is_whole or self.misses_ == self.patience):
            raise KeyboardInterrupt
        super().on_train_end(net, **kwargs)


def probabilities(logits: Tensor) -> Tensor:
    """Return the softmax, in double precision so that its sums are 1 as exactly as can be."""
    return torch.softmax(logits.double(), dim=-1)


def check_finest_fits(first: int, max_epochs: int) -> None:
    """Refuse a curriculum that leaves no epoch for the finest level."""
    if first >= max_epochs:
        raise ValueError(
            f"the curriculum takes at least {first} epochs before the finest level, but "
            f"max_epochs is {max_epochs}; give more of these or fewer curriculum_epochs."
        )


@contextmanager
def threads_for(module: nn.Module) -> Iterator[None]:
    """Let torch use one thread for a while where a network is small.

    To divide such small products among threads takes longer than to compute them, and many
    times longer where other programs keep the processors busy.
    """
    before = torch.get_num_threads()
    is_small = (
        isinstance(module, StandardisedMLP)
        and sum(weight.numel() for weight in module.parameters()) < _MANY_WEIGHTS
    )
    try:
        torch.set_num_threads(1 if is_small else before)
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch for a while, and leave its random numbers as they were."""
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count()) if is_used else ()
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
