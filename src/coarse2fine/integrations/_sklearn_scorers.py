"""Scikit-learn scorers of hierarchical measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer  # type: ignore[import-untyped]

from .._scores import mean
from .._util.arrays import IntArray
from ..hierarchical_metrics import hierarchical_f1, hierarchical_precision, hierarchical_recall
from ..hierarchy import Hierarchy
from ..metrics import mean_height, mistake_severity


def _accuracy(predictions: IntArray, targets: IntArray, hierarchy: Hierarchy) -> float:
    """Return the accuracy of the samples whose label is a class."""
    is_class = targets < hierarchy.num_classes
    return mean(predictions[is_class] == targets[is_class])


# Each with whether more is better.
MEASURES: dict[str, tuple[Callable[[Any, Any, Hierarchy], float], bool]] = {
    "f1": (hierarchical_f1, True),
    "precision": (hierarchical_precision, True),
    "recall": (hierarchical_recall, True),
    "accuracy": (_accuracy, True),
    "mean_height": (mean_height, False),
    "mistake_severity": (mistake_severity, False),
}


def hierarchical_scorer(hierarchy: Hierarchy, measure: str = "f1") -> Any:
    """Return a scorer for ``scoring=`` of cross-validation and searches.

    Labels are matched by name; those of a hierarchy without names are the numbers of its
    classes. Predictions may be names of clusters too, except for the heights.

    Args:
        hierarchy: The levels.
        measure: ``"f1"``, ``"precision"`` or ``"recall"``, see `hierarchical_f1`;
            ``"accuracy"``, of the samples whose label is a class and no cluster; or
            ``"mean_height"`` or ``"mistake_severity"``, which are negated, as scikit-learn
            takes more for better. Defaults to ``"f1"``.

    Examples:
        >>> from sklearn.dummy import DummyClassifier
        >>> hierarchy = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []})
        >>> always_cat = DummyClassifier().fit([[0], [1]], ["cat", "cat"])
        >>> float(hierarchical_scorer(hierarchy)(always_cat, [[0], [1]], ["cat", "dog"]))
        0.75
    """
    if measure not in MEASURES:
        raise ValueError(f"measure must be one of {', '.join(MEASURES)}. Got {measure!r}.")
    return make_scorer(
        _score, greater_is_better=MEASURES[measure][1], hierarchy=hierarchy, measure=measure
    )


def _score(y_true: Any, y_pred: Any, *, hierarchy: Hierarchy, measure: str) -> float:
    """Return a measure of labels; not a closure, as scorers are pickled for other processes."""
    function = MEASURES[measure][0]
    return function(_nodes(y_pred, hierarchy), _nodes(y_true, hierarchy), hierarchy)


def _nodes(labels: Any, hierarchy: Hierarchy) -> IntArray:
    names, places = np.unique(np.asarray(labels), return_inverse=True)
    return hierarchy.nodes.encode([str(name) for name in names])[places]
