"""What benchmarks/degenerate_confusion.py measures."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import degenerate_confusion
from degenerate_confusion import Found, measured, pairs_together, rows

from coarse2fine import Hierarchy


def test_a_dominating_class_leaves_confusion_one_cluster_and_embeddings_several():
    by_confusion, by_embedding = measured(spread=0.3, times=100, seed=0)
    assert (by_confusion.metric, by_embedding.metric) == ("confusion_distance", "embedding")
    assert by_confusion.to_first > 0.7
    assert by_confusion.largest > 0.9  # nearly all of the classes
    assert by_confusion.agreement == pytest.approx(0, abs=0.05)
    assert by_embedding.largest < 0.3
    assert by_embedding.agreement > 0.2


def test_without_one_confusion_finds_the_groups():
    found = measured(spread=1.0, times=1, seed=0)[0]
    assert found.to_first < 0.1
    assert found.agreement > 0.6


@pytest.mark.parametrize("pairs", [2, 3])
def test_clusters_that_are_all_as_far_from_each_other_stay_apart(pairs):
    assert pairs_together(pairs, trials=20) == 0


def test_classes_confused_in_pairs_alone_come_together_by_chance():
    # In any order, the share of two pairs that are together is that of all twos of pairs.
    rng, shares = np.random.default_rng(1), []
    for _ in range(300):
        confusion = np.zeros((16, 16))
        partners = rng.permutation(16).reshape(8, 2)
        for one, other in partners:
            confusion[one, other] = confusion[other, one] = 1
        coarsest = Hierarchy.from_confusion(confusion).levels[0][partners[:, 0]]
        shares.append(np.mean([a == b for a, b in combinations(coarsest, 2)]))
    assert pairs_together(8, trials=300) == pytest.approx(np.mean(shares), abs=0.1)
    assert 0.1 < np.mean(shares) < 0.9


def test_the_table_has_means_and_standard_errors_over_the_seeds():
    found = [
        Found("embedding", 0.5, 10, seed, accuracy, 0.25, clusters, 0.5, 0.75)
        for seed, accuracy, clusters in ((0, 0.4, 8), (1, 0.6, 10))
    ]
    others = [
        Found(metric, spread, times, 0, 0.0, 0.0, 1, 1.0, 0.0)
        for spread in degenerate_confusion.SPREADS
        for times in degenerate_confusion.TIMES
        for metric in degenerate_confusion.METRICS
        if (metric, spread, times) != ("embedding", 0.5, 10)
    ]
    table = list(rows([*others, *found]))
    assert len(table) == 1 + 4 * 3 * 2
    (own,) = (row for row in table if row[:3] == ["0.5", "10", "embedding"])
    assert own[3:] == ["50.00 ± 10.00", "25.00 ± 0.00", "9.00 ± 1.00", "50.00 ± 0.00", "0.75 ± 0.00"]  # fmt: skip  # noqa: E501
