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

from ._calibration import HOTTEST, Calibration, needed_samples
from ._logits import check_logits, check_targets
from ._paths import likeliest_paths
from ._util.arrays import Array, IntArray
from .hierarchy import Hierarchy

FORMAT, VERSION = "coarse2fine-level-predictor", 1


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
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(f"hierarchy must be a Hierarchy. Got {type(hierarchy).__name__}.")
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
        _check_no_probabilities(logits)
        found = Calibration.of(logits, targets, self.hierarchy.nodes)
        tested = found.tested(self.accuracy, self.confidence)
        self.temperature_, self.num_samples_ = found.temperature, len(found.mistakes)
        self.threshold_, self.accuracy_ = tested.threshold, tested.accuracy
        if math.isinf(self.threshold_):
            warnings.warn(self._nothing_passed(found), stacklevel=2)
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

    def __repr__(self) -> str:
        told = f"accuracy={self.accuracy:.6g}, confidence={self.confidence:.6g}"
        found = f", threshold={self.threshold_:.4g}" if hasattr(self, "threshold_") else ""
        return f"LevelPredictor({told}{found})"

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
        made.temperature_ = _read(content, "temperature", 1 / HOTTEST)
        made.num_samples_ = int(_read(content, "samples", 1))
        made.accuracy_ = _read(content, "samples_accuracy", 0)
        return made

    # ------------------------------------------------------------------------------- checks

    def _check_enough(self, samples: int) -> None:
        """Refuse a sample that would prove nothing even if all of its answers were right."""
        needed = needed_samples(self.accuracy, self.confidence)
        if samples < needed.all:
            raise ValueError(
                f"accuracy={self.accuracy:.6g} with confidence={self.confidence:.6g} needs at "
                f"least {needed.all} samples, {needed.tested} of them to test thresholds. Got "
                f"{samples}."
            )

    def _nothing_passed(self, found: Calibration) -> str:
        wrong, count = found.fewest_wrong, len(found.mistakes)
        return (
            f"Even with the strictest threshold {wrong} of {count} answers are wrong, too many to "
            f"promise accuracy={self.accuracy:.6g} with confidence={self.confidence:.6g}, so every "
            f"answer is the root."
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "threshold_"):
            raise ValueError("the LevelPredictor has no threshold yet; call fit first.")


def _check_share(value: Any, what: str) -> float:
    """Return a number strictly between 0 and 1."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise ValueError(f"{what} must lie between 0 and 1, both excluded. Got {short(value)}.")
    return float(value)


def _check_no_probabilities(logits: Array) -> None:
    """Refuse what must be probabilities, of which the softmax would be nearly even."""
    if (logits >= 0).all() and np.allclose(logits.sum(axis=1), 1, rtol=0, atol=1e-3):
        raise ValueError("logits are probabilities: every row adds up to 1; give their logarithms.")


def _read(content: dict[str, Any], key: str, least: float) -> float:
    """Return a finite number of a predictor's content."""
    value: Any = content.get(key)
    if type(value) not in (int, float) or not least <= value < math.inf:
        raise ValueError(f'"{key}" must be a number from {least:g}. Got {short(value)}.')
    return float(value)
