"""Hierarchy as a value: what it takes, what it refuses and says."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hierarchies import (
    COARSE,
    MIDDLE,
    NAMES,
    as_lists,
    assert_valid,
    hierarchies,
    make,
    named,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from coarse2fine import Hierarchy

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
