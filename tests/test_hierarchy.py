"""Hierarchy: what it takes, what it refuses and says, and what comes back from a file."""

from __future__ import annotations

import copy
import json
import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from coarse2fine import Hierarchy, class_distances, confusion_matrix

METRICS = ("embedding", "embedding_similarity", "confusion", "confusion_distance", "random")
NAMES = ["cat", "dog", "fox", "car", "bus"]
COARSE = [0, 0, 0, 1, 1]
MIDDLE = [0, 0, 1, 2, 3]


def make(**names: Any) -> Hierarchy:
    return Hierarchy.from_levels([COARSE, MIDDLE], **names)


def named() -> Hierarchy:
    groups = [["animal", "vehicle"], ["pet", "wild", "private", "public"]]
    return make(class_names=NAMES, cluster_names=groups)


def as_lists(hierarchy: Hierarchy) -> list[list[int]]:
    return [level.tolist() for level in hierarchy.levels]


def assert_valid(hierarchy: Hierarchy) -> None:
    """Nested partitions, coarsest first, each finer than the one before, the classes last."""
    assert hierarchy.levels[-1].tolist() == list(range(hierarchy.num_classes))
    assert list(hierarchy.num_clusters) == sorted(set(hierarchy.num_clusters))
    for level, count in zip(hierarchy.levels, hierarchy.num_clusters, strict=True):
        assert sorted(set(level.tolist())) == list(range(count))
    for coarse, fine in zip(hierarchy.levels, hierarchy.levels[1:], strict=False):
        assert len(set(zip(coarse.tolist(), fine.tolist(), strict=True))) == fine.max() + 1


@st.composite
def hierarchies(draw: st.DrawFn) -> Hierarchy:
    """Hierarchies of at least two levels, with and without names."""
    finest = np.arange(draw(st.integers(3, 9)))
    levels = [finest]
    while (count := int(levels[0].max()) + 1) > 2 and (len(levels) == 1 or draw(st.booleans())):
        ids = st.lists(st.integers(0, count - 2), min_size=count, max_size=count)
        parent = np.unique(draw(ids.filter(lambda ids: len(set(ids)) > 1)), return_inverse=True)[1]
        levels.insert(0, parent[levels[0]])
    class_names = cluster_names = None
    if draw(st.booleans()):
        class_names = [draw(st.text(max_size=4)) for _ in finest]
    if draw(st.booleans()):
        cluster_names = [
            [draw(st.text(max_size=4)) for _ in range(level.max() + 1)] for level in levels[:-1]
        ]
    return Hierarchy.from_levels(levels, class_names, cluster_names)


# ----------------------------------------------------------------------------- from_levels


