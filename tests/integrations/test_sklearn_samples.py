"""CoarseToFineClassifier with sparse samples, weights of samples and weights of classes."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.class_weight import compute_class_weight
from sklearn_cases import grouped, quick
from torch import nn

from coarse2fine.integrations._sklearn_inputs import validation_mask
from coarse2fine.integrations._sklearn_samples import Rows, class_weights, merged, moments

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")

SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # what random_state=0 gives
WORDS = {"ash": "leaf bark", "elm": "leaf twig", "cat": "fur purr", "dog": "fur woof"}


@pytest.fixture(scope="module")
def data():
    return grouped()


# ------------------------------------------------------------------------------------ sparse


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_a_sparse_matrix_may_have_any_format(data, form):
    X, y = data
    classifier = quick().fit(sparse.csr_matrix(X).asformat(form), y)
    assert classifier.score(sparse.csr_array(X).asformat(form), y) > 0.8
    np.testing.assert_allclose(
        classifier.predict_proba(sparse.csr_array(X)), classifier.predict_proba(X), rtol=1e-9
    )


def test_a_module_of_ones_own_gets_dense_batches_of_a_sparse_matrix(data):
    X, y = data
    classifier = quick(module=nn.Linear(6, 8))
    dense, thin = (clone(classifier).fit(form, y) for form in (X, sparse.csr_array(X)))
    assert thin.history_[:, "valid_acc"] == dense.history_[:, "valid_acc"]
    assert dense.score(X, y) > 0.5


def test_sentences_are_classified_in_a_pipeline():
    labels = np.array(list(WORDS) * 12)
    texts = [f"{WORDS[label]} the{number % 5}" for number, label in enumerate(labels)]
    pipeline = make_pipeline(TfidfVectorizer(), quick())
    assert cross_val_score(pipeline, texts, labels, cv=3).min() > 0.9


def test_categories_beside_numbers_are_classified_in_a_pipeline():
    y = np.arange(60) % 4
    X = np.array([[f"colour {label // 2}", 1e6 * (label % 2)] for label in y], dtype=object)
    encoder = make_column_transformer(
        (OneHotEncoder(), [0]), remainder="passthrough", sparse_threshold=1.0
    )
    X[:, 1] = X[:, 1].astype(float) + np.arange(60)
    assert sparse.issparse(encoder.fit_transform(X))
    assert make_pipeline(encoder, quick()).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("module", [None, nn.LazyLinear(4)])
def test_a_sparse_matrix_is_never_made_dense_as_a_whole(module):
    X = sparse.random_array((1000, 10_000), density=1e-3, format="csr", rng=0)
    y = np.arange(1000) % 4
    tracemalloc.start()
    try:
        quick(module=module, max_epochs=2, width=4, curriculum_epochs=1).fit(X, y).predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 0.25 * X.shape[0] * X.shape[1] * 4  # single precision


def test_the_callers_sparse_matrix_is_left_alone(data):
    X = sparse.csr_array(data[0])
    X.data[::3] = 0.0
    before = X.copy()
    quick(max_epochs=3, curriculum_epochs=1).fit(X, data[1]).predict(X)
    assert np.array_equal(X.data, before.data)
    assert np.array_equal(X.indices, before.indices)


def test_sparse_columns_are_scaled_and_not_centred():
    X = np.array([[0.0, 3.0], [0.0, 0.0], [0.0, 6.0], [0.0, 1.0]])
    mean, deviation = moments(Rows(sparse.csr_array(X), np.zeros(4)))
    assert mean.tolist() == [0, 0]
    np.testing.assert_allclose(deviation, [1, X[:, 1].std()])


# ------------------------------------------------------------------------ weights of samples


@pytest.mark.parametrize("settings", [{}, {"class_weight": "balanced", "label_smoothing": 0.1}])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_weight_is_the_same_as_the_sample_that_often_in_any_order(data, settings, form):
    X, y = data
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, len(y))
    repeated = rng.permutation(np.repeat(np.arange(len(y)), times))
    weighed = quick(**settings).fit(form(X), y, sample_weight=times)
    doubled = quick(**settings).fit(form(X[repeated]), y[repeated])
    np.testing.assert_array_equal(weighed.predict_proba(X), doubled.predict_proba(X))
    plain = quick(**settings).fit(form(X), y)
    assert not np.allclose(weighed.predict_proba(X), plain.predict_proba(X))


def test_only_the_ratio_of_the_weights_matters(data):
    X, y = data
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    one, other = (
        quick().fit(X, y, sample_weight=w).predict_proba(X) for w in (weights, weights * 8)
    )
    np.testing.assert_allclose(one, other, atol=1e-6)
    same = quick().fit(X, y, sample_weight=np.full(len(y), 3.0))
    np.testing.assert_array_equal(same.predict_proba(X), quick().fit(X, y).predict_proba(X))


def test_of_contradicting_labels_the_heavier_is_learned(data):
    X, y = data
    wrong = (y + 4) % 8
    both, labels = np.r_[X, X], np.r_[y, wrong]
    for right in (y, wrong):
        weights = np.where(labels == np.r_[right, right], 1.0, 0.02)
        classifier = quick().fit(both, labels, sample_weight=weights)
        assert (classifier.predict(X) == right).mean() > 0.8
        assert classifier.best_validation_score_ > 0.7  # weighted too


@pytest.mark.parametrize(
    ("weights", "match"),
    [
        (np.r_[1.0, -2.0, np.ones(158)], "at least 0 and finite. Got -2.0 at 1"),
        (np.zeros(160), "is 0 for every sample|at least one non-zero"),
        (np.ones(3), "sample_weight.shape"),
    ],
)
def test_weights_that_mean_nothing_are_refused(data, weights, match):
    with pytest.raises(ValueError, match=match):
        quick().fit(*data, sample_weight=weights)


def test_samples_that_differ_in_class_alone_are_not_merged():
    rows = merged(Rows(np.array([[1.0], [1.0], [-0.0], [0.0]]), np.array([0, 1, 2, 2])))
    assert sorted(zip(rows.labels.tolist(), rows.weights.tolist(), strict=True)) == [
        (0, 1.0),
        (1, 1.0),
        (2, 2.0),
    ]


# ------------------------------------------------------------------------ weights of classes


def test_class_weights_are_those_of_scikit_learn(rng):
    labels = np.array(["ash", "bee", "cat"])
    targets = np.r_[0, 1, 2, rng.integers(0, 3, 50)]
    for setting in ("balanced", {"ash": 3.0, "cat": 0.5}):
        found = class_weights(setting, labels, Rows(np.zeros((53, 1)), targets))
        expected = compute_class_weight(setting, classes=labels, y=labels[targets])
        np.testing.assert_allclose(found, expected)
    repeated = np.repeat(targets, np.arange(53) % 4)
    found = class_weights("balanced", labels, Rows(np.zeros((53, 1)), targets, np.arange(53.0) % 4))
    expected = compute_class_weight("balanced", classes=labels, y=labels[repeated])
    np.testing.assert_allclose(found, expected)


def test_balanced_weights_validate_by_balanced_accuracy(data):
    X, y = data
    rows = np.flatnonzero((y != 3) | (np.arange(len(y)) % 3 == 0))
    X, y = X[rows], y[rows]
    classifier = quick(class_weight="balanced").fit(X, y)
    valid = validation_mask(y, 0.2, SEED)
    assert len(set(np.bincount(y[valid]))) > 1
    by_class = np.bincount(y[valid]) * compute_class_weight("balanced", classes=np.arange(8), y=y)
    hits = classifier.predict(X[valid]) == y[valid]
    recalls = [hits[y[valid] == label].mean() for label in range(8)]
    assert classifier.best_validation_score_ == pytest.approx(np.average(recalls, weights=by_class))


def test_balanced_accuracy_is_a_scoring_and_balanced_weights_raise_it():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [300, 20, 20])
    X = rng.standard_normal((340, 2)) + 1.2 * np.eye(3)[y][:, :2]
    scores = [
        cross_val_score(quick(class_weight=w), X, y, cv=3, scoring="balanced_accuracy").mean()
        for w in (None, "balanced")
    ]
    assert scores[1] > scores[0] + 0.1
    fitted = quick(class_weight="balanced").fit(X, y)
    assert balanced_accuracy_score(y, fitted.predict(X)) > 0.5
