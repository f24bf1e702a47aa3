"""What several figures show of runs: accuracies, confusions, and the classes in order."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._hierarchy.levels import to_class_indices
from .._hierarchy.nesting import edges, nested_order
from .._util.arrays import Array, IntArray
from ..hierarchy import Hierarchy
from ..runs.result import BASELINE, RunResult
from ..runs.statistics import paired

PREFERRED = "continuous"


# ----------------------------------------------------------------------------- accuracies


class Estimate(NamedTuple):
    """A mean over seeds, in percent.

    Args:
        mean: Over the seeds.
        error: Its standard error; 0 for a single seed, as a drawing needs a number.
    """

    mean: float
    error: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Estimate:
        """Return mean and standard error of at least one value.

        Examples:
            >>> Estimate.of([29.0, 30.0, 31.0]).mean, Estimate.of([29.0])
            (30.0, Estimate(mean=29.0, error=0.0))
        """
        found = paired(list(values))
        return cls(found.mean, 0.0 if math.isnan(found.error) else found.error)


def accuracies(runs: Iterable[RunResult]) -> dict[str, dict[int, float]]:
    """Return the test accuracy of each run in percent, by method and seed."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        found.setdefault(run.method, {})[run.seed] = 100 * run.accuracy
    return found


def mean_accuracies(runs: Iterable[RunResult]) -> dict[str, Estimate]:
    """Return the mean test accuracy of each method."""
    return {name: Estimate.of(own.values()) for name, own in accuracies(runs).items()}


# ----------------------------------------------------------------------------- confusions


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


# ------------------------------------------------------------------- classes in order


@contextmanager
def flat_hierarchies() -> Iterator[None]:
    """Allow hierarchies without a level above the classes, which say so where one is trained."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The hierarchy of .* has no level above")
        yield


@dataclass(frozen=True)
class Level:
    """A level above the classes.

    Args:
        edges: The positions at which its clusters begin, and the end of the last.
        names: Of the clusters; None where they have none.
    """

    edges: list[int]
    names: list[str] | None

    @cached_property
    def owners(self) -> IntArray:
        """The cluster of every position, from 0."""
        return np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))


class Layout:
    """The classes side by side so that every cluster is in one piece.

    Args:
        hierarchy: Whose clusters these are.

    Attributes:
        order: The class at each position.
        levels: Those above the classes, coarsest first.
    """

    def __init__(self, hierarchy: Hierarchy) -> None:
        above = hierarchy.levels[:-1]
        self.hierarchy, self.order = hierarchy, nested_order(above, hierarchy.num_classes)
        self.levels = [self._level(at) for at in range(len(above))]

    def _level(self, at: int) -> Level:
        level, names = self.hierarchy.levels[at], self.hierarchy.cluster_names
        cuts = edges(level, self.order)
        clusters = level[self.order[cuts[:-1]]].tolist()
        return Level(cuts, None if names is None else [names[at][one] for one in clusters])

    @cached_property
    def position(self) -> IntArray:
        """The position of each class."""
        return np.argsort(self.order)
