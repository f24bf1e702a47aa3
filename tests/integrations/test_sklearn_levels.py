"""LevelClassifier around fitted classifiers."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn_cases import NAMES, grouped

from coarse2fine import Hierarchy, LevelPredictor
from coarse2fine.integrations.sklearn import LevelClassifier

PAIRS = {"a": ["ash", "bee"], "b": ["cat", "dog"], "c": ["elm", "fox"], "d": ["gnu", "hen"]}
HIERARCHY = Hierarchy.from_taxonomy(PAIRS)


def samples():
    """Points to train on, to calibrate by and to test on, with the labels of each."""
    points, y = grouped(1200)
    points = points + np.random.default_rng(1).normal(size=points.shape)
    return [(points[part], NAMES[y[part]]) for part in np.split(np.arange(1200), 3)]


def test_a_promised_share_of_the_answers_is_right():
    train, held_out, test = samples()
    model = LogisticRegression(max_iter=500).fit(*train)
    levels = LevelClassifier(model, HIERARCHY, accuracy=0.95).fit(*held_out)
    answers = levels.predict(test[0])
    assert model.score(*test) < 0.95 <= levels.score(*test)
    assert set(answers) & set(PAIRS)
    assert set(answers) & set(NAMES)
    members = {**PAIRS, **{name: [name] for name in NAMES}, "(any)": NAMES}
    right = [label in members[answer] for label, answer in zip(test[1], answers, strict=True)]
    assert levels.score(*test) == np.mean(right)


def test_it_is_the_level_predictor_of_the_logarithms():
    train, held_out, test = samples()
    model = LogisticRegression(max_iter=500).fit(*train)
    # As the labels are sorted, and in the hierarchy too.
    targets = np.searchsorted(NAMES, held_out[1])
    predictor = LevelPredictor(HIERARCHY, 0.8, 0.7).fit(
        model.predict_log_proba(held_out[0]), targets
    )
    levels = LevelClassifier(model, HIERARCHY, accuracy=0.8, confidence=0.7).fit(*held_out)
    expected = predictor.predict(model.predict_log_proba(test[0]))
    np.testing.assert_array_equal(levels.predict_nodes(test[0]), expected)


def test_classes_are_matched_by_name():
    train, held_out, test = samples()
    model = LogisticRegression(max_iter=500).fit(*train)
    mixed = Hierarchy.from_taxonomy(dict(reversed([(k, v[::-1]) for k, v in PAIRS.items()])))
    first, second = (
        LevelClassifier(model, given, accuracy=0.9).fit(*held_out) for given in (HIERARCHY, mixed)
    )
    np.testing.assert_array_equal(first.predict(test[0]), second.predict(test[0]))


def test_probabilities_of_zero_are_no_trouble():
    train, held_out, test = samples()
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0).fit(*train)
    assert (tree.predict_proba(test[0]) == 0).any()
    levels = LevelClassifier(tree, HIERARCHY, accuracy=0.8).fit(*held_out)
    assert levels.score(*test) >= 0.8


def test_it_can_be_cloned_and_pickled():
    train, held_out, test = samples()
    model = FrozenEstimator(LogisticRegression(max_iter=500).fit(*train))
    levels = LevelClassifier(model, HIERARCHY).fit(*held_out)
    for other in (clone(levels).fit(*held_out), pickle.loads(pickle.dumps(levels))):
        np.testing.assert_array_equal(other.predict(test[0]), levels.predict(test[0]))


def test_what_is_not_fitted_or_not_known_is_refused():
    train, held_out, _ = samples()
    with pytest.raises(NotFittedError):
        LevelClassifier(LogisticRegression(), HIERARCHY).fit(*held_out)
    model = LogisticRegression(max_iter=500).fit(*train)
    with pytest.raises(NotFittedError):
        LevelClassifier(model, HIERARCHY).predict(held_out[0])
    with pytest.raises(ValueError, match=r"y\[0\] is 'owl', which is no label that the class"):
        LevelClassifier(model, HIERARCHY).fit(held_out[0], ["owl", *held_out[1][1:]])
    with pytest.raises(TypeError, match="LinearSVC has no predict_proba; put it into scikit-learn"):
        LevelClassifier(LinearSVC().fit(*train), HIERARCHY).fit(*held_out)
    with pytest.raises(TypeError, match=r"hierarchy must be a Hierarchy. Got dict\."):
        LevelClassifier(model, PAIRS).fit(*held_out)
    for label, hint in (("beee", r"Did you mean 'bee'\?"), ("a", "It is a cluster; give only")):
        with pytest.raises(ValueError, match=rf"the classifier knows\. {hint}"):
            LevelClassifier(model, HIERARCHY).fit(held_out[0], [label, *held_out[1][1:]])
    with pytest.raises(ValueError, match="the hierarchy has 3 classes, the data 8"):
        LevelClassifier(model, Hierarchy.from_levels([[0, 0, 1]])).fit(*held_out)
