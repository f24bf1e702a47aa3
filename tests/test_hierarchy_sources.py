"""Hierarchies from embeddings, distances, confusion and classifiers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hierarchies import (
    METRICS,
    NAMES,
    as_lists,
    assert_valid,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from coarse2fine import Hierarchy, class_distances, confusion_matrix

# ------------------------------------------------------------------- clustering the classes


def clustered_vectors(seed: int = 0) -> np.ndarray:
    """Three tight groups of four classes, class i in group i mod 3."""
    rng = np.random.default_rng(seed)
    centres = np.eye(3, 8)[np.arange(12) % 3]
    return centres + 0.05 * rng.standard_normal((12, 8))


def assert_groups_are_found(hierarchy: Hierarchy) -> None:
    """After the first round of clustering, no cluster reaches across the three groups."""
    clusters = hierarchy.clusters(-2)
    assert len(clusters) <= 6
    assert all(len({index % 3 for index in cluster}) == 1 for cluster in clusters)


@pytest.mark.parametrize("linkage", ["single", "average", "complete"])
@pytest.mark.parametrize("as_type", [np.asarray, torch.tensor, np.ndarray.tolist])
def test_embeddings_of_one_group_come_together(linkage: Any, as_type: Any) -> None:
    hierarchy = Hierarchy.from_embeddings(as_type(clustered_vectors()), linkage=linkage)
    assert_valid(hierarchy)
    assert_groups_are_found(hierarchy)


def test_distances_of_one_group_come_together() -> None:
    distances = class_distances(clustered_vectors())
    hierarchy = Hierarchy.from_distances(distances, class_names=[f"c{i}" for i in range(12)])
    assert_groups_are_found(hierarchy)
    assert hierarchy.class_names is not None
    assert hierarchy.class_names[3] == "c3"


@pytest.mark.parametrize(
    "distances", [np.ones((2, 3)), [[0, 1], [2, 0]], [[0, np.nan], [np.nan, 0]], [[0.0]]]
)
def test_bad_distances_are_refused(distances: Any) -> None:
    with pytest.raises(ValueError, match="distances"):
        Hierarchy.from_distances(distances)


CONFUSION = np.array([[8, 2, 0, 0], [3, 7, 0, 0], [0, 1, 5, 4], [0, 0, 6, 4]])


def confused_pairs() -> tuple[list[int], list[int]]:
    targets, predictions = np.nonzero(CONFUSION)
    counts = CONFUSION[targets, predictions]
    return np.repeat(predictions, counts).tolist(), np.repeat(targets, counts).tolist()


@pytest.mark.parametrize("as_type", [np.asarray, torch.tensor, np.ndarray.tolist])
def test_often_confused_classes_come_together(as_type: Any) -> None:
    hierarchy = Hierarchy.from_confusion(as_type(CONFUSION), class_names=NAMES[:4])
    assert as_lists(hierarchy) == [[0, 0, 1, 1], [0, 1, 2, 3]]
    assert hierarchy.class_names == tuple(NAMES[:4])


def test_the_confusion_metric_puts_rarely_confused_classes_together() -> None:
    confusion = [[9, 5, 0, 2], [5, 9, 3, 1], [0, 3, 9, 4], [2, 1, 4, 9]]
    assert Hierarchy.from_confusion(confusion, "confusion").clusters(0) == ((0, 2), (1, 3))
    assert Hierarchy.from_confusion(confusion).clusters(0) == ((0, 1), (2, 3))


def test_predictions_and_targets_stand_for_their_confusion_matrix() -> None:
    pair = confused_pairs()
    np.testing.assert_array_equal(confusion_matrix(*pair), CONFUSION)
    assert Hierarchy.from_confusion(pair) == Hierarchy.from_confusion(CONFUSION)
    tensors = tuple(map(torch.tensor, pair))
    assert Hierarchy.from_confusion(tensors) == Hierarchy.from_confusion(CONFUSION)


def test_num_classes_counts_classes_that_no_prediction_shows() -> None:
    assert Hierarchy.from_confusion(confused_pairs(), num_classes=6).num_classes == 6


@pytest.mark.parametrize("metric", ["embedding", "random", "nonsense"])
def test_from_confusion_takes_only_the_confusion_metrics(metric: str) -> None:
    with pytest.raises(ValueError, match=f"'confusion', 'confusion_distance'.*Got '{metric}'"):
        Hierarchy.from_confusion(CONFUSION, metric)


@pytest.mark.parametrize("metric", ["confusion", "confusion_distance"])
@pytest.mark.parametrize("confusion", [np.zeros((60, 60)), np.eye(60) * 7])
def test_a_confusion_matrix_without_confusions_still_gives_several_clusters(
    confusion: np.ndarray, metric: str
) -> None:
    hierarchy = Hierarchy.from_confusion(confusion, metric)
    assert_valid(hierarchy)
    assert len(hierarchy.levels) >= 3
    first_round = hierarchy.clusters(-2)
    assert len(first_round) >= 60 // 6
    assert max(map(len, first_round)) <= 60 // 2
    assert hierarchy == Hierarchy.from_confusion(confusion, metric)


def classifier(vectors: np.ndarray) -> nn.Module:
    model = nn.Sequential(nn.Linear(4, vectors.shape[1]), nn.Linear(*vectors.shape[::-1]))
    model[1].weight.data = torch.tensor(vectors, dtype=torch.float32)
    return model


@pytest.mark.parametrize("metric", METRICS)
def test_a_classifier_can_be_clustered_by_every_metric(metric: str) -> None:
    confusion = np.random.default_rng(0).integers(0, 9, (12, 12))
    hierarchy = Hierarchy.from_classifier(
        classifier(clustered_vectors()),
        metric,
        confusion=confusion,
        class_names=list("abcdefghijkl"),
    )
    assert_valid(hierarchy)
    assert hierarchy.num_classes == 12
    assert hierarchy.class_names == tuple("abcdefghijkl")


def test_a_classifier_is_clustered_by_its_final_layer() -> None:
    model = classifier(clustered_vectors())
    by_weights = Hierarchy.from_embeddings(clustered_vectors().astype(np.float32))
    assert Hierarchy.from_classifier(model) == by_weights
    assert Hierarchy.from_classifier(model, head="1") == by_weights
    assert Hierarchy.from_classifier(model, head="0").num_classes == 8


def test_a_classifier_can_be_clustered_by_ones_own_distances() -> None:
    distances = class_distances(clustered_vectors(seed=1))
    hierarchy = Hierarchy.from_classifier(classifier(clustered_vectors()), distances)
    assert hierarchy == Hierarchy.from_distances(distances)


def test_ones_own_distances_must_be_between_the_models_classes() -> None:
    with pytest.raises(ValueError, match="between 3 classes, but there are 12"):
        Hierarchy.from_classifier(classifier(clustered_vectors()), np.zeros((3, 3)))


def test_the_random_metric_follows_its_seed() -> None:
    model = classifier(clustered_vectors())
    first, again, other = (Hierarchy.from_classifier(model, "random", seed=s) for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize("metric", ["confusion", "confusion_distance"])
def test_a_classifiers_confusion_may_be_predictions_and_targets(metric: str) -> None:
    model = classifier(clustered_vectors()[:4])
    hierarchy = Hierarchy.from_classifier(model, metric, confusion=confused_pairs())
    assert hierarchy == Hierarchy.from_confusion(CONFUSION, metric)


@pytest.mark.parametrize("metric", ["confusion", "confusion_distance"])
def test_confusion_metrics_ask_for_the_confusion(metric: str) -> None:
    with pytest.raises(ValueError, match=f"metric '{metric}' needs confusion="):
        Hierarchy.from_classifier(classifier(clustered_vectors()), metric)


@pytest.mark.parametrize("metric", ["nonsense", "confusions"])
def test_an_unknown_metric_is_refused_with_the_known_ones(metric: str) -> None:
    with pytest.raises(ValueError, match=f"{metric}.*not supported.*'embedding_similarity'"):
        Hierarchy.from_classifier(classifier(clustered_vectors()), metric)


@given(st.integers(2, 12), st.integers(0, 2**32 - 1), st.sampled_from(["single", "average"]))
@settings(max_examples=50)
def test_any_distances_give_a_valid_hierarchy(classes: int, seed: int, linkage: Any) -> None:
    distances = np.random.default_rng(seed).integers(-2, 3, (classes, classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_valid(Hierarchy.from_distances(distances + distances.T, linkage=linkage))
