"""Scikit-learn scorers of hierarchical measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer  # type: ignore[import-untyped]

from .._scores import mean
from .._util.arrays import Array, IntArray
from ..hierarchical_metrics import (
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    hops,
    level_calibration_errors,
)
from ..hierarchy import Hierarchy
from ..metrics import mean_height, mistake_severity

Measure = Callable[[Any, Any, Hierarchy], float]


def _accuracy(predictions: IntArray, targets: IntArray, _: Hierarchy) -> float:
    return mean(predictions == targets)


def _calibration_error(scores: Array, targets: IntArray, hierarchy: Hierarchy) -> float:
    return mean(level_calibration_errors(scores, targets, hierarchy))


# Each with whether more is better.
MEASURES: dict[str, tuple[Measure, bool]] = {
    "f1": (hierarchical_f1, True),
    "precision": (hierarchical_precision, True),
    "recall": (hierarchical_recall, True),
    "accuracy": (_accuracy, True),
    "mean_height": (mean_height, False),
    "mistake_severity": (mistake_severity, False),
    "hops": (hops, True),
    "calibration_error": (_calibration_error, False),
}
_OF_NODES = ("f1", "precision", "recall")  # all others are of samples that have a class
_OF_PROBABILITIES = ("hops", "calibration_error")


def hierarchical_scorer(hierarchy: Hierarchy, measure: str = "f1") -> Any:
    """Return a scorer for ``scoring=`` of cross-validation and searches.

    Labels are matched by name; those of a hierarchy without names are the numbers of its
    classes. They may be names of clusters too: f1, precision and recall count them, and also
    predictions that are clusters; the other measures are of the samples labelled with their class.

    Args:
        hierarchy: The levels.
        measure: ``"f1"``, ``"precision"`` or ``"recall"``, see `hierarchical_f1`;
            ``"accuracy"``; ``"hops"``, of `predict_proba`; or ``"mean_height"``,
            ``"mistake_severity"`` or ``"calibration_error"``, the mean of
            `level_calibration_errors`, which are negated, as scikit-learn takes more for better.
            Defaults to ``"f1"``.

    Examples:
        >>> from sklearn.dummy import DummyClassifier
        >>> hierarchy = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []})
        >>> always_cat = DummyClassifier().fit([[0], [1]], ["cat", "cat"])
        >>> float(hierarchical_scorer(hierarchy)(always_cat, [[0], [1]], ["cat", "dog"]))
        0.75
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}. Got {measure!r}.")
    if measure in _OF_PROBABILITIES:
        return ProbabilityScorer(hierarchy, measure)
    return make_scorer(
        _score, greater_is_better=MEASURES[measure][1], hierarchy=hierarchy, measure=measure
    )


def _score(y_true: Any, y_pred: Any, *, hierarchy: Hierarchy, measure: str) -> float:
    """Return a measure of labels; not a closure, as scorers are pickled for other processes."""
    function = MEASURES[measure][0]
    predictions, targets = _nodes(y_pred, hierarchy), _nodes(y_true, hierarchy)
    if measure not in _OF_NODES:
        is_class = targets < hierarchy.num_classes
        predictions, targets = predictions[is_class], targets[is_class]
    return function(predictions, targets, hierarchy)


class ProbabilityScorer:
    """A scorer by the probabilities of all classes, with which it knows the order of these.

    Args:
        hierarchy: The levels.
        measure: One of the measures of probabilities.
    """

    def __init__(self, hierarchy: Hierarchy, measure: str) -> None:
        self.hierarchy, self.measure = hierarchy, measure

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:  # noqa: N803
        """Return the measure of a fitted classifier."""
        classes = self.hierarchy.num_classes
        columns, targets = (_nodes(names, self.hierarchy) for names in (estimator.classes_, y))
        if columns.max() >= classes:
            cluster = self.hierarchy.decode([columns.max()])[0]
            raise ValueError(f"the classifier has the class {cluster!r}, which is a cluster.")
        probabilities = np.asarray(estimator.predict_proba(X))
        # Samples to train on may lack a class.
        scores = np.zeros((len(probabilities), classes))
        scores[:, columns] = probabilities
        is_class = targets < classes
        function, is_gain = MEASURES[self.measure]
        found = function(scores[is_class], targets[is_class], self.hierarchy)
        return found if is_gain else -found


def _nodes(labels: Any, hierarchy: Hierarchy) -> IntArray:
    names, places = np.unique(np.asarray(labels), return_inverse=True)
    return hierarchy.nodes.encode([str(name) for name in names])[places]
