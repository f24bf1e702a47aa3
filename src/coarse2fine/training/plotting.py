"""Figures of a comparison: what of its runs goes into which."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import plots
from .._nesting import edges, nested_order
from ..metrics import level_accuracies
from .result import BASELINE, RunResult
from .views import Confusions, confusions, learning_curve

if TYPE_CHECKING:
    from .result import Result


def plot(result: Result, kind: str, method: str | None) -> Any:
    """Return a plotly figure of a comparison; see `Result.plot`."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}. Got {kind!r}.")
    if method is not None and method not in result.methods:
        known = ", ".join(map(repr, result.methods))
        raise ValueError(f"method must be one of {known}. Got {method!r}.")
    return KINDS[kind](result, method)


def _curves(result: Result, method: str | None) -> Any:
    return plots.curves([learning_curve(run) for run in _chosen(result, method)])


def _levels(result: Result, method: str | None) -> Any:
    hierarchy = _guide(result, method).hierarchy()
    found: dict[str, list[Any]] = {}
    for run in _chosen(result, method):
        accuracies = 100 * level_accuracies(*run.predictions(), hierarchy)
        found.setdefault(run.method, []).append(accuracies)
    rows = {name: np.mean(each, axis=0).tolist() for name, each in found.items()}
    return plots.levels(hierarchy.num_clusters, rows)


def _classes(result: Result, method: str | None) -> Any:
    guide = _guide(result, method)
    before, after = _compared(result, method or guide.method, guide)
    if before is None:
        raise ValueError(
            "the gain of each class needs a method and a baseline of the same seed; choose "
            "another kind or method."
        )
    names = guide.hierarchy().class_names
    return plots.class_gains(names, after.accuracies - before.accuracies)


def _confusion(result: Result, method: str | None) -> Any:
    guide = _guide(result, method)
    method = method or guide.method
    hierarchy = guide.hierarchy()
    order = nested_order(hierarchy.levels[:-1], hierarchy.num_classes)
    outlines = [edges(level, order) for level in hierarchy.levels[:-1]]
    before, after = _compared(result, method, guide)
    names, labels = hierarchy.class_names, (BASELINE, method)
    return plots.confusion(before, after, order, outlines, names, labels=labels)


KINDS: dict[str, Callable[[Result, str | None], Any]] = {
    "curves": _curves,
    "levels": _levels,
    "classes": _classes,
    "confusion": _confusion,
}


def _chosen(result: Result, method: str | None) -> list[RunResult]:
    """Return the runs of a method and the baseline, or all."""
    return [run for run in result.runs if method is None or run.method in (method, BASELINE)]


def _guide(result: Result, method: str | None) -> RunResult:
    """Return the run whose hierarchy orders the classes: the method's own, if it has one."""
    found = [run for run in result.runs if run.num_clusters]
    if not found:
        raise ValueError(
            "no run has a hierarchy, which this figure is drawn by; choose the kind 'curves'."
        )
    return min(found, key=lambda run: run.method != method)


def _compared(
    result: Result, method: str, guide: RunResult
) -> tuple[Confusions | None, Confusions]:
    """Return the confusions of the baseline, where there is one, and of a method.

    They are of the seeds that both have, so that nothing but the method differs.
    """
    count = guide.num_clusters[-1]
    after, before = result.of(method), () if method == BASELINE else result.of(BASELINE)
    seeds = {run.seed for run in before} & {run.seed for run in after}
    if not seeds:
        return None, confusions(after, count)
    shared = ([run for run in runs if run.seed in seeds] for runs in (before, after))
    first, second = (confusions(runs, count) for runs in shared)
    return first, second
