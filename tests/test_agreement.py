"""Whether two models hold the same classes for similar."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from coarse2fine import Hierarchy, adjusted_rand_index, distance_correlation, level_agreements


def symmetric(*upper):
    """A matrix of distances between four classes by its entries above the diagonal."""
    matrix = np.zeros((4, 4))
    matrix[np.triu_indices(4, 1)] = upper
    return matrix + matrix.T


# --------------------------------------------------------------------------- distances


def test_the_correlation_is_of_ranks_each_pair_of_classes_once():
    one = symmetric(1, 2, 3, 4, 5, 6)
    assert distance_correlation(one, np.exp(one)) == pytest.approx(1.0)
    assert distance_correlation(one, -one) == pytest.approx(-1.0)
    # 1 - 6 Σ d² / (n (n² - 1)) with one swap of neighbours: 1 - 6 · 2 / (6 · 35).
    assert distance_correlation(one, symmetric(2, 1, 3, 4, 5, 6)) == pytest.approx(1 - 12 / 210)


def test_the_diagonal_has_no_say():
    one = symmetric(1, 2, 3, 4, 5, 6)
    assert distance_correlation(one + 9 * np.eye(4), one) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_spearmans_also_with_ties(seed):
    entries = np.random.default_rng(seed).integers(0, 5, (2, 6))
    found = distance_correlation(*(symmetric(*row) for row in entries))
    assert found == pytest.approx(spearmanr(*entries).statistic)


def test_equal_distances_have_no_order_to_compare():
    one = symmetric(1, 2, 3, 4, 5, 6)
    assert math.isnan(distance_correlation(one, symmetric(*[2] * 6)))
    assert math.isnan(distance_correlation(np.zeros((2, 2)), np.zeros((2, 2))))  # a single pair


def test_distances_must_be_of_the_same_classes():
    with pytest.raises(ValueError, match="must be of the same classes. Got 4 and 2."):
        distance_correlation(symmetric(*range(6)), np.zeros((2, 2)))


# ------------------------------------------------------------------------------ levels


def test_the_index_by_hand():
    # Pairs together: 3 + 1 = 4 in the first, 1 + 3 = 4 in the second, {0, 1} and {3, 4} in both.
    # By chance 4 · 4 / 10 = 1.6 of 4 would be: (2 - 1.6) / (4 - 1.6) = 1/6.
    assert adjusted_rand_index([0, 0, 0, 1, 1], [0, 0, 1, 1, 1]) == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("one", "other", "index"),
    [
        ([0, 0, 1], [7, 7, -3], 1.0),  # numbers are names
        ([0, 1, 2], [0, 1, 2], 1.0),  # nothing is together in either
        ([0, 0, 0], [5, 5, 5], 1.0),
        ([0, 0, 0], [0, 1, 2], 0.0),
        ([0, 0, 1, 1], [0, 1, 0, 1], -0.5),
        ([], [], 1.0),
        ([3], [4], 1.0),
    ],
)
def test_the_index_at_its_ends(one, other, index):
    assert adjusted_rand_index(one, other) == pytest.approx(index)


@pytest.mark.parametrize("count", [2, 3, 7, 100])
def test_the_index_is_scikit_learns(count):
    metrics = pytest.importorskip("sklearn.metrics")
    for seed in range(20):
        one, other = np.random.default_rng(seed).integers(0, 4, (2, count))
        wanted = metrics.adjusted_rand_score(one, other)
        assert adjusted_rand_index(one, other) == pytest.approx(wanted)


def test_levels_are_compared_from_the_classes_on():
    one = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
    other = Hierarchy.from_levels([[0, 0, 1, 1, 2, 2]])
    assert level_agreements(one, other) == level_agreements(other, one) == (1.0,)
    assert level_agreements(one, one) == (1.0, 1.0)


def test_hierarchies_must_be_of_the_same_classes():
    with pytest.raises(ValueError, match="must be of the same classes. Got 3 and 4."):
        level_agreements(Hierarchy.from_levels([[0, 0, 1]]), Hierarchy.from_levels([[0, 0, 1, 1]]))
