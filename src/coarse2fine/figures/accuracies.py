"""Test accuracies by method and seed, and their means."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from ..runs.result import RunResult
from ..runs.statistics import paired


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
