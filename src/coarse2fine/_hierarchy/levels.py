"""Checking the parts of a hierarchy, with an error that says which entry is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from reprlib import repr as short
from typing import Any

import numpy as np

from .._util.arrays import Array, IntArray, is_tensor, to_integers
from .._util.text import did_you_mean

FORMAT = "coarse2fine-hierarchy"
VERSION = 1

# A file without levels gives the number of classes by a mere number, which could be too large
# for any memory; a level is itself as long as there are classes.
_MAX_BARE_CLASSES = 10_000_000

Parts = tuple[list[IntArray], Any, Any, Any, bool]


def frozen(level: Any, index: int) -> IntArray:
    """Return a read-only copy of a level.

    Over bytes, as an array that is merely flagged read-only can be made writable again.
    """
    array = to_integers(level, f"levels[{index}]")
    return np.frombuffer(array.tobytes(), np.int64).reshape(array.shape)


def to_level(level: Any, what: str) -> IntArray:
    """Return a level, given as an array class → cluster or as a list of clusters."""
    if isinstance(level, list | tuple) and any(map(_is_cluster, level)):
        return _from_clusters(level, what)
    array = to_integers(level, what)
    if array.ndim != 1:
        raise ValueError(
            f"{what} must be an array class → cluster, or a list of clusters, which are lists "
            f"of classes. Got {f'shape {array.shape}' if array.ndim else short(level)}."
        )
    return array


def _is_cluster(value: Any) -> bool:
    return isinstance(value, list | tuple | Set | range) or getattr(value, "ndim", 0) > 0


def _from_clusters(clusters: Any, what: str) -> IntArray:
    for index, cluster in enumerate(clusters):
        if not _is_cluster(cluster):
            raise TypeError(f"{what}[{index}] must be a list of classes. Got {short(cluster)}.")
        if not len(cluster):
            raise ValueError(f"{what}[{index}] is an empty cluster; leave it out.")
    parts = [to_integers(list(c), f"{what}[{index}]") for index, c in enumerate(clusters)]
    members = np.concatenate(parts)
    if not np.array_equal(np.sort(members), np.arange(len(members))):
        raise ValueError(
            f"the clusters of {what} must hold each of the classes 0..{len(members) - 1} once. "
            f"Got {_first_irregular(members)}."
        )
    if len(parts) == len(members):  # the classes themselves, in whatever order
        return np.arange(len(members))
    owner = np.empty(len(members), np.int64)
    owner[members] = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return owner


def _first_irregular(members: IntArray) -> str:
    values, counts = np.unique(members, return_counts=True)
    if (counts > 1).any():
        return f"class {values[counts > 1][0]} {counts[counts > 1][0]} times"
    missing = np.setdiff1d(np.arange(len(members)), members)
    return f"no class {missing[0]}"


def check_levels(levels: tuple[IntArray, ...]) -> None:
    """Refuse levels that are not nested partitions, coarsest first, of the same classes."""
    if not levels:
        raise ValueError("levels must hold at least one level. Got none.")
    classes = levels[-1].size
    if classes < 2:
        raise ValueError(f"a hierarchy needs at least two classes. Got {classes}.")
    for index, level in enumerate(levels):
        if level.shape != (classes,):
            raise ValueError(
                f"levels[{index}] must give a cluster to each of the {classes} classes. Got "
                f"shape {level.shape}."
            )
        _check_ids(level, index)
    _check_ends(levels)
    for index, (coarse, fine) in enumerate(pairwise(levels)):
        _check_nested(coarse, fine, index)


def _check_ends(levels: tuple[IntArray, ...]) -> None:
    wrong = np.flatnonzero(levels[-1] != np.arange(len(levels[-1])))
    if len(wrong):
        raise ValueError(
            f"the last level must be the classes themselves, 0..{len(levels[-1]) - 1} in order. "
            f"Got {levels[-1][wrong[0]]} for class {wrong[0]}."
        )
    if len(levels) > 1 and not levels[0].any():
        raise ValueError(
            "levels[0] puts all classes into one cluster, which teaches nothing; leave it out."
        )


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
    # One class of each fine cluster (the last) says where the cluster lies in the coarse level;
    # the levels are nested if all its other classes lie there too. This is O(K), where
    # comparing clusters as sets would not be.
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
    # Nested and equal in number, they are equal.
    if len(parent) == coarse.max() + 1:
        raise ValueError(
            f"levels[{index}] and levels[{index + 1}] have the same clusters; leave one out."
        )


def check_names(names: Any, count: int, what: str) -> tuple[str, ...]:
    """Return `names` as a tuple of `count` strings."""
    if isinstance(names, str | Mapping | Set) or not isinstance(names, Iterable):
        raise TypeError(f"{what} must be a sequence of {count} strings. Got {short(names)}.")
    checked = tuple(names)
    for index, name in enumerate(checked):
        if not isinstance(name, str):
            raise TypeError(f"{what}[{index}] must be a string. Got {short(name)}.")
    if len(checked) != count:
        raise ValueError(f"{what} must hold {count} names. Got {len(checked)}.")
    return tuple(map(str, checked))  # numpy's strings become plain ones


def check_cluster_names(groups: Any, counts: tuple[int, ...]) -> tuple[tuple[str, ...], ...]:
    """Return `groups` as a tuple of names for each level above the classes."""
    if isinstance(groups, str | Mapping | Set) or not isinstance(groups, Iterable):
        raise TypeError(f"cluster_names must be a sequence for each level. Got {short(groups)}.")
    groups = tuple(groups)
    if len(groups) != len(counts) - 1:
        raise ValueError(
            f"cluster_names must name the clusters of the {len(counts) - 1} levels above the "
            f"classes. Got names for {len(groups)} levels."
        )
    return tuple(
        check_names(group, count, f"cluster_names[{index}]")
        for index, (group, count) in enumerate(zip(groups, counts[:-1], strict=True))
    )


def check_other_names(names: Any) -> dict[str, str]:
    """Return `names` as a dict of strings; None is an empty one."""
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise TypeError(f"other_names must be a dict, name → name. Got {short(names)}.")
    for pair in names.items():
        for name in pair:
            if not isinstance(name, str):
                raise TypeError(f"other_names must hold strings. Got {short(name)}.")
    return {str(name): str(own) for name, own in names.items()}


def to_class_indices(labels: Any, classes: int, what: str = "labels") -> Any:
    """Return labels as int64, tensors as tensors, or raise an error naming one out of range.

    Out of range includes negative ones, which indexing would count from the end.

    Args:
        labels: Of any shape.
        classes: How many classes there are.
        what: What the labels are called in error messages. Defaults to ``"labels"``.
    """
    if is_tensor(labels):
        if labels.is_floating_point() or labels.is_complex() or str(labels.dtype) == "torch.bool":
            raise TypeError(f"{what} must hold integers. Got dtype {labels.dtype}.")
        labels = labels.long()
    else:
        labels = to_integers(labels, what)
    wrong = (labels < 0) | (labels >= classes)
    if wrong.any():
        # nonzero() is a tuple of arrays in numpy and an (n, 1) tensor in torch.
        first = int(wrong.reshape(-1).nonzero()[0].reshape(-1)[0])
        raise ValueError(
            f"{what} must lie in 0..{classes - 1}. Got {int(labels.reshape(-1)[first])} at "
            f"position {first}."
        )
    return labels


def is_hierarchy(content: Any) -> bool:
    """Return whether JSON claims to be a hierarchy, valid or not."""
    return isinstance(content, dict) and content.get("format") == FORMAT


def read_parts(content: Any) -> Parts:
    """Return the levels and names of a file's content, which may be anything.

    Args:
        content: As JSON has it, or with levels that are arrays.
    """
    if not is_hierarchy(content):
        raise ValueError(f'not a hierarchy: it must be an object with "format": "{FORMAT}".')
    version, count, levels = (content.get(key) for key in ("version", "num_classes", "levels"))
    # By type, as JSON's true and 1.0 would be equal to 1.
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"version {short(version)} of the format is not known; this release reads version "
            f"{VERSION}. Update coarse2fine or make the file anew."
        )
    if type(count) is not int or count < 2:
        raise ValueError(f'"num_classes" must be a whole number from 2. Got {short(count)}.')
    if not isinstance(levels, list):
        raise ValueError(f'"levels" must be a list of levels. Got {short(levels)}.')
    if not levels and count > _MAX_BARE_CLASSES:
        raise ValueError(f'"num_classes" is {short(count)}, which no level bears out.')
    approximate = content.get("approximate", False)
    if not isinstance(approximate, bool):
        raise ValueError(f'"approximate" must be true or false. Got {short(approximate)}.')
    arrays = [_read_level(level, count, index) for index, level in enumerate(levels)]
    names = (content.get(key) for key in ("class_names", "cluster_names", "other_names"))
    return [*arrays, np.arange(count)], *names, approximate


def _read_level(level: Any, classes: int, index: int) -> IntArray:
    what = f'"levels"[{index}]'
    if isinstance(level, np.ndarray):
        return _read_array(level, classes, what)
    if not isinstance(level, list) or len(level) != classes:
        raise ValueError(
            f"{what} must be a list of {short(classes)} clusters. Got "
            f"{f'{len(level)} of them' if isinstance(level, list) else short(level)}."
        )
    # By type, as True and 1.0 are equal to 1. The loop only looks for what is wrong.
    if set(map(type, level)) != {int} or not 0 <= min(level) <= max(level) < classes:
        for at, cluster in enumerate(level):
            if type(cluster) is not int or not 0 <= cluster < classes:
                raise _wrong_cluster(what, at, classes, cluster)
    return np.array(level, np.int64)


def _read_array(level: Array, classes: int, what: str) -> IntArray:
    if level.dtype.kind not in "iu" or level.shape != (classes,):
        raise ValueError(
            f"{what} must be an array of {short(classes)} clusters. Got {level.dtype} of shape "
            f"{level.shape}."
        )
    wrong = (level < 0) | (level >= classes)
    if wrong.any():
        at = int(wrong.argmax())
        raise _wrong_cluster(what, at, classes, int(level[at]))
    return level.astype(np.int64)


def _wrong_cluster(what: str, at: int, classes: int, cluster: Any) -> ValueError:
    return ValueError(
        f"{what}[{at}] must be a whole number in 0..{classes - 1}. Got {short(cluster)}."
    )


def match_names(own: Sequence[str] | None, wanted: Sequence[str], num_classes: int) -> list[int]:
    """Return the index of each wanted class in a hierarchy.

    Args:
        own: The hierarchy's class names, or None: it has none, and the order is the same.
        wanted: The class names of some data.
        num_classes: How many classes the hierarchy has.
    """
    places = {name: place for place, name in enumerate(wanted if own is None else own)}
    missing = [name for name in wanted if name not in places]
    if missing:
        hint = did_you_mean(missing[0], places.keys() - set(wanted))
        raise ValueError(f"the hierarchy has no class {missing[0]!r}, which the data has.{hint}")
    if num_classes != len(wanted):
        others = sorted(places.keys() - set(wanted))
        lacking = f"; the data has no class {others[0]!r}" if others else ""
        raise ValueError(
            f"the hierarchy has {num_classes} classes, the data {len(wanted)}{lacking}."
        )
    return [places[name] for name in wanted]
