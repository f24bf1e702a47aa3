"""Metrics, against values derived by hand and scikit-learn."""

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn_metrics

from coarse2fine import (
    Hierarchy,
    balanced_accuracy,
    confusion_matrix,
    level_accuracies,
    mistake_heights,
    mistake_severity,
    top_k_accuracy,
)

HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
PREDICTIONS = [0, 1, 2, 5, 4]
TARGETS = [0, 0, 0, 0, 4]
KINDS = pytest.mark.parametrize("kind", [list, np.array, torch.tensor])


@KINDS
def test_confusion_matrix_counts_true_rows_and_predicted_columns(kind, rng):
    predictions, targets = rng.integers(0, 7, 200), rng.integers(0, 7, 200)
    expected = sklearn_metrics.confusion_matrix(targets, predictions)
    found = confusion_matrix(kind(predictions.tolist()), kind(targets.tolist()))
    np.testing.assert_array_equal(found, expected)


def test_confusion_matrix_has_room_for_unseen_classes():
    assert confusion_matrix([0], [1], num_classes=4).shape == (4, 4)
    assert confusion_matrix([], [], num_classes=4).sum() == 0


@KINDS
def test_balanced_accuracy_equals_scikit_learn(kind, rng):
    targets = rng.choice([0, 1, 2, 5], 300, p=[0.7, 0.2, 0.06, 0.04])
    predictions = np.where(rng.random(300) < 0.5, targets, rng.choice([0, 1, 2, 5], 300))
    expected = sklearn_metrics.balanced_accuracy_score(targets, predictions)
    found = balanced_accuracy(kind(predictions.tolist()), kind(targets.tolist()))
    assert found == pytest.approx(expected)


def test_balanced_accuracy_counts_the_classes_that_there_are():
    assert balanced_accuracy([3, 1], [0, 1]) == 0.5  # a prediction may be of any class
    assert np.isnan(balanced_accuracy([], []))
    with pytest.raises(ValueError, match="targets"):
        balanced_accuracy([0], [-1])


@pytest.mark.parametrize("k", [1, 3, 8])
def test_top_k_accuracy_equals_scikit_learn(k, rng):
    scores, targets = rng.normal(size=(300, 9)), rng.integers(0, 9, 300)
    expected = sklearn_metrics.top_k_accuracy_score(targets, scores, k=k, labels=range(9))
    assert top_k_accuracy(torch.from_numpy(scores), targets, k) == pytest.approx(expected)


def test_of_equal_scores_the_first_class_counts():
    assert top_k_accuracy([[1.0, 1.0, 1.0]], [0], k=1) == 1
    assert top_k_accuracy([[1.0, 1.0, 1.0]], [1], k=1) == 0
    assert top_k_accuracy([[1.0, 1.0, 1.0]], [1], k=2) == 1


@KINDS
def test_level_accuracies_of_classes(kind):
    found = level_accuracies(kind(PREDICTIONS), kind(TARGETS), HIERARCHY)
    np.testing.assert_allclose(found, [4 / 5, 3 / 5, 2 / 5])


@KINDS
def test_a_target_that_is_a_cluster_counts_where_it_is_fine_enough(kind):
    names = ["level 0 cluster 0", "level 1 cluster 1", "(any)"]
    middle, finer, root = HIERARCHY.nodes.encode(names).tolist()
    targets = [middle, middle, finer, 5, root]
    found = level_accuracies(kind([0, 5, 3, 4, 1]), kind(targets), HIERARCHY)
    np.testing.assert_allclose(found, [3 / 4, 1, 0])
    logits = np.eye(6)[[0, 5, 3, 4, 1]]
    np.testing.assert_allclose(
        level_accuracies(kind(logits.tolist()), kind(targets), HIERARCHY), [3 / 4, 1, 0]
    )
    assert np.isnan(level_accuracies([0], [root], HIERARCHY)).all()
    with pytest.raises(ValueError, match=r"targets must lie in 0\.\.10. Got 11 at position 0"):
        level_accuracies([0], [11], HIERARCHY)


def test_level_accuracies_of_logits_sum_the_probabilities_of_a_cluster():
    logits = torch.tensor([[0.30, 0.01, 0.25, 0.01, 0.22, 0.21]]).log()
    # The best class is 0, the best pair {4, 5} with 0.43, the best of two halves {0, 1, 2, 3}.
    np.testing.assert_allclose(level_accuracies(logits, [0], HIERARCHY), [1, 0, 1])
    np.testing.assert_allclose(level_accuracies(logits, [4], HIERARCHY), [0, 1, 0])


@KINDS
def test_heights_say_how_far_up_a_mistake_is_forgiven(kind):
    assert mistake_heights(kind(PREDICTIONS), kind(TARGETS), HIERARCHY).tolist() == [0, 1, 2, 3, 0]
    assert mistake_severity(kind(PREDICTIONS), kind(TARGETS), HIERARCHY) == 2


def test_severity_without_mistakes_is_nan():
    assert np.isnan(mistake_severity([1, 2], [1, 2], HIERARCHY))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: confusion_matrix([0, 1], [0]), r"same shape. Got \(2,\) and \(1,\)"),
        (lambda: confusion_matrix([0, 5], [0, 1], 3), r"predictions must lie in 0\.\.2. Got 5"),
        (lambda: level_accuracies([0, 6], [0, 1], HIERARCHY), r"0\.\.5. Got 6 at position 1"),
        (lambda: level_accuracies([[0.1, 0.2]], [0], HIERARCHY), "hierarchy has 6 classes.*Got 2"),
        (lambda: mistake_heights([0], [0, 1], HIERARCHY), r"same shape. Got \(1,\) and \(2,\)"),
        (lambda: top_k_accuracy([[0.1, 0.2]], [0], k=3), r"k must lie in 1\.\.2. Got 3"),
        (lambda: top_k_accuracy([0.1, 0.2], [0]), r"shape \(N, K\). Got \(2,\)"),
        (lambda: top_k_accuracy([[0.1, np.nan]], [0]), r"scores\[0, 1\] is nan"),
        (lambda: top_k_accuracy([[0.1, 0.2]], [[0]]), r"shape \(1,\).*Got \(1, 1\)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_labels_must_be_integers():
    with pytest.raises(TypeError, match="predictions must hold integers. Got dtype float64"):
        confusion_matrix([0.5], [0])
