"""Thinning a hierarchy, its clusters, and labels at a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hierarchies import (
    NAMES,
    as_lists,
    assert_valid,
    hierarchies,
    make,
    named,
)
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import Hierarchy

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


def test_lopsided_levels_are_left_out_but_one_coarse_level_stays() -> None:
    levels = [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 2, 3]]
    hierarchy = Hierarchy.from_levels(levels)
    assert hierarchy.max_cluster_share(0.9) == hierarchy
    assert hierarchy.max_cluster_share(4 / 6) == hierarchy.keep_levels([1, 2])
    assert hierarchy.max_cluster_share(0.1) == hierarchy.keep_levels([2])
    flat = hierarchy.keep_levels([2]).max_cluster_share(0.1)
    assert flat.num_clusters == (4, 6)


@pytest.mark.parametrize("share", [0, 1, -0.5, float("nan")])
def test_the_share_of_a_cluster_lies_between_none_and_all(share: float) -> None:
    with pytest.raises(ValueError, match="share must lie between 0 and 1. Got"):
        make().max_cluster_share(share)


@pytest.mark.parametrize("count", [0, -1])
def test_max_levels_keeps_at_least_one(count: int) -> None:
    with pytest.raises(ValueError, match=f"count must be at least 1. Got {count}"):
        make().max_levels(count)


@pytest.mark.parametrize("count", [1.5, True, "2", None])
def test_max_levels_takes_an_integer(count: Any) -> None:
    with pytest.raises(TypeError, match=f"count must be an integer. Got {count!r}"):
        make().max_levels(count)


@given(hierarchies(), st.integers(2, 6))
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


def test_classes_are_matched_by_name():
    hierarchy = Hierarchy.from_taxonomy({"pet": ["dog", "cat"], "vehicle": ["car"]})
    found = hierarchy.for_classes(["car", "cat", "dog"])
    assert found.levels[0].tolist() == [1, 0, 0]
    assert found.class_names == ("car", "cat", "dog")
    assert found.cluster_names == (("pet", "vehicle"),)


def test_classes_without_names_take_those_of_the_data():
    found = Hierarchy.from_levels([[0, 1, 1]]).for_classes(["car", "cat", "dog"])
    assert (found.levels[0].tolist(), found.class_names) == ([0, 1, 1], ("car", "cat", "dog"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["car", "cat"], "the hierarchy has 3 classes, the data 2; the data has no class 'dog'"),
        (["car", "cat", "cow"], r"the hierarchy has no class 'cow', which the data has\.$"),
        (["car", "cat", "dogg"], r"no class 'dogg', which the data has\. Did you mean 'dog'\?"),
    ],
)
def test_other_classes_are_refused(names, message):
    hierarchy = Hierarchy.from_taxonomy({"pet": ["dog", "cat"], "vehicle": ["car"]})
    with pytest.raises(ValueError, match=message):
        hierarchy.for_classes(names)
