"""How sure a gain is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._util.files import Json

SAME = 1e-9  # percentage points: what differs by less is the same but for rounding


@dataclass(frozen=True)
class Paired:
    """Gains over the baseline of the same seed and samples, run by run, in percent.

    Args:
        mean: Over the runs.
        error: The standard error; NaN for a single run.
        low: Where the 95% interval begins, by Student's t distribution; NaN for a single run.
        high: Where it ends.
        wins: How many runs gained; one that is equal counts as half.
        runs: How many there are.
    """

    mean: float
    error: float
    low: float
    high: float
    wins: float
    runs: int

    @property
    def win_rate(self) -> float:
        """The share of runs that gained."""
        return self.wins / self.runs

    def to_dict(self) -> Json:
        """Return the statistics as plain values; None for what a single run cannot tell."""
        is_one = self.runs == 1
        return {
            "gain": self.mean,
            "standard_error": None if is_one else self.error,
            "interval": None if is_one else [self.low, self.high],
            "win_rate": self.win_rate,
            "runs": self.runs,
        }

    @property
    def has_width(self) -> bool:
        """Whether the runs differ, beyond rounding, so that an interval tells something."""
        return self.error > SAME

    @property
    def is_clear(self) -> bool:
        """Whether the interval has a width and lies on one side of zero."""
        return self.has_width and (self.low > 0 or self.high < 0)

    @property
    def direction(self) -> int:
        """1 or -1 for a gain or a loss that is clear, else 0."""
        return (1 if self.mean > 0 else -1) if self.is_clear else 0

    @property
    def interval(self) -> str:
        """The interval in words."""
        return f"95 % interval {self.low:+.2f} to {self.high:+.2f}"


def paired(gains: Sequence[float]) -> Paired:
    """Return the statistics of gains.

    Args:
        gains: In percent, one for each run; at least one.

    Examples:
        >>> found = paired([1.0, 2.0, 3.0])
        >>> found.mean, round(found.error, 3), round(found.low, 3), round(found.high, 3)
        (2.0, 0.577, -0.484, 4.484)
        >>> found.win_rate, found.is_clear
        (1.0, False)
    """
    from scipy.stats import t

    values = np.asarray(gains, dtype=float)
    mean, error = float(values.mean()), standard_error(gains)
    half = error * float(t.ppf(0.975, len(gains) - 1)) if len(gains) > 1 else math.nan
    wins = float(np.sum(values > 0) + np.sum(values == 0) / 2)
    return Paired(mean, error, mean - half, mean + half, wins, len(gains))


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def mean_and_error(values: Sequence[float]) -> dict[str, float | None] | None:
    """Return the mean and its standard error as plain values, None for what cannot be told."""
    if not values:
        return None
    error = standard_error(values) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "standard_error": error}


def plus_minus(pair: tuple[float, float | None], sign: str = "") -> str:
    """Return a mean with its standard error, where there is one, as text.

    Args:
        pair: The mean, and its standard error; None or NaN where there is none.
        sign: ``"+"`` to write that of positive means, too. Defaults to ``""``.

    Examples:
        >>> plus_minus((2.2767, 0.294), "+"), plus_minus((24.2, None))
        ('+2.28 ± 0.29', '24.20')
        >>> plus_minus((31.525, None)), plus_minus((31.524999999999998, float("nan")))
        ('31.53', '31.53')
    """
    mean, error = pair
    mean = 0.0 if abs(mean) <= SAME else mean  # rounding alone is no loss; NaN stays
    # Halves away from zero, so that the same mean is the same text, however it was added up.
    text = f"{mean + math.copysign(5e-7, mean):{sign}.2f}"
    return text if error is None or math.isnan(error) else f"{text} ± {error:.2f}"


def errors_below(found: Paired, paper: tuple[float, float]) -> float:
    """Return by how many standard errors a gain is below the paper's; negative if above.

    Args:
        found: The gain here.
        paper: The paper's gain, and its standard error.

    Examples:
        >>> round(errors_below(paired([1.0, 2.0, 3.0]), (4.0, 1.0)), 2)
        1.73
    """
    error = math.hypot(found.error, paper[1])
    return (paper[0] - found.mean) / error if error else math.nan
