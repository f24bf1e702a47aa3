"""Measures of hierarchical classification, by hand, by brute force and against other libraries."""

import numpy as np
import pytest
import torch
from hierarchies import hierarchies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coarse2fine import (
    Hierarchy,
    height_distribution,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    hops,
    level_accuracies,
    level_calibration_errors,
    mean_height,
    mistake_severity,
    top_k_accuracy,
)
from coarse2fine.hierarchical_metrics import node_paths

HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
RAGGED = Hierarchy.from_taxonomy({"animal": {"pet": ["cat", "dog"], "wild": ["fox"]}, "car": []})
# The first of them loads hypothesis's tables of letters, which may take a second.
DRAWN = settings(suppress_health_check=[HealthCheck.too_slow])
KINDS = pytest.mark.parametrize("kind", [list, np.array, torch.tensor])
MEASURES = {
    "precision": hierarchical_precision,
    "recall": hierarchical_recall,
    "f1": hierarchical_f1,
}


def node(hierarchy, names):
    return hierarchy.nodes.encode(names.split()).tolist()


# ------------------------------------------------------------------------ sets of ancestors


@KINDS
def test_the_sets_of_classes_and_of_inner_nodes(kind):
    # {dog, pet, animal} and {pet, animal} for {cat, pet, animal}; {car} for itself.
    predictions, targets = node(RAGGED, "dog pet car"), node(RAGGED, "cat cat car")
    given = kind(predictions), kind(targets), RAGGED
    assert hierarchical_precision(*given) == pytest.approx(5 / 6)
    assert hierarchical_recall(*given) == pytest.approx(5 / 7)
    assert hierarchical_f1(*given) == pytest.approx(10 / 13)


def test_a_cluster_of_one_class_counts_once():
    assert hierarchical_precision(node(RAGGED, "fox"), node(RAGGED, "cat"), RAGGED) == 0.5


def test_the_root_claims_nothing():
    root = [RAGGED.nodes.root]
    assert np.isnan(hierarchical_precision(root, [0], RAGGED))
    assert hierarchical_recall(root, [0], RAGGED) == 0
    assert hierarchical_f1(root, [0], RAGGED) == 0


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_right_answers_score_1_and_none_is_nan(measure):
    everything = np.delete(np.arange(len(RAGGED.nodes)), RAGGED.nodes.root)
    assert measure(everything, everything, RAGGED) == 1
    assert np.isnan(measure([], [], RAGGED))


def sets_of(nodes, found):
    return [{at, *nodes.ancestors(at)} - {nodes.root} for at in found]


@DRAWN
@given(st.data())
def test_sets_equal_those_by_brute_force(data):
    hierarchy = data.draw(hierarchies())
    nodes = hierarchy.nodes
    ids = st.integers(0, len(nodes) - 1)
    pairs = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=20))
    predictions, targets = map(list, zip(*pairs, strict=True))
    found, wanted = sets_of(nodes, predictions), sets_of(nodes, targets)
    common = sum(len(a & b) for a, b in zip(found, wanted, strict=True))
    total = sum(map(len, found)), sum(map(len, wanted))
    for measure, size in (hierarchical_precision, total[0]), (hierarchical_recall, total[1]):
        expected = common / size if size else np.nan
        assert measure(predictions, targets, hierarchy) == pytest.approx(expected, nan_ok=True)


@DRAWN
@given(hierarchies())
def test_paths_go_down_from_the_root(hierarchy):
    nodes = hierarchy.nodes
    for at, path in enumerate(node_paths(nodes).tolist()):
        down = [*reversed(nodes.ancestors(at)), at][1:]
        assert path == down + [-1] * (len(path) - len(down))


@pytest.mark.parametrize("name", MEASURES)
def test_the_same_as_hiclass(name, rng):
    metrics = pytest.importorskip("hiclass.metrics")
    predictions = rng.integers(0, len(RAGGED.nodes), 200)
    predictions[predictions == RAGGED.nodes.root] = 0  # hiclass knows no answer at the root
    targets = rng.integers(0, RAGGED.num_classes, 200)
    names = np.array([*map(str, range(len(RAGGED.nodes))), ""])  # -1, the last, is nothing
    paths = names[node_paths(RAGGED.nodes)]
    expected = getattr(metrics, name)(paths[targets], paths[predictions])
    assert MEASURES[name](predictions, targets, RAGGED) == pytest.approx(expected)


