"""What all metrics ask of predictions, scores and targets."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._hierarchy.levels import to_class_indices
from ._util.arrays import Array, IntArray, to_floats, to_integers
from .hierarchy import Hierarchy


def mean(values: Array) -> float:
    """Return the mean, NaN where there is nothing."""
    return float(values.mean()) if values.size else float("nan")


def ratio(part: float, whole: float) -> float:
    """Return a part of a whole, NaN where there is nothing."""
    return float(part / whole) if whole else float("nan")


def pair(predictions: Any, targets: Any) -> tuple[IntArray, IntArray]:
    """Return predictions and targets as flat integers, one target for each prediction."""
    predictions = to_integers(predictions, "predictions")
    targets = to_integers(targets, "targets")
    if predictions.shape != targets.shape:
        raise ValueError(
            f"predictions and targets must have the same shape. Got {predictions.shape} and "
            f"{targets.shape}."
        )
    return predictions.reshape(-1), targets.reshape(-1)


def scores_and_targets(scores: Any, targets: Any) -> tuple[Array, IntArray]:
    """Return scores (N, K) without NaN, and one class (N) for each row."""
    scores = check_scores(scores)
    targets = to_integers(targets, "targets")
    if targets.shape != scores.shape[:1]:
        raise ValueError(
            f"targets must have shape ({len(scores)},), one for each row of scores. Got "
            f"{targets.shape}."
        )
    return scores, to_class_indices(targets, scores.shape[1], "targets")


def check_scores(given: Any) -> Array:
    """Return scores (N, K), refusing other shapes and NaN."""
    scores = to_floats(given, "scores")
    if scores.ndim != 2:
        raise ValueError(f"scores must have shape (N, K). Got {scores.shape}.")
    if np.isnan(scores).any():
        row, column = np.argwhere(np.isnan(scores))[0]
        raise ValueError(f"scores[{row}, {column}] is nan.")
    return scores


def check_classes(classes: int, hierarchy: Hierarchy) -> None:
    """Refuse scores of another number of classes than the hierarchy's."""
    if classes != hierarchy.num_classes:
        raise ValueError(
            f"the hierarchy has {hierarchy.num_classes} classes, so scores need as many "
            f"columns. Got {classes}."
        )


def check_k(k: int, classes: int) -> None:
    """Refuse to look at more of the best classes than there are."""
    if not 1 <= k <= classes:
        raise ValueError(f"k must lie in 1..{classes}. Got {k}.")
