"""What figures and reports show of finished runs, as plain values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._arrays import Array, IntArray
from .._levels import check_labels
from .._printable import brief
from ..errors import RunError
from .result import RunResult
from .run import METRICS, Metrics, Run

TEST, VALIDATION = "test_accuracy", "accuracy"


@dataclass(frozen=True)
class Curve:
    """How one run went on, epoch by epoch.

    Args:
        method: ``"baseline"``, or the name of a method.
        seed: Of the run.
        accuracy: On the target classes after every epoch, in percent; nan where an epoch has
            none, as in the coarse stages of ``"staged"``.
        level: In force in that epoch; None where the method has no levels.
        is_test: Whether it is on the test samples, else on the validation samples.
    """

    method: str
    seed: int
    accuracy: list[float]
    level: list[int | None]
    is_test: bool


def learning_curve(run: RunResult) -> Curve:
    """Return how a run went on: by the test samples where it noted them after every epoch.

    Where it did not, the validation samples tell; where it had none, all are nan.

    Raises:
        RunError: Where its metrics are damaged.
    """
    try:
        return _curve(run, Run(run.path, is_writer=False).metrics())
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise RunError(f"{run.path / METRICS} is damaged: {brief(repr(error))}.") from None


def _curve(run: RunResult, lines: list[Metrics]) -> Curve:
    is_test = any(TEST in line for line in lines)
    found = [line.get(TEST if is_test else VALIDATION) for line in lines]
    accuracy = [float("nan") if value is None else 100 * float(value) for value in found]
    return Curve(run.method, run.seed, accuracy, [line["level"] for line in lines], is_test)


@dataclass(frozen=True, eq=False)
class Confusions:
    """How often each true class was predicted as each class, keeping only what occurred.

    Args:
        rows: The true classes, in order.
        columns: The predicted classes, in order within a row; each pair is there once.
        counts: How often the pair occurred, at least once.
        num_classes: K.

    Examples:
        >>> found = count_confusions([1, 0, 1, 1], [0, 0, 1, 1], num_classes=3)
        >>> found.rows.tolist(), found.columns.tolist(), found.counts.tolist()
        ([0, 0, 1], [0, 1, 1], [1, 1, 2])
        >>> found.accuracies
        array([ 50., 100.,  nan])
    """

    rows: IntArray
    columns: IntArray
    counts: IntArray
    num_classes: int

    @cached_property
    def samples(self) -> IntArray:
        """How many samples each class has."""
        return self._sums(self.counts)

    @cached_property
    def hits(self) -> IntArray:
        """How many samples of each class were predicted as it."""
        return self._sums(self.counts * (self.rows == self.columns))

    @property
    def accuracies(self) -> Array:
        """The percentage of each class that was predicted as it; nan without samples."""
        shares: Array = np.full(self.num_classes, np.nan)
        np.divide(100 * self.hits, self.samples, out=shares, where=self.samples > 0)
        return shares

    def _sums(self, counts: IntArray) -> IntArray:
        sums = np.zeros(self.num_classes, np.int64)
        np.add.at(sums, self.rows, counts)
        return sums


def confusions(runs: Iterable[RunResult], num_classes: int) -> Confusions:
    """Return how often test samples of each class were predicted as each, over all runs.

    Args:
        runs: Whose predictions are counted together.
        num_classes: K.
    """
    pairs = [run.predictions("test") for run in runs]
    none = np.zeros(0, np.int64)
    predictions = np.concatenate([none, *(predicted for predicted, _ in pairs)])
    targets = np.concatenate([none, *(wanted for _, wanted in pairs)])
    return count_confusions(predictions, targets, num_classes)


def count_confusions(predictions: IntArray, targets: IntArray, num_classes: int) -> Confusions:
    """Return how often each true class was predicted as each.

    Args:
        predictions: Class indices.
        targets: The true ones, in the same order.
        num_classes: K.
    """
    predicted, wanted = (check_labels(given, num_classes) for given in (predictions, targets))
    cells, counts = np.unique(np.multiply(wanted, num_classes) + predicted, return_counts=True)
    return Confusions(cells // num_classes, cells % num_classes, counts, num_classes)