def test_the_values_of_hiclass():
    """What hiclass 5.0.4 gives, as it is not installed with the other tools."""
    predictions = [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 5, 5, 5, 5, 6, 6, 6, 3, 2, 1]
    targets = [0, 1, 2, 3, 1, 0, 2, 0, 3, 1, 0, 1, 2, 3, 0, 2, 3, 3, 2, 1]
    found = {name: measure(predictions, targets, RAGGED) for name, measure in MEASURES.items()}
    assert found == pytest.approx({"precision": 0.675, "recall": 0.6, "f1": 0.6352941176470589})


# ------------------------------------------------------------------------------------ heights


@KINDS
def test_both_means_follow_from_the_distribution(kind):
    given = kind([0, 1, 2, 5, 4]), kind([0, 0, 0, 0, 4]), HIERARCHY
    shares = height_distribution(*given)
    np.testing.assert_allclose(shares, [2 / 5, 1 / 5, 1 / 5, 1 / 5])
    assert mean_height(*given) == pytest.approx(shares @ np.arange(4)) == pytest.approx(6 / 5)
    over_mistakes = mean_height(*given) / (1 - shares[0])
    assert mistake_severity(*given) == pytest.approx(over_mistakes)


def test_heights_of_nothing_are_nan():
    assert np.isnan(height_distribution([], [], HIERARCHY)).all()
    assert np.isnan(mean_height([], [], HIERARCHY))


# --------------------------------------------------------------------------------------- HOPS


def ranked(order):
    """Scores that put the classes into this order."""
    scores = np.empty(len(order))
    scores[order] = -np.arange(len(order))
    return scores[None]


def test_hops_of_orders_worked_out_by_hand():
    # Preferred for class 0: 0, 1, {2, 3}, {4, 5}, so ranks 0 1 2 2 3 3; the weights are 1, 1/2,
    # 1/4 and 3/16 (down to 1/8), 1/8 and 1/16 (down to 0).
    weights = np.array([1, 1 / 2, 1 / 4, 3 / 16, 1 / 8, 1 / 16])
    worst = weights @ [3, 2, 0, 0, 2, 3]
    for order, differences in [
        ([0, 1, 2, 3, 4, 5], [0, 0, 0, 0, 0, 0]),
        ([0, 1, 3, 2, 5, 4], [0, 0, 0, 0, 0, 0]),
        ([1, 0, 2, 3, 4, 5], [1, 1, 0, 0, 0, 0]),
        ([0, 4, 1, 2, 3, 5], [0, 2, 1, 0, 1, 0]),
        ([5, 4, 3, 2, 1, 0], [3, 2, 0, 0, 2, 3]),
    ]:
        expected = 1 - weights @ differences / worst
        assert hops(ranked(order), [0], HIERARCHY) == pytest.approx(expected)


def test_hops_of_the_best_classes_by_hand():
    # The best three of class 0 have ranks 0 1 2; the reverse is 2 away, 0 and 2.
    worst = 1 * 2 + 1 / 4 * 2
    assert hops(ranked([1, 0, 2, 3, 4, 5]), [0], HIERARCHY, k=3) == pytest.approx(1 - 1.5 / worst)
    assert hops(ranked([0, 1, 2, 5, 4, 3]), [0], HIERARCHY, k=3) == 1
    assert hops(ranked([5, 4, 3, 2, 1, 0]), [0], HIERARCHY, k=3) == 0  # worse than the reverse


def test_ranks_have_no_gaps_where_a_target_has_no_class_at_a_height():
    # A fox is the only wild animal: cat and dog are next, with weights from 1/2 down to 1/4, and
    # the car is last, with 1/4. The reverse has two places that are 2 away.
    order = node(RAGGED, "fox car cat dog")
    found = hops(ranked(order), node(RAGGED, "fox"), RAGGED)
    assert found == pytest.approx(1 - (1 / 2 + 1 / 4) / (2 * 1 + 2 * 1 / 4))


def test_hops_at_1_is_the_accuracy(rng):
    scores, targets = rng.normal(size=(50, 6)), rng.integers(0, 6, 50)
    assert hops(scores, targets, HIERARCHY, k=1) == top_k_accuracy(scores, targets)


def test_hops_in_parts_is_the_same(rng, monkeypatch):
    scores, targets = rng.normal(size=(50, 6)), rng.integers(0, 6, 50)
    whole = hops(torch.from_numpy(scores), torch.from_numpy(targets), HIERARCHY, k=4)
    monkeypatch.setattr("coarse2fine.hierarchical_metrics._CELLS", 40)
    assert hops(scores, targets, HIERARCHY, k=4) == pytest.approx(whole)
    assert np.isnan(hops(np.empty((0, 6)), [], HIERARCHY))


# -------------------------------------------------------------------------------- calibration


