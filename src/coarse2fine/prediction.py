"""Answers as fine as a model is sure: a class where it can, otherwise a cluster.

How sure is sure enough is found by Learn-then-Test (Angelopoulos et al., 2021, arXiv
2110.01052), so that the share of right answers is guaranteed with finitely many samples and
whatever the model is.
"""

from __future__ import annotations

import math
import warnings
from reprlib import repr as short
from typing import Any

import numpy as np

from ._logits import check_logits, check_targets, log_softmax
from ._paths import likeliest_paths
from ._util.arrays import Array, IntArray
from .hierarchy import Hierarchy

FORMAT, VERSION = "coarse2fine-level-predictor", 1
_TEMPERATURE_SHARE = 5  # one of so many samples is for the temperature
_HOTTEST = 10.0  # the range of temperatures is from its inverse to it
# The thresholds that are tested, strictest first: evenly spaced in log-odds, as the probabilities
# of a sure model differ in how near they are to 1. The last, 0, always answers with a class.
# They are fixed beforehand, as the guarantee asks that no calibrating label has a say in them.
_THRESHOLDS = np.append(1 / (1 + np.exp(-np.linspace(20, -10, 3001))), 0.0)


class LevelPredictor:
    """Answers each sample with the finest node of a hierarchy that the model is sure of.

    From the root it descends to the likeliest child as long as that has at least a certain
    probability, which is the sum over its classes. An answer is right if the target lies in the
    node; the root is always right. `fit` chooses the lowest threshold for which, with
    probability `confidence` over the samples that it is given, at least a share `accuracy` of
    all answers is right to samples from the same source.

    The samples must not have been trained on. `fit` divides them by chance, always in the same
    way: a fifth is for a temperature, by which logits are divided where that lowers their
    cross-entropy. The rest tests thresholds, from the strictest down, each by the exact
    binomial test to which the bound of Clopper and Pearson belongs, until one fails. Neither
    temperature nor the list of thresholds depends on the labels of the rest, and tests in a
    fixed order need no correction for their number.

    Args:
        hierarchy: Of the K classes.
        accuracy: The share of answers to be right. Defaults to 0.95.
        confidence: The probability with which that is kept. Defaults to 0.9.

    Attributes:
        threshold_: The least probability of an answer below the root; infinity where every
            answer is the root.
        temperature_: What logits are divided by.
        num_samples_: How many samples tested the thresholds.
        accuracy_: The share of them whose answer is right.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]], ["cat", "dog", "car", "bus"])
        >>> targets = np.arange(400) % 4
        >>> logits = 6.0 * (hierarchy.levels[0][targets][:, None] == hierarchy.levels[0])
        >>> logits[:200] += 6.0 * np.eye(4)[targets[:200]]  # it knows some of the classes
        >>> predictor = LevelPredictor(hierarchy).fit(logits, targets)
        >>> predictor.hierarchy.decode(predictor.predict([[9, 2, 0, 0], [5, 5, 0, 0]]))
        ['cat', 'level 0 cluster 0']
    """

    threshold_: float
    temperature_: float
    num_samples_: int
    accuracy_: float

    def __init__(
        self, hierarchy: Hierarchy, accuracy: float = 0.95, confidence: float = 0.9
    ) -> None:
        self.hierarchy = hierarchy
        self.accuracy = _check_share(accuracy, "accuracy")
        self.confidence = _check_share(confidence, "confidence")

    def fit(self, logits: Any, targets: Any) -> LevelPredictor:
        """Choose temperature and threshold, and return the predictor.

        Args:
            logits: Of shape (N, K), of samples that were not trained on.
            targets: Their classes, of shape (N).

        Raises:
            ValueError: There are too few samples for the promise, or they do not fit the
                hierarchy.
        """
        classes = self.hierarchy.num_classes
        logits = check_logits(logits, classes)
        targets = check_targets(targets, len(logits), classes)
        self._check_enough(len(targets))
        shuffled = np.random.default_rng(0).permutation(len(targets))
        heating, testing = np.split(shuffled, [len(targets) // _TEMPERATURE_SHARE])
        self.temperature_ = _temperature(logits[heating], targets[heating])
        paths = likeliest_paths(logits[testing], self.temperature_, self.hierarchy.nodes)
        self._test(paths.mistakes(targets[testing], self.hierarchy.nodes))
        return self

    def predict(self, logits: Any) -> IntArray:
        """Return the node that answers each sample; `Hierarchy.decode` names them.

        Args:
            logits: Of shape (N, K).
        """
        self._check_fitted()
        logits = check_logits(logits, self.hierarchy.num_classes)
        paths = likeliest_paths(logits, self.temperature_, self.hierarchy.nodes)
        return paths.answers(self.threshold_)

    # ------------------------------------------------------------------------ as plain values

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted predictor as values that JSON can hold."""
        self._check_fitted()
        is_finite = math.isfinite(self.threshold_)  # JSON has no infinity
        return {
            "format": FORMAT,
            "version": VERSION,
            "hierarchy": self.hierarchy.to_dict(),
            "accuracy": self.accuracy,
            "confidence": self.confidence,
            "temperature": self.temperature_,
            "threshold": self.threshold_ if is_finite else None,
            "samples": self.num_samples_,
            "samples_accuracy": self.accuracy_,
        }

    @classmethod
    def from_dict(cls, content: Any) -> LevelPredictor:
        """Return the predictor that `to_dict` described, after checking every part of it.

        Args:
            content: What `to_dict` returned, perhaps by way of JSON.
        """
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f'not a level predictor: it must be an object of "format" "{FORMAT}".')
        if content.get("version") != VERSION:
            raise ValueError(
                f"version {short(content.get('version'))} of the format is not known; this "
                f"release reads version {VERSION}."
            )
        hierarchy = Hierarchy.from_dict(content.get("hierarchy"))
        made = cls(hierarchy, content.get("accuracy", 0), content.get("confidence", 0))
        threshold = content.get("threshold", math.nan)
        made.threshold_ = math.inf if threshold is None else _read(content, "threshold", 0)
        made.temperature_ = _read(content, "temperature", 1 / _HOTTEST)
        made.num_samples_ = int(_read(content, "samples", 1))
        made.accuracy_ = _read(content, "samples_accuracy", 0)
        return made

    # -------------------------------------------------------------------------- calibration

    def _test(self, mistakes: Array) -> None:
        """Set the threshold, by the probabilities from which on each answer is wrong."""
        from scipy.special import bdtr  # slow to import, and seldom needed

        self.num_samples_ = len(mistakes)
        wrong = len(mistakes) - np.searchsorted(np.sort(mistakes), _THRESHOLDS)
        # How probable so few mistakes would be if the promise were broken, and barely so.
        p_values = bdtr(wrong, len(mistakes), 1 - self.accuracy)
        passed = int(np.logical_and.accumulate(p_values <= 1 - self.confidence).sum())
        self.threshold_ = float(_THRESHOLDS[passed - 1]) if passed else math.inf
        self.accuracy_ = float(1 - wrong[passed - 1] / len(mistakes)) if passed else 1.0
        if not passed:
            warnings.warn(
                f"Even of the surest answers fewer than {self.accuracy:.6g} are right, so every "
                f"answer is the root.",
                stacklevel=3,
            )

    def _check_enough(self, samples: int) -> None:
        """Refuse a sample that would prove nothing even if all of its answers were right."""
        tested = math.ceil(math.log(1 - self.confidence) / math.log(self.accuracy))
        # The fewest of which so many remain when each fifth has gone to the temperature.
        needed = tested + (tested - 1) // (_TEMPERATURE_SHARE - 1)
        if samples < needed:
            raise ValueError(
                f"accuracy={self.accuracy:.6g} with confidence={self.confidence:.6g} needs at "
                f"least {needed} samples, {tested} of them to test thresholds. Got {samples}."
            )

    def _check_fitted(self) -> None:
        if not hasattr(self, "threshold_"):
            raise ValueError("the LevelPredictor has no threshold yet; call fit first.")


def _temperature(logits: Array, targets: IntArray) -> float:
    """Return the temperature of least cross-entropy, 1 where none is better than that."""
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    def cross_entropy(log_temperature: float) -> float:
        found = log_softmax(logits / math.exp(log_temperature))
        return float(-found[np.arange(len(targets)), targets].mean())

    if not len(targets):
        return 1.0
    most = math.log(_HOTTEST)
    found = minimize_scalar(cross_entropy, bounds=(-most, most), method="bounded")
    return math.exp(found.x) if found.fun < cross_entropy(0.0) else 1.0


def _check_share(value: Any, what: str) -> float:
    """Return a number strictly between 0 and 1."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ValueError(f"{what} must lie between 0 and 1, both excluded. Got {short(value)}.")
    return float(value)


def _read(content: dict[str, Any], key: str, least: float) -> float:
    """Return a finite number of a predictor's content."""
    value: Any = content.get(key)
    if type(value) not in (int, float) or not least <= value < math.inf:
        raise ValueError(f'"{key}" must be a number from {least:g}. Got {short(value)}.')
    return float(value)
