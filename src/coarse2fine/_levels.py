"""Checking the levels and names of a hierarchy, with an error that says which entry is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ._arrays import IntArray, to_integers


def frozen(level: IntArray) -> IntArray:
    """Return a read-only copy."""
    level = np.array(level, np.int64)
    level.setflags(write=False)
    return level


def to_level(level: Any, what: str) -> IntArray:
    """Return an array class → cluster from one, or from a list of clusters."""
    if isinstance(level, (list, tuple)) and level and not np.isscalar(level[0]):
        clusters = [to_integers(list(cluster), what) for cluster in level]
        members = np.concatenate(clusters)
        if not np.array_equal(np.sort(members), np.arange(len(members))):
            raise ValueError(
                f"the clusters of {what} must hold each of the classes "
                f"0..{len(members) - 1} once. Got {_odd_one(members)}."
            )
        owner = np.empty(len(members), np.int64)
        owner[members] = np.repeat(np.arange(len(clusters)), [len(c) for c in clusters])
        return owner
    return to_integers(level, what)


def _odd_one(members: IntArray) -> str:
    values, counts = np.unique(members, return_counts=True)
    if (counts > 1).any():
        return f"class {values[counts > 1][0]} {counts[counts > 1][0]} times"
    missing = np.setdiff1d(np.arange(len(members)), members)
    return f"no class {missing[0]}"


def check_levels(levels: tuple[IntArray, ...]) -> None:
    """Refuse levels that are not nested partitions, coarsest first, of the same classes."""
    classes = len(levels[-1])
    if classes < 2:
        raise ValueError(f"a hierarchy needs at least two classes. Got {classes}.")
    for index, level in enumerate(levels):
        if level.shape != (classes,):
            raise ValueError(
                f"levels[{index}] must give a cluster to each of the {classes} classes. Got "
                f"shape {level.shape}."
            )
        _check_ids(level, index)
    if not np.array_equal(levels[-1], np.arange(classes)):
        raise ValueError("the last level must be the classes themselves, 0..K-1 in order.")
    if len(levels) > 1 and not levels[0].any():
        raise ValueError(
            "levels[0] puts all classes into one cluster, which teaches nothing; leave it out."
        )
    for index, (coarse, fine) in enumerate(pairwise(levels)):
        _check_nested(coarse, fine, index)


def _check_ids(level: IntArray, index: int) -> None:
    if level.min() < 0:
        at = int(level.argmin())
        raise ValueError(f"levels[{index}][{at}] is {level[at]}; clusters count from 0.")
    if level.max() >= len(level):
        at = int(level.argmax())
        raise ValueError(
            f"levels[{index}][{at}] is {level[at]}, but {len(level)} classes have at most "
            f"{len(level)} clusters, numbered from 0 without gaps."
        )
    sizes = np.bincount(level)
    if not sizes.all():
        raise ValueError(
            f"levels[{index}] skips the id {int(sizes.argmin())}; its clusters must be "
            f"numbered 0..{len(sizes) - 1} without gaps."
        )


def _check_nested(coarse: IntArray, fine: IntArray, index: int) -> None:
    parent = np.zeros(fine.max() + 1, np.int64)
    parent[fine] = coarse
    wrong = np.flatnonzero(parent[fine] != coarse)
    if len(wrong):
        one = int(wrong[0])
        other = int(np.flatnonzero((fine == fine[one]) & (coarse != coarse[one]))[0])
        raise ValueError(
            f"the levels are not nested: classes {one} and {other} share cluster {fine[one]} "
            f"of levels[{index + 1}] but are in clusters {coarse[one]} and {coarse[other]} of "
            f"levels[{index}], which is coarser. Levels go from coarse to fine."
        )
    if len(parent) == coarse.max() + 1:
        raise ValueError(
            f"levels[{index}] and levels[{index + 1}] have the same clusters; leave one out."
        )


def check_names(names: Any, count: int, what: str) -> tuple[str, ...]:
    """Return `names` as a tuple of `count` strings."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a sequence of {count} strings. Got {names!r:.80}.")
    checked = tuple(names)
    for index, name in enumerate(checked):
        if not isinstance(name, str):
            raise TypeError(f"{what}[{index}] must be a string. Got {name!r:.80}.")
    if len(checked) != count:
        raise ValueError(f"{what} must hold {count} names. Got {len(checked)}.")
    return checked


def read_level(level: Any, classes: int, index: int) -> IntArray:
    """Return a level that came from a file, where anything may stand."""
    if not isinstance(level, list) or len(level) != classes:
        raise ValueError(f'"levels"[{index}] must be a list of {classes} clusters.')
    for at, cluster in enumerate(level):
        if type(cluster) is not int or not 0 <= cluster < classes:
            raise ValueError(
                f'"levels"[{index}][{at}] must be a whole number in 0..{classes - 1}. Got '
                f"{cluster!r:.80}."
            )
    return np.array(level, np.int64)