def binned_error(confidences, is_right, bins):
    """The expected calibration error by a loop over the bins."""
    error = 0.0
    for at in range(bins):
        upper = (at + 1) / bins if at < bins - 1 else 2
        inside = (confidences >= at / bins) & (confidences < upper)
        if inside.any():
            gap = abs(confidences[inside].mean() - is_right[inside].mean())
            error += inside.mean() * gap
    return error


def cluster_probabilities(probabilities, level):
    clusters = range(level.max() + 1)
    return np.stack([probabilities[:, level == at].sum(axis=1) for at in clusters], axis=1)


@pytest.mark.parametrize("bins", [1, 7, 15])
@pytest.mark.parametrize("hierarchy", [HIERARCHY, Hierarchy.from_levels([[1, 0, 1, 0, 2, 2]])])
def test_calibration_equals_a_loop_over_the_bins(hierarchy, bins, rng):
    logits, targets = 2 * rng.normal(size=(400, 6)), rng.integers(0, 6, 400)
    probabilities = torch.from_numpy(logits).softmax(1).numpy()
    found = level_calibration_errors(torch.from_numpy(logits), targets, hierarchy, bins)
    for level, error in zip(hierarchy.levels, found, strict=True):
        clusters = cluster_probabilities(probabilities, level)
        is_right = clusters.argmax(axis=1) == level[targets]
        assert error == pytest.approx(binned_error(clusters.max(axis=1), is_right, bins))


def test_calibration_equals_torchmetrics(rng):
    functional = pytest.importorskip("torchmetrics.functional.classification")
    probabilities = rng.dirichlet(np.ones(6), 300)
    targets = rng.integers(0, 6, 300)
    found = level_calibration_errors(probabilities, targets, HIERARCHY)
    for level, error in zip(HIERARCHY.levels[1:], found[1:], strict=True):
        clusters = torch.from_numpy(cluster_probabilities(probabilities, level))
        expected = functional.multiclass_calibration_error(
            clusters, torch.from_numpy(level[targets]), clusters.shape[1], n_bins=15
        )
        assert error == pytest.approx(float(expected), abs=1e-5)


def test_calibration_by_hand():
    # Sure of the pair and right; of the class 80%, and right in one of two.
    scores = [[0.8, 0.2, 0, 0, 0, 0], [0.8, 0.2, 0, 0, 0, 0]]
    np.testing.assert_allclose(
        level_calibration_errors(scores, [0, 1], HIERARCHY), [0, 0, 0.3], atol=1e-12
    )


def test_logits_and_their_probabilities_are_the_same(rng):
    logits, targets = torch.from_numpy(rng.normal(size=(40, 6))), rng.integers(0, 6, 40)
    np.testing.assert_allclose(
        level_calibration_errors(logits, targets, HIERARCHY),
        level_calibration_errors(logits.softmax(1), targets, HIERARCHY),
    )
    assert np.isnan(level_calibration_errors(np.empty((0, 6)), [], HIERARCHY)).all()


def test_the_clusters_are_those_whose_accuracy_is_counted(rng):
    """With one bin the error is how far the mean confidence is from the accuracy."""
    logits, targets = rng.normal(size=(60, 6)), rng.integers(0, 6, 60)
    probabilities = torch.from_numpy(logits).softmax(1).numpy()
    levels = HIERARCHY.levels
    confidences = [cluster_probabilities(probabilities, at).max(axis=1).mean() for at in levels]
    expected = np.abs(confidences - level_accuracies(logits, targets, HIERARCHY))
    np.testing.assert_allclose(
        level_calibration_errors(logits, targets, HIERARCHY, bins=1), expected
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hierarchical_f1([0], [0, 1], HIERARCHY), r"same shape. Got \(1,\) and \(2,\)"),
        (lambda: hierarchical_f1([11], [0], HIERARCHY), r"predictions must lie in 0\.\.10. Got 11"),
        (lambda: hierarchical_f1([0], [-1], HIERARCHY), r"targets must lie in 0\.\.10. Got -1"),
        (lambda: hops([[0.1, 0.2]], [0], HIERARCHY), "hierarchy has 6 classes.*Got 2"),
        (lambda: hops(np.ones((1, 6)), [0], HIERARCHY, k=7), r"k must lie in 1\.\.6. Got 7"),
        (lambda: hops(np.ones((1, 6)), [6], HIERARCHY), r"targets must lie in 0\.\.5. Got 6"),
        (
            lambda: level_calibration_errors(np.ones((1, 6)), [0], HIERARCHY, bins=0),
            "bins must be at least 1. Got 0",
        ),
        (
            lambda: level_calibration_errors(np.ones((2, 6)), [0], HIERARCHY),
            r"shape \(2,\).*Got \(1,\)",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
