"""The metrics, against values derived by hand, and scipy."""

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist, squareform

from coarse2fine import class_distances

PREDICTIONS = [0, 1, 1, 1, 2, 2, 0, 1]
TARGETS = [0, 0, 1, 1, 2, 2, 2, 2]
COUNTS = np.array([[1, 1, 0], [0, 2, 0], [1, 1, 2]])
RATES = np.array([[0.5, 0.5, 0], [0, 1, 0], [0.25, 0.25, 0.5]])


def off_diagonal(matrix):
    return matrix[~np.eye(len(matrix), dtype=bool)]


def test_embedding_is_the_cosine_distance(rng):
    weights = rng.normal(size=(20, 7))
    expected = squareform(pdist(weights, "cosine"))
    np.testing.assert_allclose(class_distances(weights), expected, atol=1e-12)


def test_embedding_similarity_is_one_minus_it(rng):
    weights = rng.normal(size=(20, 7))
    similar = class_distances(weights, "embedding_similarity")
    np.testing.assert_allclose(
        off_diagonal(similar), 1 - off_diagonal(class_distances(weights)), atol=1e-12
    )


def test_embedding_centred_is_the_cosine_distance_from_the_mean_row():
    rows = np.array([[11.0, 5.0], [9.0, 5.0], [10.0, 8.0], [10.0, 2.0]])  # around (10, 5)
    expected = [[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 2], [1, 1, 2, 0]]
    np.testing.assert_allclose(class_distances(rows, "embedding_centred"), expected, atol=1e-12)


def test_what_all_rows_have_in_common_does_not_count_when_centred(rng):
    weights, common = rng.normal(size=(20, 7)), 5 * rng.normal(size=7)
    moved = class_distances(weights + common, "embedding_centred")
    np.testing.assert_allclose(moved, class_distances(weights, "embedding_centred"), atol=1e-12)
    assert np.abs(class_distances(weights + common) - class_distances(weights)).max() > 0.5


def test_a_model_gives_the_vectors_of_its_head():
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 5))
    expected = class_distances(model[2].weight)
    assert expected.shape == (5, 5)
    np.testing.assert_array_equal(class_distances(model), expected)
    assert class_distances(model, "random").shape == (5, 5)


@pytest.mark.parametrize(
    "source", [COUNTS, RATES, torch.from_numpy(COUNTS), (PREDICTIONS, TARGETS)]
)
def test_confusion_is_the_rates_plus_their_transpose(source):
    expected = np.array([[0, 0.5, 0.25], [0.5, 0, 0.25], [0.25, 0.25, 0]])
    np.testing.assert_allclose(class_distances(source, "confusion"), expected)
    distance = class_distances(source, "confusion_distance")
    np.testing.assert_allclose(off_diagonal(distance), 1 - off_diagonal(expected))


def test_a_class_without_samples_is_confused_with_none():
    distances = class_distances(([0, 1, 0], [0, 1, 1]), "confusion", num_classes=3)
    np.testing.assert_allclose(distances, [[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]])


def test_random_is_symmetric_normal_and_seeded():
    distances = class_distances(300, "random", seed=5)
    np.testing.assert_array_equal(distances, distances.T)
    np.testing.assert_array_equal(distances, class_distances(300, "random", seed=5))
    assert (distances != class_distances(300, "random", seed=6)).any()
    assert abs(off_diagonal(distances).mean()) < 0.02
    assert abs(off_diagonal(distances).std() - 1) < 0.02


@pytest.mark.parametrize("source", [30, np.ones((30, 4)), ([29, 0], [0, 1])])
def test_random_takes_the_number_of_classes_from_any_source(source):
    assert class_distances(source, "random").shape == (30, 30)


def test_a_matrix_of_ones_own_is_taken_where_a_metric_is():
    own = [[0, 1, -2], [1, 0, 3], [-2, 3, 0]]
    np.testing.assert_array_equal(class_distances(None, own), own)
    with pytest.raises(ValueError, match=r"between 3 classes, but there are 4"):
        class_distances(None, own, num_classes=4)


@pytest.mark.parametrize(
    ("source", "metric", "message"),
    [
        (np.ones((3, 3)), "euclidean", "metric 'euclidean' is not supported.*'embedding'"),
        (np.ones((3, 4)), "confusion", r"square matrix, rows the true.*Got shape \(3, 4\)"),
        ([[1.0, 2.0], [np.nan, 1.0]], "confusion", r"confusion\[1, 0\] is nan"),
        ([[1.0, -2.0], [1.0, 1.0]], "confusion", r"confusion\[0, 1\] is -2\.0; none is negative"),
        (([0, 1], [0, 1], [0, 1]), "confusion", r"\(predictions, targets\). Got 3 entries"),
        (([0, 1], [0, -1]), "confusion", r"targets must lie in 0\.\.1. Got -1 at position 1"),
        ([[1.0, 0.0], [0.0, 0.0]], "embedding", r"embeddings\[1\] is zero"),
        (None, [[0, 1], [2, 0]], r"distances must be symmetric"),
    ],
)
def test_bad_sources_are_named(source, metric, message):
    with pytest.raises(ValueError, match=message):
        class_distances(source, metric)