@pytest.mark.parametrize(
    "levels",
    [
        [COARSE, MIDDLE],
        (tuple(COARSE), tuple(MIDDLE)),
        [COARSE, MIDDLE, [0, 1, 2, 3, 4]],
        iter([COARSE, MIDDLE]),
        np.array([COARSE, MIDDLE]),
        [np.array(COARSE, np.int8), np.array(MIDDLE, np.uint16)],
        [list(np.array(COARSE)), MIDDLE],
        torch.tensor([COARSE, MIDDLE]),
        [torch.tensor(COARSE, dtype=torch.int32), torch.tensor(MIDDLE)],
        [[torch.tensor(cluster) for cluster in COARSE], MIDDLE],
        [[[0, 1, 2], [3, 4]], [[0, 1], [2], [3], [4]]],
        [[[2, 0, 1], [4, 3]], [(1, 0), (2,), (3,), (4,)]],
        [[{0, 1, 2}, range(3, 5)], MIDDLE],
        [[np.array([0, 1, 2]), torch.tensor([3, 4])], MIDDLE],
        [COARSE, MIDDLE, [[4], [3], [2], [1], [0]]],
    ],
)
def test_levels_may_be_arrays_tensors_lists_or_clusters(levels: Any) -> None:
    hierarchy = Hierarchy.from_levels(levels)
    assert as_lists(hierarchy) == [COARSE, MIDDLE, [0, 1, 2, 3, 4]]
    assert hierarchy.num_classes == 5
    assert hierarchy.num_clusters == (2, 4, 5)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([[0, 0, 1, 1], [0, 1, 1, 2]], r"not nested: classes 1 and 2 share cluster 1 of levels\[1"),
        ([[0, 1, 2, 2], [0, 0, 1, 1]], r"not nested: classes 0 and 1 .*coarse to fine"),
        ([[0, 0, 2, 2]], r"levels\[0\] skips the id 1"),
        ([[1, 1, 2, 2]], r"levels\[0\] skips the id 0"),
        ([[0, 0, 9, 1]], r"levels\[0\]\[2\] is 9, but 4 classes have at most 4"),
        ([[0, 0, -1, 1]], r"levels\[0\]\[2\] is -1; clusters count from 0"),
        ([[0, 0, 1], [0, 0, 1, 2]], r"levels\[0\] must give .* each of the 4 classes.*\(3,\)"),
        ([[0, 0, 0, 0]], r"levels\[0\] puts all classes into one cluster"),
        ([[0, 0, 1, 1], [0, 0, 1, 1]], r"levels\[0\] and levels\[1\] have the same clusters"),
        ([[0, 0, 1, 1], [1, 1, 0, 0]], r"levels\[0\] and levels\[1\] have the same clusters"),
        ([[0, 0, 1], [1, 0, 2]], r"0\.\.2 in order\. Got 1 for class 0"),
        ([[0]], r"at least two classes\. Got 1"),
        ([[]], r"at least two classes\. Got 0"),
        ([], r"at least one level\. Got none"),
        ([0, 0, 1, 1], r"levels\[0\] must be an array class → cluster, .*Got 0"),
        ([np.zeros((2, 2), int)], r"levels\[0\] must be an array .*shape \(2, 2\)"),
        ([[[0, 1], [1, 2]]], r"levels\[0\] must hold .* 0\.\.3 once\. Got class 1 2 times"),
        ([[[0, 1], [3]]], r"levels\[0\] must hold .* 0\.\.2 once\. Got no class 2"),
        ([[[0, 1], [], [2]]], r"levels\[0\]\[1\] is an empty cluster"),
    ],
)
def test_wrong_levels_are_refused_with_the_entry_that_is_wrong(levels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_levels(levels)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ([[0.0, 0.0, 1.0]], r"levels\[0\] must hold integers\. Got dtype float64"),
        ([[0, 0, 1], torch.tensor([0.0, 1.0, 2.0])], r"levels\[1\] must hold integers"),
        ([["0", "0", "1"]], r"levels\[0\] must hold integers"),
        ([[False, False, True]], r"levels\[0\] must hold integers\. Got dtype bool"),
        ([np.array([False, True])], r"levels\[0\] must hold integers\. Got dtype bool"),
        ([[0, 0, 10**30]], r"levels\[0\] must hold integers"),
        ([[None, None]], r"levels\[0\] must hold integers"),
        ([None], r"levels\[0\] must hold integers"),
        ([{0: 0, 1: 1}], r"levels\[0\] must hold integers"),
        ([[[0, 1], [2.0]]], r"levels\[0\]\[1\] must hold integers"),
        ([[[0, 1], 2]], r"levels\[0\]\[1\] must be a list of classes\. Got 2"),
        ([[0, [1, 2]]], r"levels\[0\]\[0\] must be a list of classes\. Got 0"),
        (5, r"levels must be a list of levels.* Got 5"),
        ("abc", r"levels\[0\] must hold integers"),
    ],
)
def test_levels_of_the_wrong_type_are_refused(levels: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Hierarchy.from_levels(levels)


@pytest.mark.parametrize(
    ("levels", "error"),
    [
        ([], ValueError),
        ([np.array(3)], ValueError),
        ([np.array([0.5, 0.7, 1.2]), np.arange(3)], TypeError),
        ([np.array([True, True, False]), np.arange(3)], TypeError),
        ([np.array([0, 0, 1])], ValueError),
    ],
)
def test_the_constructor_checks_as_well(levels: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="level|classes"):
        Hierarchy(levels)


@pytest.mark.parametrize(
    ("class_names", "cluster_names", "message"),
    [
        ("abcde", None, r"class_names must be a sequence of 5 strings\. Got 'abcde'"),
        (5, None, r"class_names must be a sequence of 5 strings\. Got 5"),
        (dict.fromkeys(NAMES), None, "class_names must be a sequence of 5 strings"),
        (set(NAMES), None, "class_names must be a sequence of 5 strings"),
        (["a", "b", 3, "d", "e"], None, r"class_names\[2\] must be a string\. Got 3"),
        (None, 5, "cluster_names must be a sequence for each level. Got 5"),
        (None, "ab", "cluster_names must be a sequence for each level. Got 'ab'"),
        (None, [["a", "b"], "abcd"], r"cluster_names\[1\] must be a sequence of 4 strings"),
        (None, [["a", None], ["a", "b", "c", "d"]], r"cluster_names\[0\]\[1\] must be a string"),
    ],
)
def test_names_must_be_sequences_of_strings(
    class_names: Any, cluster_names: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        make(class_names=class_names, cluster_names=cluster_names)


@pytest.mark.parametrize(
    ("class_names", "cluster_names", "message"),
    [
        (["a", "b"], None, r"class_names must hold 5 names\. Got 2"),
        (None, [["a", "b"]], "the 2 levels above the classes. Got names for 1 levels"),
        (None, [["a", "b"], ["c"]], r"cluster_names\[1\] must hold 4 names\. Got 1"),
    ],
)
def test_there_must_be_as_many_names_as_things(
    class_names: Any, cluster_names: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(class_names=class_names, cluster_names=cluster_names)


def test_names_become_plain_strings() -> None:
    hierarchy = make(class_names=np.array(NAMES))
    assert hierarchy.class_names == tuple(NAMES)
    assert {type(name) for name in hierarchy.class_names} == {str}


@pytest.mark.parametrize("levels", [[[0, 1]], [[0, 1, 2]], [[[1], [0]]], [range(3)]])
def test_the_finest_level_alone_is_legal_but_warned_of(levels: Any) -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_levels(levels)
    assert len(hierarchy.levels) == 1


def test_two_classes_are_legal_but_warned_of() -> None:
    with pytest.warns(UserWarning, match="2 classes .* plain training"):
        hierarchy = Hierarchy.from_embeddings([[1.0, 0.0], [0.0, 1.0]])
    assert as_lists(hierarchy) == [[0, 1]]


# -------------------------------------------------------------------------- immutability


@pytest.mark.parametrize("name", ["levels", "class_names", "cluster_names", "anything"])
def test_attributes_can_be_neither_set_nor_deleted(name: str) -> None:
    hierarchy = named()
    with pytest.raises(AttributeError, match=f"immutable; cannot set '{name}'"):
        setattr(hierarchy, name, ())
    with pytest.raises(AttributeError, match=f"immutable; cannot delete '{name}'"):
        delattr(hierarchy, name)
    assert hierarchy == named()


def test_the_arrays_can_never_be_written_to() -> None:
    hierarchy = make()
    for level in hierarchy.levels:
        with pytest.raises(ValueError, match="read-only"):
            level[0] = 1
        with pytest.raises(ValueError, match="WRITEABLE"):
            level.setflags(write=True)


def test_changing_what_it_was_made_from_does_not_change_it() -> None:
    level, names, groups = np.array([0, 0, 1]), ["a", "b", "c"], [["x", "y"]]
    hierarchy = Hierarchy([level, np.arange(3)], names, groups)
    level[:], names[0], groups[0][0] = 0, "z", "z"
    assert as_lists(hierarchy)[0] == [0, 0, 1]
    assert hierarchy.class_names == ("a", "b", "c")
    assert hierarchy.cluster_names == (("x", "y"),)


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
@settings(deadline=None, max_examples=50)
def test_any_distances_give_a_valid_hierarchy(classes: int, seed: int, linkage: Any) -> None:
    distances = np.random.default_rng(seed).integers(-2, 3, (classes, classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_valid(Hierarchy.from_distances(distances + distances.T, linkage=linkage))


# ------------------------------------------------------------------ keep_levels, max_levels


@pytest.mark.parametrize(
    ("kept", "expected"),
    [([0], (2, 5)), ([1], (4, 5)), ([1, 0, 1], (2, 4, 5)), ([-3], (2, 5)), ((0, 2), (2, 5))],
)
def test_keep_levels_keeps_the_given_ones_and_the_finest(kept: Any, expected: Any) -> None:
    assert make().keep_levels(kept).num_clusters == expected


def test_names_follow_the_kept_levels() -> None:
    kept = named().keep_levels([1])
    assert kept.class_names == tuple(NAMES)
    assert kept.cluster_names == (("pet", "wild", "private", "public"),)


@pytest.mark.parametrize(
    ("levels", "error", "message"),
    [
        ([3], ValueError, r"level must lie in 0\.\.2, or count from the end, -3\.\.-1\. Got 3"),
        ([-4], ValueError, "level must lie in .* Got -4"),
        ([0.0], TypeError, "level must be an integer. Got 0.0"),
        ([True], TypeError, "level must be an integer. Got True"),
        ("0", TypeError, "level must be an integer. Got '0'"),
        (0, TypeError, "levels must be a list of levels to keep. Got 0"),
    ],
)
def test_keep_levels_refuses_levels_that_are_not_there(
    levels: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        make().keep_levels(levels)


def test_keeping_no_level_above_the_classes_is_warned_of() -> None:
    for thin in (lambda: named().keep_levels([]), lambda: named().max_levels(1)):
        with pytest.warns(UserWarning, match="plain training"):
            assert thin().num_clusters == (5,)


def test_max_levels_keeps_the_ends_and_spreads_the_rest_evenly() -> None:
    # Each level joins one more class to the first cluster.
    levels = [np.maximum(np.arange(8) - top, 0) for top in range(6, -1, -1)]
    hierarchy = Hierarchy.from_levels(levels)
    assert hierarchy.num_clusters == (2, 3, 4, 5, 6, 7, 8)
    assert hierarchy.max_levels(2).num_clusters == (2, 8)
    assert hierarchy.max_levels(3).num_clusters == (2, 5, 8)
    assert hierarchy.max_levels(4).num_clusters == (2, 4, 6, 8)
    assert hierarchy.max_levels(7) == hierarchy.max_levels(100) == hierarchy


@pytest.mark.parametrize("count", [0, -1])
def test_max_levels_keeps_at_least_one(count: int) -> None:
    with pytest.raises(ValueError, match=f"count must be at least 1. Got {count}"):
        make().max_levels(count)


@pytest.mark.parametrize("count", [1.5, True, "2", None])
def test_max_levels_takes_an_integer(count: Any) -> None:
    with pytest.raises(TypeError, match=f"count must be an integer. Got {count!r}"):
        make().max_levels(count)


@given(hierarchies(), st.integers(2, 6))
@settings(deadline=None)
def test_thinned_hierarchies_are_valid(hierarchy: Hierarchy, count: int) -> None:
    thin = hierarchy.max_levels(count)
    assert_valid(thin)
    assert len(thin.levels) == min(count, len(hierarchy.levels))
    assert thin.num_clusters[0] == hierarchy.num_clusters[0]
    assert thin.class_names == hierarchy.class_names


# ------------------------------------------------------------------- clusters and coarsen


def test_clusters_lists_the_classes_of_each_cluster() -> None:
    hierarchy = Hierarchy.from_levels([[1, 0, 1, 0, 2]])
    assert hierarchy.clusters(0) == ((1, 3), (0, 2), (4,))
    assert hierarchy.clusters(-1) == hierarchy.clusters(1) == ((0,), (1,), (2,), (3,), (4,))


@given(hierarchies())
@settings(deadline=None)
def test_clusters_give_back_the_levels(hierarchy: Hierarchy) -> None:
    levels = [hierarchy.clusters(level) for level in range(len(hierarchy.levels))]
    assert as_lists(Hierarchy.from_levels(levels)) == as_lists(hierarchy)


@pytest.mark.parametrize("level", [0, 1, 2, -1, -2, -3, np.int64(1)])
def test_levels_are_counted_from_either_end(level: int) -> None:
    hierarchy = make()
    owner = hierarchy.levels[level]
    assert [owner[cluster[0]] for cluster in hierarchy.clusters(level)] == list(
        range(owner.max() + 1)
    )
    np.testing.assert_array_equal(hierarchy.coarsen([4, 0, 2], level), owner[[4, 0, 2]])


@pytest.mark.parametrize(
    ("level", "error"),
    [(3, ValueError), (-4, ValueError), (1.0, TypeError), (True, TypeError), ("1", TypeError)],
)
def test_a_level_that_is_not_there_is_refused(level: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="level must"):
        make().clusters(level)
    with pytest.raises(error, match="level must"):
        make().coarsen([0], level)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3), (2, 1, 4)])
def test_coarsen_keeps_the_shape_of_arrays_and_tensors(dtype: str, shape: tuple[int, ...]) -> None:
    # More classes than the small types can count.
    hierarchy = Hierarchy.from_levels([np.arange(300) // 3])
    labels = np.random.default_rng(0).integers(0, 128, shape)
    expected = np.asarray(labels) // 3
    coarse = hierarchy.coarsen(np.asarray(labels).astype(dtype), 0)
    assert coarse.shape == shape
    np.testing.assert_array_equal(coarse, expected)
    tensor = torch.tensor(labels).to(getattr(torch, dtype))
    coarse_tensor = hierarchy.coarsen(tensor, 0)
    assert coarse_tensor.shape == shape
    assert coarse_tensor.device == tensor.device
    assert coarse_tensor.dtype == torch.int64
    np.testing.assert_array_equal(coarse_tensor.numpy(), expected)


def test_coarsen_takes_lists() -> None:
    coarse = make().coarsen([[4, 0], [2, 3]], 1)
    assert isinstance(coarse, np.ndarray)
    assert coarse.tolist() == [[3, 0], [1, 2]]


def test_what_coarsen_returns_may_be_written_to_without_harm() -> None:
    hierarchy = make()
    for labels in (np.arange(5), torch.arange(5)):
        hierarchy.coarsen(labels, 0)[:] = 9
    assert hierarchy == make()


@pytest.mark.parametrize("wrong", [5, -1])
@pytest.mark.parametrize("as_type", [list, np.array, torch.tensor])
def test_labels_out_of_range_are_named(as_type: Any, wrong: int) -> None:
    with pytest.raises(ValueError, match=rf"0\.\.4\. Got {wrong} at position 3"):
        make().coarsen(as_type([[0, 1], [2, wrong]]), 0)


@pytest.mark.parametrize(
    "labels",
    [[0.0], ["a"], [True], None, "abc", torch.tensor([0.0]), torch.tensor([True]), np.array([1j])],
)
def test_labels_must_be_integers(labels: Any) -> None:
    with pytest.raises(TypeError, match="labels must hold integers"):
        make().coarsen(labels, 0)


# -------------------------------------------------------------------------------- a value


def test_equal_hierarchies_are_equal_and_hash_alike() -> None:
    assert named() == named()
    assert hash(named()) == hash(named())
    assert len({named(), named(), make()}) == 2


@pytest.mark.parametrize(
    "other",
    [
        make(),
        make(class_names=NAMES),
        named().keep_levels([0]),
        Hierarchy.from_levels([COARSE, [0, 1, 2, 3, 3]]),
        "a string",
        None,
    ],
)
def test_hierarchies_that_differ_in_anything_are_unequal(other: Any) -> None:
    assert named() != other


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_gives_an_equal_and_still_immutable_hierarchy(protocol: int) -> None:
    restored = pickle.loads(pickle.dumps(named(), protocol))
    assert restored == named()
    assert hash(restored) == hash(named())
    assert not any(level.flags.writeable for level in restored.levels)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_are_equal_and_silent(duplicate: Any) -> None:
    assert duplicate(named()) == named()
    with pytest.warns(UserWarning, match="plain training"):
        plain = Hierarchy.from_levels([[0, 1]])
    assert duplicate(plain) == plain


def test_repr_is_one_short_line() -> None:
    assert repr(named()) == "Hierarchy(num_classes=5, num_clusters=(2, 4, 5))"


# ------------------------------------------------------------------------ to_dict and save


ODD_NAMES = ["", '"quoted"', "line\nbreak\ttab\\", "日本語 é 🦊", "\u2028\x00\x7f"]


@given(hierarchies())
@settings(deadline=None)
def test_to_dict_and_from_dict_are_inverse(hierarchy: Hierarchy) -> None:
    content = hierarchy.to_dict()
    assert Hierarchy.from_dict(content) == hierarchy
    assert Hierarchy.from_dict(json.loads(json.dumps(content))) == hierarchy


@pytest.mark.parametrize("as_path", [str, Path])
def test_save_and_load_are_inverse(tmp_path: Path, as_path: Any) -> None:
    path = as_path(tmp_path / "hierarchy.json")
    for hierarchy in (named(), make(), make(class_names=ODD_NAMES)):
        hierarchy.save(path)
        assert Hierarchy.load(path) == hierarchy
    assert [file.name for file in tmp_path.iterdir()] == ["hierarchy.json"]


def test_names_that_are_not_unicode_survive(tmp_path: Path) -> None:
    # What the name of a folder in another encoding looks like.
    hierarchy = make(class_names=[b"caf\xe9".decode("utf-8", "surrogateescape"), *"bcde"])
    hierarchy.save(tmp_path / "h.json")
    assert Hierarchy.load(tmp_path / "h.json") == hierarchy


def test_names_are_readable_in_the_file(tmp_path: Path) -> None:
    make(class_names=ODD_NAMES).save(tmp_path / "h.json")
    assert "日本語 é 🦊" in (tmp_path / "h.json").read_text(encoding="utf-8")


def test_a_hierarchy_of_the_classes_alone_can_be_saved_and_loaded(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_levels([[0, 1]], ["a", "b"])
    hierarchy.save(tmp_path / "h.json")
    with pytest.warns(UserWarning, match="plain training"):
        assert Hierarchy.load(tmp_path / "h.json") == hierarchy


@pytest.mark.skipif(os.name != "posix", reason="about POSIX permissions")
def test_a_saved_file_is_as_readable_as_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    make().save(tmp_path / "h.json")
    assert (tmp_path / "h.json").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("function", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, error: BaseException
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    named().save(tmp_path / "h.json")
    monkeypatch.setattr(os, function, fail)
    with pytest.raises(type(error)):
        make().save(tmp_path / "h.json")
    monkeypatch.undo()
    assert Hierarchy.load(tmp_path / "h.json") == named()
    assert [file.name for file in tmp_path.iterdir()] == ["h.json"]


def test_the_file_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(
            os, name, lambda *args, name=name, do=original: (calls.append(name), do(*args))[1]
        )
    make().save(tmp_path / "h.json")
    assert calls == ["fsync", "replace"]


def test_saving_into_a_folder_that_is_not_there_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder .*missing"):
        make().save(tmp_path / "missing" / "h.json")


def test_saving_over_a_folder_fails_and_leaves_it(tmp_path: Path) -> None:
    (tmp_path / "h.json").mkdir()
    with pytest.raises(OSError, match=r"h\.json"):
        make().save(tmp_path / "h.json")
    assert [file.name for file in tmp_path.iterdir()] == ["h.json"]


def test_file_names_may_be_as_long_as_the_system_lets_them(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    make().save(path)
    assert Hierarchy.load(path) == make()


# ------------------------------------------------------------------- files that are wrong


@pytest.fixture
def load_text(tmp_path: Path) -> Any:
    path = tmp_path / "bad.json"

    def load(text: str | bytes) -> Hierarchy:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Hierarchy.load(path)

    return load


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json",
        "null",
        "[]",
        '"coarse2fine-hierarchy"',
        "7",
        "{}",
        '{"format": "another"}',
        '{"format": ["coarse2fine-hierarchy"]}',
        b"\xff\xfe\x00",
        b'{"format": "\xe9"}',
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000 + "1" + "}" * 100_000,
        "1" * 5000,
    ],
    ids=lambda text: repr(text)[:20],
)
def test_a_file_that_is_no_hierarchy_is_refused_by_name(load_text: Any, text: Any) -> None:
    with pytest.raises(ValueError, match=r"bad\.json: .*(JSON|not a hierarchy)"):
        load_text(text)


WRONG_NUMBERS = ["-1", "5", "1.0", "1e400", "-1e400", "true", '"1"', "null", "[1]", "{}"]
HUGE = str(10**400)


def with_number(number: str) -> str:
    return json.dumps(named().to_dict()).replace("[0, 0, 1, 2, 3]", f"[0, 0, {number}, 2, 3]")


@pytest.mark.parametrize("number", [*WRONG_NUMBERS, HUGE])
def test_an_id_that_is_no_cluster_is_refused_with_its_place(load_text: Any, number: str) -> None:
    with pytest.raises(ValueError, match=r'bad\.json: "levels"\[1\]\[2\] must be a whole number'):
        load_text(with_number(number))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN"])
def test_what_json_does_not_count_as_a_number_is_refused(load_text: Any, number: str) -> None:
    with pytest.raises(ValueError, match=rf"bad\.json: .*{number} is not a JSON number"):
        load_text(with_number(number))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 2, "version 2 of the format is not known"),
        ("version", None, "version None"),
        ("version", "1", "version '1'"),
        ("version", True, "version True"),
        ("version", 1.0, r"version 1\.0"),
        ("version", 10**400, r"version 10+\.\.\.0+ of"),
        ("num_classes", 4, r'"levels"\[0\] must be a list of 4 clusters\. Got 5 of them'),
        ("num_classes", 1, '"num_classes" must be a whole number from 2. Got 1'),
        ("num_classes", -5, '"num_classes" must be a whole number'),
        ("num_classes", True, '"num_classes" must be a whole number'),
        ("num_classes", 5.0, '"num_classes" must be a whole number'),
        ("num_classes", "5", '"num_classes" must be a whole number'),
        ("num_classes", None, '"num_classes" must be a whole number'),
        ("num_classes", 10**400, r'"levels"\[0\] must be a list of 1000'),
        ("levels", None, '"levels" must be a list of levels. Got None'),
        ("levels", {}, '"levels" must be a list of levels'),
        ("levels", [0, 1], r'"levels"\[0\] must be a list of 5 clusters\. Got 0'),
        ("levels", [COARSE, MIDDLE[:4]], r'"levels"\[1\] must be .*Got 4 of them'),
        ("levels", [MIDDLE, COARSE], "not nested"),
        ("levels", [COARSE, COARSE], "the same clusters"),
        ("levels", [[0, 0, 2, 2, 2], MIDDLE], "skips the id 1"),
        ("levels", [[0] * 5, MIDDLE], "one cluster"),
        ("class_names", NAMES[:4], "class_names must hold 5 names. Got 4"),
        ("class_names", "abcde", "class_names must be a sequence of 5 strings"),
        ("class_names", dict.fromkeys(NAMES), "class_names must be a sequence of 5 strings"),
        ("class_names", ["a", "b", "c", "d", 5], r"class_names\[4\] must be a string\. Got 5"),
        ("class_names", [None] * 5, r"class_names\[0\] must be a string"),
        ("class_names", 5, "class_names must be a sequence"),
        ("cluster_names", [["a", "b"]], "names for 1 levels"),
        ("cluster_names", {"a": 1, "b": 2}, "cluster_names must be a sequence"),
        ("cluster_names", ["ab", "abcd"], r"cluster_names\[0\] must be a sequence"),
        ("cluster_names", [[1, 2], ["a"] * 4], r"cluster_names\[0\]\[0\] must be a string"),
    ],
)
def test_a_wrong_part_of_a_file_is_named(
    load_text: Any, key: str, value: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=rf"bad\.json: .*{message}"):
        load_text(json.dumps({**named().to_dict(), key: value}))


@pytest.mark.parametrize("key", ["format", "version", "num_classes", "levels"])
def test_a_missing_part_of_a_file_is_noticed(load_text: Any, key: str) -> None:
    content = named().to_dict()
    del content[key]
    with pytest.raises(ValueError, match=rf"bad\.json: .*{key}"):
        load_text(json.dumps(content))


@pytest.mark.parametrize("count", [10**8, 10**12, 2**63, 10**400])
def test_a_mere_number_of_classes_does_not_fill_the_memory(load_text: Any, count: int) -> None:
    content = {**make().to_dict(), "num_classes": count, "levels": []}
    with pytest.raises(ValueError, match=r'bad\.json: "num_classes" is .* no level'):
        load_text(json.dumps(content))


def test_a_folder_or_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=tmp_path.name):
        Hierarchy.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"missing\.json"):
        Hierarchy.load(tmp_path / "missing.json")


def test_a_file_with_a_byte_order_mark_is_read(load_text: Any) -> None:
    assert load_text("\ufeff" + json.dumps(named().to_dict())) == named()


def test_a_file_cut_off_anywhere_is_refused(load_text: Any) -> None:
    content = make(class_names=ODD_NAMES).to_dict()
    whole = json.dumps(content, ensure_ascii=False).encode()
    assert load_text(whole).to_dict() == content
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"bad\.json"):
            load_text(whole[:length])


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, -1, 0, 1, 2, 5])
    | st.floats()
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


