"""The table of methods: how accurate each is, and what it cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..runs.statistics import paired
from .levels import Yardstick, mean_severity
from .runs import Entry
from .summary import gain_of, time_ratio

Estimate = tuple[float, float]  # a mean over seeds and its standard error, nan for a single one


@dataclass(frozen=True)
class TableRow:
    """A method's row; means are over its seeds, and None is for what takes a baseline.

    Args:
        label: What the report calls it.
        method: ``"baseline"``, or the name of a method.
        seeds: How many.
        accuracy: On the test samples, in percent.
        gain: Over the baseline of the same seed, in percentage points.
        interval: The 95% interval of the gain; None for a single seed, too.
        wins: In how many runs it gained, and of how many.
        epochs: How many it trained in all.
        own_epochs: After how many it had stopped by itself; None where it did not go on then.
        seconds: How long it trained.
        time_ratio: How many times as long as the baseline.
        severity: Of its mistakes; None where there are none, or no levels.
        is_shown: Whether it is the method whose details the report shows.
    """

    label: str
    method: str
    seeds: int
    accuracy: Estimate
    gain: Estimate | None
    interval: tuple[float, float] | None
    wins: tuple[float, int] | None
    epochs: float
    own_epochs: float | None
    seconds: float
    time_ratio: float | None
    severity: float | None
    is_shown: bool


def table_row(entry: Entry, yardstick: Yardstick, *, is_shown: bool) -> TableRow:
    """Return a method's row of the table.

    Args:
        entry: The method.
        yardstick: What the severity of mistakes is measured by.
        is_shown: Whether it is the method whose details the report shows.
    """
    gain, accuracy = gain_of(entry), paired([run.accuracy for run in entry.runs])
    return TableRow(
        label=entry.label,
        method=entry.method,
        seeds=len(entry.runs),
        accuracy=(accuracy.mean, accuracy.error),
        gain=(gain.mean, gain.error) if gain else None,
        interval=(gain.low, gain.high) if gain and gain.runs > 1 else None,
        wins=(gain.wins, gain.runs) if gain else None,
        epochs=float(np.mean([run.result.epochs for run in entry.runs])),
        own_epochs=_own_epochs(entry),
        seconds=float(np.mean([run.result.seconds for run in entry.runs])),
        time_ratio=time_ratio(entry),
        severity=mean_severity(yardstick, entry.runs),
        is_shown=is_shown,
    )


def _own_epochs(entry: Entry) -> float | None:
    """Return the mean over seeds, of which some may have trained as long as they would."""
    results = [run.result for run in entry.runs]
    if all(result.own_epochs is None for result in results):
        return None
    own = [r.epochs if r.own_epochs is None else r.own_epochs for r in results]
    return float(np.mean(own))
