"""CoarseToFineClassifier with labels that are names of classes and of clusters."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from node_labels import accuracy_by_hand, losses_by_hand, mixed
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn_cases import NAMES, grouped, quick
from test_sklearn_errors import Untrainable
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy
from coarse2fine.integrations._sklearn_inputs import validation_mask
from coarse2fine.integrations._sklearn_samples import Rows, class_weights
from coarse2fine.integrations.sklearn import LevelClassifier, hierarchical_scorer

SEED = np.random.RandomState(0).randint(np.iinfo(np.int32).max)  # what random_state=0 gives
# The pairs that lie close together, in an order of their own.
TREE = {
    "pairs of vowels": {"second": ["dog", "cat"], "first": ["bee", "ash"]},
    "others": {"last": ["hen", "gnu"], "third": ["elm", "fox"]},
}
TAXONOMY = Hierarchy.from_taxonomy(TREE)
SORTED = TAXONOMY.for_classes(NAMES)  # as the classes are


def linear(num_classes):
    return nn.Linear(6, num_classes)


@pytest.fixture(scope="module")
def data():
    """Half of the samples known by their class, the others by a pair or by four."""
    X, y = grouped(240)
    order = np.random.default_rng(0).permutation(240)
    nodes = mixed(torch.from_numpy(y[order]), SORTED)
    return X[order], np.array(SORTED.decode(nodes)), NAMES[y[order]]


@pytest.fixture(scope="module")
def fitted(data):
    return quick(hierarchy=TAXONOMY).fit(*data[:2])


def test_the_classes_are_those_of_the_hierarchy(data, fitted):
    X, labels, classes = data
    assert fitted.classes_.tolist() == NAMES.tolist() == sorted(TAXONOMY.class_names)
    assert fitted.hierarchy_ == SORTED
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (240, 8)
    assert fitted.predict(X).tolist() == NAMES[probabilities.argmax(1)].tolist()
    assert fitted.score(X, classes) == accuracy_score(classes, fitted.predict(X)) > 0.8
    assert set(labels) > set(NAMES)
    assert list(fitted.val_accuracies_) == ["baseline", "continuous"]


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("method", ["baseline", "continuous"])
def test_a_loop_by_hand_finds_the_same_weights(data, class_weight, method):
    X, labels, _ = data
    kept = np.flatnonzero((labels != "ash") | (np.arange(240) % 3 > 0))  # classes differ in size
    settings = {"patience": 0, "method": method, "hierarchy": TAXONOMY, "max_epochs": 20}
    classifier = quick(module=linear, class_weight=class_weight, **settings)
    classifier.fit(X[kept], labels[kept])
    weights, best = by_hand(X[kept], labels[kept], class_weight, method)
    torch.testing.assert_close(dict(classifier.module_.state_dict()), weights, rtol=1e-3, atol=1e-4)
    assert classifier.best_validation_score_ == pytest.approx(best)


def by_hand(inputs, labels, class_weight, method):
    """The weights that the method leads to and their validation accuracy, by plain torch."""
    nodes = torch.from_numpy(SORTED.encode(labels.tolist()))
    valid = validation_mask(nodes.numpy(), 0.2, SEED)
    of_class = np.ones(8)
    if class_weight:
        counts = np.bincount(nodes[nodes < 8], minlength=8)
        of_class = counts.sum() / (8 * counts)
    of_node = [of_class[SORTED.nodes.classes(node)].mean() for node in range(len(SORTED.nodes))]
    weights, x = torch.tensor(of_node)[nodes].float(), torch.tensor(inputs, dtype=torch.float32)
    torch.manual_seed(SEED)
    model, found = nn.Linear(6, 8), []
    torch.manual_seed(SEED)
    optimiser = torch.optim.Adam(model.parameters(), 0.03)
    curriculum = Curriculum(CoarseToFineLoss(SORTED), patience=5, total_epochs=20)
    rows = torch.from_numpy(np.flatnonzero(~valid))
    for _ in range(20):
        level = -1 if method == "baseline" else curriculum.level
        for batch in rows[torch.randperm(len(rows))].split(16):
            optimiser.zero_grad()
            losses = losses_by_hand(model(x[batch]), nodes[batch], SORTED, level)
            ((losses * weights[batch]).sum() / weights[batch].sum()).backward()
            optimiser.step()
        held_out = model(x[valid]), nodes[valid], SORTED
        if level in (-1, 2):
            score = accuracy_by_hand(*held_out, -1, weights[valid])
            found.append((score, copy.deepcopy(model.state_dict())))
        else:
            curriculum.step(accuracy_by_hand(*held_out, level, weights[valid]))
    best, state = max(found, key=lambda pair: pair[0])
    return dict(state), best


def test_a_class_may_be_known_by_its_cluster_alone(data):
    X, labels, _ = data
    labels = np.where(labels == "bee", "first", labels)
    classifier = quick(hierarchy=TAXONOMY, class_weight="balanced", max_epochs=8).fit(X, labels)
    assert classifier.predict_proba(X).shape == (240, 8)
    plain = quick(curriculum_epochs=0, hierarchy=TAXONOMY, max_epochs=8).fit(X, labels)
    assert plain.classes_.tolist() == NAMES.tolist()
    assert (plain.best_, plain.hierarchy_) == ("baseline", None)


def test_labels_may_be_a_column_and_the_hierarchy_a_file(data, fitted, tmp_path):
    X, labels, _ = data
    TAXONOMY.save(tmp_path / "t.json")
    column = pd.Series(labels, dtype=object)
    classifier = quick(hierarchy=tmp_path / "t.json").fit(X, column)
    np.testing.assert_array_equal(classifier.predict_proba(X), fitted.predict_proba(X))
    assert classifier.classes_.dtype == object
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_weight_is_the_same_as_the_sample_that_often(data, form):
    X, labels, _ = data
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), times))
    classifier = quick(hierarchy=TAXONOMY, class_weight="balanced", max_epochs=8)
    weighed = classifier.fit(form(X), labels, sample_weight=times).predict_proba(X)
    doubled = classifier.fit(form(X[repeated]), labels[repeated]).predict_proba(X)
    np.testing.assert_array_equal(weighed, doubled)


def test_balanced_weights_count_the_samples_with_a_class():
    classes = np.array(["ash", "bee", "cat"])
    rows = Rows(np.zeros((7, 1)), np.array([0, 0, 0, 1, 4, 4, 3]))
    np.testing.assert_allclose(class_weights("balanced", classes, rows), [4 / 6, 2, 1])
    given = class_weights({"ash": 2.0, "bee": 1.0, "cat": 3.0}, classes, rows)
    assert given.tolist() == [2, 1, 3]


def test_cross_validation_may_count_the_samples_with_a_class(data):
    X, labels, _ = data
    pipeline = make_pipeline(StandardScaler(), quick(hierarchy=TAXONOMY, max_epochs=8))
    scorer = hierarchical_scorer(TAXONOMY, "accuracy")
    fold = np.arange(160), np.arange(160, 240)
    found = cross_val_score(pipeline, X, labels, cv=[fold], scoring=scorer)
    guesses = pipeline.fit(X[:160], labels[:160]).predict(X[160:])
    is_class = np.isin(labels[160:], NAMES)
    assert found[0] == (guesses == labels[160:])[is_class].mean()
    assert found[0] > 0.6 > (guesses == labels[160:]).mean()


def test_it_answers_at_any_level_too(data, fitted):
    X, labels, classes = data
    other, y = grouped(400, seed=0)
    levels = LevelClassifier(FrozenEstimator(fitted), TAXONOMY, accuracy=0.9)
    levels.fit(other[240:], NAMES[y[240:]])
    assert levels.classes_.tolist() == NAMES.tolist()
    assert levels.hierarchy_ == SORTED
    assert set(levels.predict(X)) <= {*SORTED.nodes.names}
    assert levels.score(X, classes) >= 0.9
    with pytest.raises(ValueError, match="which is no label that the classifier knows"):
        levels.fit(X, labels)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({0: "ahs"}, "hierarchy has no class or cluster 'ahs'. Did you mean 'ash'"),
        (dict.fromkeys(NAMES, "second"), "none is labelled with its class, so networks"),
        (dict.fromkeys([*NAMES, *SORTED.nodes.names], "ash"), "two classes or more. Got one cl"),
    ],
)
def test_labels_that_do_not_do_are_refused_before_training(data, change, message):
    X, labels, _ = data
    labels = np.array([change.get(at, change.get(name, name)) for at, name in enumerate(labels)])
    with pytest.raises(ValueError, match=message):
        quick(module=Untrainable(6, 8), hierarchy=TAXONOMY).fit(X, labels)


def test_without_names_the_labels_are_the_classes(data):
    X, labels, classes = data
    pairs = Hierarchy.from_levels([np.arange(8) // 2])
    with pytest.raises(ValueError, match=f"has 8 classes, the data {len(set(labels))}"):
        quick(hierarchy=pairs).fit(X, labels)
    assert quick(hierarchy=pairs, max_epochs=4).fit(X, classes).hierarchy_.class_names == (*NAMES,)
