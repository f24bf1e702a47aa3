"""The scikit-learn estimator against MLPClassifier, both with their defaults: time and accuracy."""

from __future__ import annotations

import statistics
import time
import warnings
from dataclasses import dataclass
from typing import Any

from measure import Row
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from coarse2fine.integrations.sklearn import CoarseToFineClassifier

SEEDS = 5
LIMIT = 3.0  # baseline and curriculum together, against one training of the peer
FIFTY = {
    "n_samples": 5000,
    "n_features": 40,
    "n_informative": 30,
    "n_redundant": 0,
    "n_classes": 50,
    "n_clusters_per_class": 1,
    "class_sep": 2.0,
    "random_state": 0,
}


@dataclass
class Fitted:
    """How long a fit took, and the accuracy on samples that it did not see."""

    seconds: float
    accuracy: float


def rows() -> list[Row]:
    return [
        *rows_of("the digits", *load_digits(return_X_y=True)),
        *rows_of("50 made-up classes", *make_classification(**FIFTY)),
    ]


def rows_of(what: str, inputs: Any, labels: Any) -> list[Row]:
    """Return the ratio of the times, and the difference of the accuracies."""
    parts = train_test_split(inputs, labels, test_size=0.5, stratify=labels, random_state=0)
    fitted(CoarseToFineClassifier(max_epochs=10, curriculum_epochs=1), parts)  # to warm up
    ours, peer = [], []
    for seed in range(SEEDS):  # in turns, so that noise hits both alike
        ours.append(fitted(CoarseToFineClassifier(random_state=seed), parts))
        peer.append(fitted(MLPClassifier(random_state=seed), parts))
    ratio = statistics.median(a.seconds / b.seconds for a, b in zip(ours, peer, strict=True))
    times = " against ".join(
        f"{statistics.median(each.seconds for each in found):.2f} s" for found in (ours, peer)
    )
    mine, theirs = (
        100 * statistics.mean(each.accuracy for each in found) for found in (ours, peer)
    )
    return [
        Row.at_most(
            f"CoarseToFineClassifier on {what}, against MLPClassifier", ratio, LIMIT, "×", times
        ),
        Row.plain(
            f"accuracy of CoarseToFineClassifier on {what}, less that of MLPClassifier",
            mine - theirs,
            " points",
            f"{mine:.1f} % against {theirs:.1f} %, means of {SEEDS} seeds",
        ),
    ]


def fitted(estimator: Any, parts: list[Any]) -> Fitted:
    """Fit and score an estimator."""
    inputs, test_inputs, labels, test_labels = parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as that 200 epochs are too few for the peer
        start = time.perf_counter()
        estimator.fit(inputs, labels)
        taken = time.perf_counter() - start
    return Fitted(taken, estimator.score(test_inputs, test_labels))
