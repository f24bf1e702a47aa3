"""CoarseToFineClassifier keeps the network that validates better, and says which it is."""

import numpy as np
import pytest
from sklearn_cases import grouped, quick

from coarse2fine import Hierarchy
from coarse2fine.integrations import sklearn as estimator
from coarse2fine.integrations._sklearn_choice import best_method, verdict

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


@pytest.fixture(scope="module")
def data():
    return grouped()


@pytest.fixture
def made_up_scores(monkeypatch):
    """Let the baseline and the curriculum validate as is said here."""

    def set_scores(baseline, continuous):
        def score(history):
            return continuous if max(history[:, "level"]) else baseline

        monkeypatch.setattr(estimator, "best_score", score)

    return set_scores


@pytest.mark.parametrize(
    ("scores", "best"),
    [((0.5, 0.6), "continuous"), ((0.6, 0.5), "baseline"), ((0.5, 0.5), "baseline")],
)
def test_the_better_one_is_kept(data, made_up_scores, scores, best):
    X, y = data
    made_up_scores(*scores)
    classifier = quick().fit(X, y)
    assert classifier.best_ == best
    assert classifier.val_accuracies_ == dict(zip(("baseline", "continuous"), scores, strict=True))
    assert classifier.best_validation_score_ == max(scores)
    assert classifier.baseline_score_ == scores[0]
    alone = quick(method=best).fit(X, y)
    np.testing.assert_array_equal(classifier.predict_proba(X), alone.predict_proba(X))
    other = quick(method="baseline" if best == "continuous" else "continuous").fit(X, y)
    assert not np.array_equal(classifier.predict_proba(X), other.predict_proba(X))
    assert max(classifier.history_[:, "level"]) > 0  # whichever is kept


def test_either_can_be_asked_for(data, made_up_scores):
    made_up_scores(0.9, 0.1)
    forced = quick(method="continuous").fit(*data)
    assert (forced.best_, forced.best_validation_score_) == ("continuous", 0.1)
    plain = quick(method="baseline").fit(*data)
    assert (plain.best_, plain.val_accuracies_) == ("baseline", {"baseline": 0.9})
    assert plain.hierarchy_ is None
    with pytest.raises(
        ValueError, match="method must be one of best, baseline, continuous. Got 'x'"
    ):
        quick(method="x").fit(*data)


def test_what_was_not_trained_is_no_choice(data):
    X, y = data
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    given = quick(hierarchy=pairs, curriculum_epochs=4).fit(X, y)
    assert (given.best_, list(given.val_accuracies_)) == ("continuous", ["continuous"])
    alone = quick(hierarchy=pairs, method="continuous").fit(X, y)
    assert (alone.best_, list(alone.val_accuracies_)) == ("continuous", ["continuous"])
    two = quick(method="continuous").fit(X, y // 4)
    assert (two.best_, list(two.val_accuracies_)) == ("baseline", ["baseline"])


def test_a_given_hierarchy_is_compared_with_the_baseline_too(data):
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    classifier = quick(hierarchy=pairs).fit(*data)
    assert list(classifier.val_accuracies_) == ["baseline", "continuous"]


@pytest.mark.parametrize(
    ("method", "scores", "last"),
    [
        ("best", (0.6, 0.5), "use the baseline: it validates 10.00 points better than continuous"),
        ("best", (0.5, 0.6), "use continuous: it validates 10.00 points better than the baseline"),
        ("continuous", (0.6, 0.5), "Kept continuous as asked for, though baseline validates"),
        ("baseline", (0.6, 0.5), "Only baseline was trained: it validates at 60.00 %."),
    ],
)
def test_which_is_kept_is_printed_on_request(data, made_up_scores, capsys, method, scores, last):
    made_up_scores(*scores)
    quick(method=method, max_epochs=4, curriculum_epochs=1, verbose=1).fit(*data)
    assert capsys.readouterr().out.splitlines()[-1].startswith(last)


def test_as_good_is_not_better():
    assert best_method({"baseline": 0.5, "continuous": 0.5}, "best") == "baseline"
    sentence = verdict("baseline", {"baseline": 0.5, "continuous": 0.5})
    assert sentence == "use the baseline: continuous validates no better (50.00 and 50.00 %)."
