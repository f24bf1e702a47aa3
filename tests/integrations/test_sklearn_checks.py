"""CoarseToFineClassifier among scikit-learn's own tools, and scikit-learn's own checks of it."""

import importlib
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_cases import grouped, quick
from torch import nn

from coarse2fine import MissingExtraError
from coarse2fine.integrations._sklearn_inputs import validation_mask
from coarse2fine.integrations.sklearn import CoarseToFineClassifier

# On so few samples a baseline may be slow to level off; how slow depends on the machine.
pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


@pytest.fixture(scope="module")
def data():
    return grouped()


@parametrize_with_checks([quick(max_epochs=9)])
def test_scikit_learns_checks_hold(estimator, check):
    check(estimator)


def test_no_setting_is_needed(data):
    assert CoarseToFineClassifier().fit(*data).score(*data) > 0.8


def test_a_pipeline_gives_the_same_scores_in_cross_validation_again(data):
    pipeline = make_pipeline(StandardScaler(), quick())
    scores = cross_val_score(pipeline, *data, cv=3)
    assert scores.min() > 0.8
    assert cross_val_score(clone(pipeline), *data, cv=3).tolist() == scores.tolist()


def test_a_grid_search_finds_the_better_settings(data):
    grid = {"lr": [1e-9, 0.03], "metric": ["embedding", "random"]}
    search = GridSearchCV(quick(curriculum_epochs=3), grid, cv=2).fit(*data)
    assert search.best_params_["lr"] == 0.03
    assert search.best_estimator_.score(*data) == search.score(*data) > 0.8


@pytest.mark.slow
def test_a_grid_search_in_two_processes_finds_the_same(data):
    searches = [
        GridSearchCV(quick(curriculum_epochs=3), {"lr": [0.01, 0.03]}, cv=2, n_jobs=jobs).fit(*data)
        for jobs in (1, 2)
    ]
    one, two = (search.cv_results_["mean_test_score"].tolist() for search in searches)
    assert one == two


def test_labels_may_be_strings_and_columns_have_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = pd.Series(np.array(["lime", "teal", "rose", "gold"])[y // 2])
    classifier = quick().fit(frame, labels)
    assert classifier.classes_.tolist() == ["gold", "lime", "rose", "teal"]
    assert classifier.hierarchy_.class_names == ("gold", "lime", "rose", "teal")
    assert classifier.feature_names_in_.tolist() == list("abcdef")
    assert (classifier.predict(frame) == labels).mean() > 0.9
    by_hand = classifier.classes_[classifier.predict_proba(frame).argmax(axis=1)]
    assert classifier.predict(frame).tolist() == by_hand.tolist()
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        classifier.predict(frame[list("fedcba")])


def test_a_pickled_classifier_predicts_the_same_and_has_the_same_history(data):
    X, y = data
    classifier = quick(width=128).fit(X, y)
    pickled = pickle.dumps(classifier)
    weights = sum(8 * weight.numel() for weight in classifier.module_.parameters())
    assert len(pickled) < 1.5 * weights  # once, that is, with the history
    again = pickle.loads(pickled)
    assert np.array_equal(again.predict_proba(X), classifier.predict_proba(X))
    assert again.hierarchy_ == classifier.hierarchy_
    assert again.history_ == classifier.history_


def test_a_clone_of_a_fitted_classifier_is_not_fitted(data):
    fresh = clone(quick(lr=0.07).fit(*data))
    assert fresh.lr == 0.07
    with pytest.raises(NotFittedError):
        fresh.predict(data[0])


def test_one_class_is_not_enough(data):
    with pytest.raises(ValueError, match="two classes or more. Got one class"):
        quick().fit(data[0], np.zeros(len(data[0])))


def test_all_that_is_random_follows_from_the_random_state(data):
    X, y = data
    first, again, other = (quick(random_state=s).fit(X, y).predict_proba(X) for s in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_one_elses_random_numbers_are_changed(data):
    of_numpy = check_random_state(None)  # the global one
    numpys, torchs = of_numpy.get_state(), torch.get_rng_state()
    quick().fit(*data).predict(data[0])
    assert torch.equal(torch.get_rng_state(), torchs)
    assert np.array_equal(of_numpy.get_state()[1], numpys[1])


def test_each_epoch_is_a_printed_line_on_request(data, capsys):
    quick(max_epochs=6, curriculum_epochs=2).fit(*data)
    assert not capsys.readouterr().out
    quick(max_epochs=6, curriculum_epochs=2, verbose=1).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["epoch", "level", "train_loss", "valid_acc", "valid_loss", "dur"]
    rows = [line.split() for line in lines if line.split() and line.split()[0].isdigit()]
    assert [row[0] for row in rows] == [str(epoch) for epoch in range(1, 7)] * 2


def test_every_class_keeps_a_sample_to_train_on(rng):
    y = np.r_[rng.integers(0, 5, 60), 5, 6, 6]
    valid = validation_mask(y, 0.5, seed=3)
    assert valid.sum() == 32  # half of 63
    assert set(y[~valid]) == set(range(7))
    shares = np.bincount(y[valid], minlength=7) / np.bincount(y)
    assert np.all(np.abs(shares[:5] - 0.5) < 0.15)
    with pytest.raises(ValueError, match="none is left to validate on"):
        validation_mask(np.arange(4), 0.5, seed=0)


def test_an_interrupt_is_not_taken_for_the_end_of_training(data):
    class Interrupted(nn.Linear):
        def forward(self, inputs):
            if self.training:
                raise KeyboardInterrupt
            return super().forward(inputs)

    with pytest.raises(KeyboardInterrupt):
        quick(module=Interrupted(6, 8)).fit(*data)


def test_a_missing_library_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "skorch", None)
    monkeypatch.delitem(sys.modules, "coarse2fine.integrations.sklearn")
    with pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[sklearn\]'"):
        importlib.import_module("coarse2fine.integrations.sklearn")
