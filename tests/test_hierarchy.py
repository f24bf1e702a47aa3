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
    make,
    named,
)

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
