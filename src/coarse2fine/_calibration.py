"""How sure a model must be: temperature and threshold, by samples that it was not trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ._logits import log_softmax
from ._paths import likeliest_paths
from ._util.arrays import Array, IntArray
from .nodes import Nodes

HOTTEST = 10.0  # the range of temperatures is from its inverse to it
_TEMPERATURE_SHARE = 5  # one of so many samples is for the temperature
# The thresholds that are tested, strictest first: evenly spaced in log-odds, as the probabilities
# of a sure model differ in how near they are to 1. The last, 0, always answers with a class.
# They are fixed beforehand, as the guarantee asks that no calibrating label has a say in them.
_THRESHOLDS = np.append(1 / (1 + np.exp(-np.linspace(20, -10, 3001))), 0.0)


class Passed(NamedTuple):
    """The lowest threshold that keeps a promise.

    Args:
        threshold: Infinity where none does, so that every answer is the root.
        accuracy: The share of the tested samples whose answer is right.
    """

    threshold: float
    accuracy: float


class Needed(NamedTuple):
    """How many samples a promise needs.

    Args:
        all: With those for the temperature.
        tested: Those that test thresholds.
    """

    all: int
    tested: int


@dataclass(frozen=True)
class Calibration:
    """What samples tell about thresholds, before any accuracy is promised.

    Args:
        temperature: By which logits are divided.
        mistakes: Of the samples that test thresholds, see `Paths.mistakes`.
    """

    temperature: float
    mistakes: Array

    @classmethod
    def of(cls, logits: Array, targets: IntArray, nodes: Nodes) -> Calibration:
        """Divide samples by chance, always in the same way, and find the temperature.

        Args:
            logits: Of samples that were not trained on, (N, K).
            targets: Their classes.
            nodes: Of the hierarchy.
        """
        shuffled = np.random.default_rng(0).permutation(len(targets))
        heating, testing = np.split(shuffled, [len(targets) // _TEMPERATURE_SHARE])
        temperature = _temperature(logits[heating], targets[heating])
        paths = likeliest_paths(logits[testing], temperature, nodes)
        return cls(temperature, paths.mistakes(targets[testing], nodes))

    @property
    def fewest_wrong(self) -> int:
        """How many answers are wrong with the strictest threshold."""
        return int(self._wrong()[0])

    def tested(self, accuracy: float, confidence: float) -> Passed:
        """Test thresholds from the strictest down until one fails, and return the last to pass.

        Args:
            accuracy: The promised share of right answers.
            confidence: The probability with which that is kept.
        """
        from scipy.special import bdtr  # slow to import, and seldom needed

        wrong, count = self._wrong(), len(self.mistakes)
        # How probable so few mistakes would be if the promise were broken, and barely so.
        p_values = bdtr(wrong, count, 1 - accuracy)
        passed = int(np.logical_and.accumulate(p_values <= 1 - confidence).sum())
        if not passed:
            return Passed(math.inf, 1.0)
        return Passed(float(_THRESHOLDS[passed - 1]), float(1 - wrong[passed - 1] / count))

    def _wrong(self) -> IntArray:
        """Return how many answers are wrong at each threshold."""
        found = np.searchsorted(np.sort(self.mistakes), _THRESHOLDS)
        return np.asarray(len(self.mistakes) - found)


def needed_samples(accuracy: float, confidence: float) -> Needed:
    """Return the fewest samples that prove a promise if all of their answers are right.

    Args:
        accuracy: The promised share of right answers.
        confidence: The probability with which that is kept.

    Examples:
        >>> needed_samples(0.95, 0.9)  # 0.95^45 = 0.0994
        Needed(all=56, tested=45)
    """
    tested = math.ceil(math.log(1 - confidence) / math.log(accuracy))
    # The fewest of which so many remain when each fifth has gone to the temperature.
    return Needed(tested + (tested - 1) // (_TEMPERATURE_SHARE - 1), tested)


def _temperature(logits: Array, targets: IntArray) -> float:
    """Return the temperature of least cross-entropy, 1 where none is better than that."""
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    def cross_entropy(log_temperature: float) -> float:
        found = log_softmax(logits / math.exp(log_temperature))
        return float(-found[np.arange(len(targets)), targets].mean())

    if not len(targets):
        return 1.0
    most = math.log(HOTTEST)
    found = minimize_scalar(cross_entropy, bounds=(-most, most), method="bounded")
    return math.exp(found.x) if found.fun < cross_entropy(0.0) else 1.0
