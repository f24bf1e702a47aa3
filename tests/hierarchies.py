"""Hierarchies that several test files share."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st

from coarse2fine import Hierarchy
from coarse2fine.distances import Metric

METRICS = get_args(Metric)
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


def assert_loads_or_says_why(path: Path) -> None:
    """A file, whatever is in it, is a valid hierarchy or refused in a sentence that names it."""
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
