"""What curves and hierarchies tell, in numbers: notes below the tables of their experiments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..agreement import adjusted_rand_index
from ..figures.curves import Curve
from ..figures.hierarchy import NamedHierarchy
from ..hierarchy import Hierarchy
from ..runs.statistics import plus_minus, standard_error
from .results import Row

MADE_OF_TWO = "shapes"  # the classes of this set are named by colour and shape


def looks(row: Row) -> list[str]:
    """Return what a row's curves, or its hierarchies, tell; nothing for other figures."""
    values = row.values if isinstance(row.values, list) else []
    curves = [it for it in values if isinstance(it, Curve) and it.coarse]
    found = [it for it in values if isinstance(it, NamedHierarchy)]
    told = [*_of_curves(row, curves)]
    if row.config.get("data") == MADE_OF_TWO:
        told += [note for it in found for note in _of_hierarchy(row, it)]
    return [f"{row.label}: {note}" for note in told]


# -------------------------------------------------------------------------------- curves


def reached(curve: Curve) -> list[float]:
    """Return the best accuracy of each level in percent, coarsest first.

    A level's accuracy is on its clusters; that of the last is on the classes.

    Args:
        curve: Of a method whose coarse stages noted theirs.
    """
    best: dict[int, float] = {}
    for level, *both in zip(curve.level, curve.coarse, curve.accuracy, strict=True):
        noted = [value for value in both if not math.isnan(value)]
        if level is not None and noted:
            best[level] = max(*noted, best.get(level, 0.0))
    return [best[level] for level in sorted(best)]


def _of_curves(row: Row, curves: Sequence[Curve]) -> Iterator[str]:
    """Yield what each method's levels reached, and in how many runs the coarser the better."""
    labels = {variant.name: variant.shown for variant in row.variants}
    for method in dict.fromkeys(curve.method for curve in curves):
        runs = [reached(curve) for curve in curves if curve.method == method]
        ordered = sum(all(np.diff(run) < 0) for run in runs)
        places = range(max(map(len, runs)), 0, -1)  # from the classes on, as depths may differ
        levels = [[run[-place] for run in runs if len(run) >= place] for place in places]
        means = [plus_minus((float(np.mean(it)), standard_error(it))) for it in levels]
        yield (
            f"the levels of {labels[method]} reached {', '.join(means)}, coarsest first; in "
            f"{ordered} of {len(runs)} runs each level more than the next."
        )


# --------------------------------------------------------------------------- hierarchies


def pure(hierarchy: Hierarchy, parts: Sequence[str]) -> float:
    """Return the share of the coarsest level's clusters whose classes have a part in common.

    Args:
        hierarchy: Of the classes.
        parts: Of each class, such as its colour.
    """
    own: dict[int, set[str]] = {}
    for cluster, part in zip(hierarchy.levels[0].tolist(), parts, strict=True):
        own.setdefault(cluster, set()).add(part)
    return sum(len(it) == 1 for it in own.values()) / len(own)


def _of_hierarchy(row: Row, found: NamedHierarchy) -> Iterator[str]:
    """Yield whether a hierarchy's levels go by colour or by shape."""
    labels = {variant.name: variant.shown for variant in row.variants}
    hierarchy = found.hierarchy
    colours, shapes = zip(*(name.split(" ") for name in hierarchy.class_names or ()), strict=True)
    indices = []
    for level in hierarchy.levels[:-1]:
        both = [adjusted_rand_index(level, _numbered(parts)) for parts in (colours, shapes)]
        indices.append(f"{max(level) + 1} clusters ({both[0]:.2f} and {both[1]:.2f})")
    yield (
        f"{labels[found.method]}, seed {found.seed}, adjusted Rand index with colours and with "
        f"shapes: {', '.join(indices)}; {pure(hierarchy, colours):.0%} of the coarsest clusters "
        f"have one colour."
    )


def _numbered(parts: Sequence[str]) -> list[int]:
    """Return a number for each part, the same for the same."""
    numbers = {part: number for number, part in enumerate(dict.fromkeys(parts))}
    return [numbers[part] for part in parts]
