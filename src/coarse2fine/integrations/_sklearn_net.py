"""How the scikit-learn estimator trains: skorch, and a loss that goes through the levels."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score  # type: ignore[import-untyped]
from skorch import NeuralNetClassifier  # type: ignore[import-untyped]
from skorch.callbacks import EarlyStopping, EpochScoring  # type: ignore[import-untyped]
from skorch.helper import predefined_split  # type: ignore[import-untyped]
from skorch.history import History  # type: ignore[import-untyped]
from torch import Tensor, nn
from torch.utils.data import TensorDataset

from ..curriculum import Curriculum
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ..models.table import TableMLP
from ..training.finite import all_finite, complaint
from ._curriculum import curriculum_from

# The settings of the estimator that skorch's net takes under the same names.
NET_SETTINGS = ("max_epochs", "lr", "batch_size", "optimizer", "device", "verbose")


@dataclass(frozen=True)
class Training:
    """What the baseline's and the curriculum's training have in common.

    Args:
        estimator: Its settings.
        module: Freshly made; each training starts from its weights.
        samples: To train on.
        valid: To validate on.
        weights: Of the classes, in the loss and in the validation accuracy.
        seed: Of the order of the samples and of dropout, in each training alike.
    """

    estimator: Any
    module: nn.Module
    samples: TensorDataset
    valid: TensorDataset
    weights: NDArray[Any] | None
    seed: int

    def train(self, hierarchy: Hierarchy | None = None, length: int = 0) -> NeuralNetClassifier:
        """Return a net trained through the levels or, without a hierarchy, plainly.

        It has its best weights and its history, and is fit for prediction only.

        Args:
            hierarchy: With a coarse level at least. Defaults to None.
            length: T. Defaults to 0.
        """
        criterion = self._criterion()
        curriculum = curriculum_from(hierarchy, length, criterion=criterion) if hierarchy else None
        if curriculum:
            check_finest_fits(curriculum.finest_epoch, self.estimator.max_epochs)
        net = CheckedNet(
            copy.deepcopy(self.module),
            criterion=criterion,
            optimizer__weight_decay=self.estimator.weight_decay,
            train_split=predefined_split(self.valid),
            iterator_train=Batches,
            iterator_train__shuffle=True,
            iterator_valid=Batches,
            predict_nonlinearity=probabilities,
            callbacks=[CurriculumCallback(curriculum, self.estimator.patience)],
            callbacks__valid_acc=EpochScoring(
                partial(accuracy, weights=self.weights), name="valid_acc", lower_is_better=False
            ),
            **{name: getattr(self.estimator, name) for name in NET_SETTINGS},
        )
        with seeded(self.seed):
            net.fit(self.samples, None)
        history = History(net.history)  # a copy, as it is emptied with all it was trained by
        net.trim_for_prediction()
        net.history_ = history
        net.module = None  # else the weights would be pickled twice, and bound to their device
        return net

    def _criterion(self) -> CoarseToFineLoss:
        weight = None
        if self.weights is not None:
            weight = torch.as_tensor(self.weights, dtype=self.samples.tensors[0].dtype)
        return CoarseToFineLoss(None, weight, label_smoothing=self.estimator.label_smoothing)


class CheckedNet(NeuralNetClassifier):  # type: ignore[misc]
    """skorch's net, which refuses to go on where nothing can be learned any more."""

    def get_loss(
        self,
        y_pred: Tensor,
        y_true: Tensor,
        X: Any = None,  # noqa: N803, as skorch calls it
        training: bool = False,
    ) -> Tensor:
        """Return the loss of a batch, if that and the outputs are finite."""
        loss: Tensor = super().get_loss(y_pred, y_true, X, training)
        if not all_finite(y_pred, loss):
            where = f"epoch {len(self.history)}, batch {len(self.history[-1]['batches'])}"
            message = complaint(y_pred, loss, where, self.module_, X, self.infer)
            raise ValueError(f"{message} lr is {self.lr}.")
        return loss


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
            self.curriculum.step(len(net.history) - 1)
        net.history.record("level", net.criterion_.level)

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


class Batches:
    """What skorch takes for a DataLoader; it cuts batches from tensors, which is faster.

    Where it shuffles, to train, one last sample goes into the batch before it, as batch
    normalisation cannot train on one alone.

    Args:
        dataset: The samples.
        batch_size: How many to a batch.
        shuffle: Whether to go through them in a new random order each time. Defaults to
            False.
    """

    def __init__(self, dataset: TensorDataset, batch_size: int, shuffle: bool = False) -> None:
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        count = len(self.dataset)
        order = torch.randperm(count) if self.shuffle else torch.arange(count)
        batches = list(torch.split(order, self.batch_size))
        if self.shuffle and len(batches) > 1 and len(batches[-1]) == 1 < self.batch_size:
            batches[-2:] = [torch.cat(batches[-2:])]
        return (self.dataset[rows] for rows in batches)


class StandardisedMLP(nn.Module):
    """`TableMLP` behind a layer that brings every column to mean 0 and deviation 1.

    Args:
        num_classes: K.
        columns: The training rows (N, F), by which columns are scaled; their type is the
            network's.
        width: See `TableMLP`.
        dropout: See `TableMLP`.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, num_classes: int, columns: Tensor, width: int, dropout: float) -> None:
        super().__init__()
        deviation = columns.std(dim=0, correction=0)
        self.register_buffer("mean", columns.mean(dim=0))
        self.register_buffer("deviation", torch.where(deviation > 0, deviation, 1.0))
        self.mlp = TableMLP(num_classes, columns.shape[1], width, dropout).to(columns.dtype)

    def forward(self, columns: Tensor) -> Tensor:
        """Return the logits (N, K) of columns (N, F)."""
        logits: Tensor = self.mlp((columns - self.mean) / self.deviation)
        return logits


def accuracy(net: Any, inputs: Any, targets: Any, weights: NDArray[Any] | None) -> float:
    """Return a net's accuracy, each sample weighted by its class."""
    of_samples = None if weights is None else weights[targets]
    return float(accuracy_score(targets, net.predict(inputs), sample_weight=of_samples))


def best_score(history: Any) -> float:
    """Return the best validation accuracy at the finest level, which that of the last epoch is."""
    finest = history[-1]["level"]
    return float(max(row["valid_acc"] for row in history if row["level"] == finest))


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
def seeded(seed: int) -> Iterator[None]:
    """Seed torch for a while, and leave its random numbers as they were."""
    is_used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    devices = range(torch.cuda.device_count()) if is_used else ()
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
