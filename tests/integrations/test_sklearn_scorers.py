"""Hierarchical measures as scorers of scikit-learn."""

import pickle

import numpy as np
import pytest

pytest.importorskip("skorch")

from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB

from coarse2fine import (
    Hierarchy,
    hierarchical_f1,
    hops,
    level_calibration_errors,
    mean_height,
    mistake_severity,
)
from coarse2fine.integrations.sklearn import hierarchical_scorer

NAMES = ["setosa", "versicolor", "virginica"]
IRIS = Hierarchy.from_taxonomy(
    {"small": ["setosa"], "large": ["versicolor", "virginica"]}, class_names=NAMES
)
FOLDS = StratifiedKFold(3)


@pytest.mark.parametrize(
    ("measure", "function", "sign"),
    [
        ("f1", hierarchical_f1, 1),
        ("mean_height", mean_height, -1),
        ("mistake_severity", mistake_severity, -1),
    ],
)
def test_cross_validation_by_a_measure(measure, function, sign):
    X, y = load_iris(return_X_y=True)
    labels = np.array(NAMES)[y]
    scorer = hierarchical_scorer(IRIS, measure)
    found = cross_val_score(GaussianNB(), X, labels, cv=FOLDS, scoring=scorer)
    guesses = IRIS.encode(cross_val_predict(GaussianNB(), X, labels, cv=FOLDS).tolist())
    held_out = [test for _, test in FOLDS.split(X, labels)]
    expected = [sign * function(guesses[test], y[test], IRIS) for test in held_out]
    np.testing.assert_allclose(found, expected)


def test_numbers_are_the_classes_of_a_hierarchy_without_names():
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
    always_1 = DummyClassifier().fit([[0.0]], [1])
    assert hierarchical_scorer(hierarchy)(always_1, [[0.0]] * 3, [1, 0, 3]) == 0.5


def test_answers_may_be_clusters():
    large = DummyClassifier().fit([[0.0]], ["large"])
    scorer = hierarchical_scorer(IRIS, "precision")
    assert scorer(large, [[0.0]] * 2, ["virginica", "setosa"]) == 0.5


def test_the_accuracy_is_that_of_the_samples_with_a_class():
    always = DummyClassifier().fit([[0.0]], ["virginica"])
    scorer = hierarchical_scorer(IRIS, "accuracy")
    assert scorer(always, [[0.0]] * 5, ["large", "virginica", "setosa", "large", "virginica"]) == (
        pytest.approx(2 / 3)
    )


@pytest.mark.parametrize(
    ("measure", "function"),
    [
        ("hops", hops),
        ("calibration_error", lambda *given: -np.mean(level_calibration_errors(*given))),
    ],
)
def test_cross_validation_by_probabilities(measure, function):
    X, y = load_iris(return_X_y=True)
    # In another order than the classifier's, which sorts them.
    names = ["virginica", "setosa", "versicolor"]
    labels, iris = np.array(names)[y], IRIS
    scorer = pickle.loads(pickle.dumps(hierarchical_scorer(iris, measure)))
    found = cross_val_score(GaussianNB(), X, labels, cv=FOLDS, scoring=scorer)
    order = [sorted(names).index(name) for name in iris.class_names]
    expected = []
    for train, test in FOLDS.split(X, labels):
        shares = GaussianNB().fit(X[train], labels[train]).predict_proba(X[test])[:, order]
        expected.append(function(shares, iris.encode(labels[test]), iris))
    np.testing.assert_allclose(found, expected)
    assert len(set(found)) > 1


def test_probabilities_are_scored_where_a_class_was_not_trained_on():
    two = DummyClassifier(strategy="prior").fit([[0.0]] * 3, ["setosa", "setosa", "virginica"])
    found = hierarchical_scorer(IRIS, "hops")(two, [[0.0]] * 3, ["setosa", "large", "virginica"])
    shares = [[2 / 3, 0, 1 / 3]] * 2
    assert found == hops(shares, [0, 2], IRIS)
    clusters = DummyClassifier().fit([[0.0]] * 2, ["setosa", "large"])
    with pytest.raises(ValueError, match="the classifier has the class 'large', which is a clust"):
        hierarchical_scorer(IRIS, "hops")(clusters, [[0.0]], ["setosa"])


def test_heights_are_of_the_samples_with_a_class():
    always = DummyClassifier().fit([[0.0]], ["virginica"])
    scorer = hierarchical_scorer(IRIS, "mean_height")
    assert scorer(always, [[0.0]] * 3, ["large", "versicolor", "setosa"]) == -1.5
    large = DummyClassifier().fit([[0.0]], ["large"])
    with pytest.raises(ValueError, match="heights are of classes, so predictions must lie in 0..2"):
        scorer(large, [[0.0]], ["setosa"])


def test_a_scorer_is_pickled_as_processes_need_it():
    scorer = pickle.loads(pickle.dumps(hierarchical_scorer(IRIS, "recall")))
    setosa = DummyClassifier().fit([[0.0]], ["setosa"])
    assert scorer(setosa, [[0.0]], ["setosa"]) == 1


def test_an_unknown_measure_or_label_is_named():
    with pytest.raises(ValueError, match="one of f1, precision, .*Got 'depth'"):
        hierarchical_scorer(IRIS, "depth")
    rose = DummyClassifier().fit([[0.0]], ["rose"])
    with pytest.raises(ValueError, match="no class or cluster 'rose'"):
        hierarchical_scorer(IRIS)(rose, [[0.0]], ["setosa"])
