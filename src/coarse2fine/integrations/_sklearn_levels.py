"""Answers at any level from a fitted classifier of scikit-learn's kind."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from .._util.arrays import Array, IntArray, to_floats
from ..hierarchy import Hierarchy
from ..prediction import LevelPredictor

_LEAST = 1e-12  # trees give probabilities of 0, which have no logarithm


class LevelClassifier(BaseEstimator):  # type: ignore[misc]
    """Answers with the finest class or cluster that a fitted classifier is sure of.

    At least a share `accuracy` of the answers is right, with a probability of `confidence`, see
    `LevelPredictor`. `fit` does not train the classifier, but calibrates it by samples that it
    was not trained on. Where scikit-learn clones estimators, as in a search, wrap it in
    ``sklearn.frozen.FrozenEstimator``, so that it stays fitted.

    Args:
        estimator: A fitted classifier with `predict_proba`.
        hierarchy: Of its classes, which are matched by name; one without names has them in the
            order of ``classes_``.
        accuracy: The share of answers to be right. Defaults to 0.95.
        confidence: The probability with which that is kept. Defaults to 0.9.

    Attributes:
        classes_: The labels of the classifier.
        hierarchy_: Its classes in the order of ``classes_``.
        predictor_: The `LevelPredictor`, with its threshold and temperature.

    Examples:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> X, y = load_iris(return_X_y=True)
        >>> model = LogisticRegression(max_iter=1000).fit(X[::3], y[::3])
        >>> hierarchy = Hierarchy.from_levels([[0, 1, 1]], ["0", "1", "2"], [["0", "larger"]])
        >>> levels = LevelClassifier(model, hierarchy, accuracy=0.9).fit(X[1::3], y[1::3])
        >>> levels.predict([[6.0, 3.0, 4.9, 1.65]])
        array(['larger'], dtype=object)
    """

    def __init__(
        self,
        estimator: Any,
        hierarchy: Hierarchy,
        *,
        accuracy: float = 0.95,
        confidence: float = 0.9,
    ) -> None:
        self.estimator = estimator
        self.hierarchy = hierarchy
        self.accuracy = accuracy
        self.confidence = confidence

    def fit(self, X: Any, y: Any) -> LevelClassifier:  # noqa: N803
        """Find how sure the classifier must be, and return this one.

        Args:
            X: Samples that the classifier was not trained on.
            y: Their labels.
        """
        check_is_fitted(self.estimator)
        if not isinstance(self.hierarchy, Hierarchy):
            kind = type(self.hierarchy).__name__
            raise TypeError(f"hierarchy must be a Hierarchy. Got {kind}.")
        if not hasattr(self.estimator, "predict_proba"):
            raise TypeError(
                f"{type(self.estimator).__name__} has no predict_proba; put it into scikit-learn's "
                f"CalibratedClassifierCV."
            )
        labels = self.estimator.classes_
        hierarchy = self.hierarchy.for_classes([str(label) for label in labels])
        predictor = LevelPredictor(hierarchy, self.accuracy, self.confidence)
        predictor.fit(self._logits(X), _targets(y, labels, hierarchy))
        self.classes_, self.hierarchy_, self.predictor_ = labels, hierarchy, predictor
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the name of the class or cluster that answers each row; ``(any)`` for none."""
        answers = self.predict_nodes(X)  # which says so where it is not fitted
        return np.array(self.hierarchy_.decode(answers), object)

    def predict_nodes(self, X: Any) -> IntArray:  # noqa: N803
        """Return the same as node numbers, of which the classes are the first."""
        check_is_fitted(self)
        return self.predictor_.predict(self._logits(X))

    def score(self, X: Any, y: Any) -> float:  # noqa: N803
        """Return the share of answers that are right: the label lies in them."""
        answers = self.predict_nodes(X)
        nodes = self.hierarchy_.nodes
        places = nodes.starts[_targets(y, self.classes_, self.hierarchy_)]
        is_right = (nodes.starts[answers] <= places) & (places < nodes.stops[answers])
        return float(is_right.mean())

    def _logits(self, X: Any) -> Array:  # noqa: N803
        probabilities = to_floats(self.estimator.predict_proba(X), "probabilities")
        return np.asarray(np.log(np.maximum(probabilities, _LEAST)))


def _targets(y: Any, labels: Any, hierarchy: Hierarchy) -> IntArray:
    """Return the place of each label among those of the classifier."""
    places = {label: place for place, label in enumerate(np.asarray(labels).tolist())}
    given = np.asarray(y).tolist()
    wrong = next((at for at, label in enumerate(given) if label not in places), None)
    if wrong is not None:
        raise ValueError(
            f"y[{wrong}] is {given[wrong]!r}, which is no label that the classifier knows."
            f"{hierarchy.nodes.no_class(str(given[wrong]))}"
        )
    return np.array([places[label] for label in given], np.int64)
