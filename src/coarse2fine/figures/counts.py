"""How often each class was predicted as each: what figures of classes and confusions count."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._hierarchy.levels import to_class_indices
from .._util.arrays import Array, IntArray
from ..runs.result import BASELINE, RunResult

PREFERRED = "continuous"


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

    @classmethod
    def from_matrix(cls, matrix: Any) -> Confusions:
        """Return what occurred of a K×K matrix of counts, rows the true classes."""
        counts = np.asarray(matrix)
        rows, columns = np.nonzero(counts)
        return cls(rows, columns, counts[rows, columns], len(counts))

    @property
    def matrix(self) -> IntArray:
        """All counts, K×K."""
        matrix = np.zeros((self.num_classes, self.num_classes), np.int64)
        matrix[self.rows, self.columns] = self.counts
        return matrix

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
        return percentages(self.hits, self.samples)

    def grouped(self, owners: IntArray) -> Confusions:
        """Return how often each cluster was predicted as each.

        Args:
            owners: The cluster of each class, from 0.
        """
        count = int(owners.max()) + 1
        keys = owners[self.rows] * count + owners[self.columns]
        cells, places = np.unique(keys, return_inverse=True)
        counts = np.bincount(places, self.counts).astype(np.int64)
        return Confusions(cells // count, cells % count, counts, count)

    def _sums(self, counts: IntArray) -> IntArray:
        sums = np.zeros(self.num_classes, np.int64)
        np.add.at(sums, self.rows, counts)
        return sums


def percentages(parts: Array, wholes: Array) -> Array:
    """Return each part in percent of its whole; nan where that is 0."""
    shares: Array = np.full(len(wholes), np.nan)
    np.divide(100 * parts, wholes, out=shares, where=wholes > 0)
    return shares


def count_confusions(predictions: IntArray, targets: IntArray, num_classes: int) -> Confusions:
    """Return how often each true class was predicted as each.

    Args:
        predictions: Class indices.
        targets: The true ones, in the same order.
        num_classes: K.
    """
    predicted, wanted = (to_class_indices(given, num_classes) for given in (predictions, targets))
    cells, counts = np.unique(np.multiply(wanted, num_classes) + predicted, return_counts=True)
    return Confusions(cells // num_classes, cells % num_classes, counts, num_classes)


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


# -------------------------------------------------------------------- with the baseline


def preferred(runs: Iterable[RunResult]) -> RunResult | None:
    """Return the first run of the continuous curriculum, else the first of all."""
    return min(runs, key=lambda run: run.method != PREFERRED, default=None)


def with_baseline(runs: Sequence[RunResult]) -> list[RunResult]:
    """Return the runs of methods that have a baseline of the same seed."""
    seeds = {run.seed for run in runs if run.method == BASELINE}
    return [run for run in runs if run.method != BASELINE and run.seed in seeds]


def compared(
    runs: Iterable[RunResult], method: str, num_classes: int
) -> tuple[Confusions | None, Confusions]:
    """Return the confusions of the baseline, where there is one, and of a method.

    They are of the seeds that both have, so that nothing but the method differs.

    Args:
        runs: Of all methods.
        method: That is compared with the baseline.
        num_classes: K.
    """
    runs = list(runs)
    after = [run for run in runs if run.method == method]
    before = [run for run in runs if run.method == BASELINE != method]
    seeds = {run.seed for run in before} & {run.seed for run in after}
    if not seeds:
        return None, confusions(after, num_classes)
    shared = ([run for run in own if run.seed in seeds] for own in (before, after))
    first, second = (confusions(own, num_classes) for own in shared)
    return first, second