def places(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(content, dict):
        inside = list(content.items())
    else:
        inside = list(enumerate(content)) if isinstance(content, list) else []
    return [path, *(place for key, part in inside for place in places(part, (*path, key)))]


def replaced(content: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    content = copy.copy(content)
    content[place[0]] = replaced(content[place[0]], place[1:], value)
    return content


@given(data=st.data(), base=st.sampled_from([make(), named()]), changes=st.integers(1, 3))
@settings(deadline=None, max_examples=300)
def test_a_file_with_anything_in_it_loads_or_raises_a_value_error(
    tmp_path_factory: pytest.TempPathFactory, data: Any, base: Hierarchy, changes: int
) -> None:
    content: Any = base.to_dict()
    for _ in range(changes):
        content = replaced(
            content, data.draw(st.sampled_from(places(content))), data.draw(JSON_VALUES)
        )
    path = tmp_path_factory.getbasetemp() / "anything.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            hierarchy = Hierarchy.load(path)
        except ValueError as error:
            message = str(error)
        else:
            assert_valid(hierarchy)
            return
    assert message.startswith(f"{path}: ")
    assert len(message) < 1000


@given(JSON_VALUES)
@settings(deadline=None)
def test_from_dict_refuses_what_is_no_hierarchy(content: Any) -> None:
    with pytest.raises(ValueError, match="not a hierarchy"):
        Hierarchy.from_dict(content)
