"""The figures of a comparison: what of its runs goes into which."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..runs.result import BASELINE, RunResult
from . import answers, classes, confusion, curves, heatmap, levels

if TYPE_CHECKING:
    from ..runs.result import Result


def plot(result: Result, kind: str, method: str | None) -> Any:
    """Return a plotly figure of a comparison; see `Result.plot`."""
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}. Got {kind!r}.")
    if method is not None and method not in result.methods:
        known = ", ".join(map(repr, result.methods))
        raise ValueError(f"method must be one of {known}. Got {method!r}.")
    return KINDS[kind](result, method)


def _curves(result: Result, method: str | None) -> Any:
    return curves.plot(curves.values_of(_chosen(result, method)))


def _levels(result: Result, method: str | None) -> Any:
    values = levels.levels_of(_chosen(result, method), _guide(result, method))
    means = {name: [level.mean for level in own] for name, own in values.estimates().items()}
    return levels.plot(values.num_clusters, means)


def _classes(result: Result, method: str | None) -> Any:
    guide = _guide(result, method)
    hierarchy = guide.hierarchy()
    count, names = hierarchy.num_classes, hierarchy.class_names
    values = classes.accuracies_of(result.runs, method or guide.method, count, names)
    if values is None:
        raise ValueError(
            "the gain of each class needs a method and a baseline of the same seed; choose "
            "another kind or method."
        )
    return classes.plot(names, values.gains)


def _confusion(result: Result, method: str | None) -> Any:
    guide = _guide(result, method)
    method = method or guide.method
    return heatmap.plot(confusion.confusions_of(result.runs, method, guide.hierarchy()))


def _answers(result: Result, method: str | None) -> Any:
    guide = _guide(result, method)
    method = method or guide.method
    return answers.plot(answers.answers_of(result.of(method), guide.hierarchy()), method)


KINDS: dict[str, Callable[[Result, str | None], Any]] = {
    "curves": _curves,
    "levels": _levels,
    "classes": _classes,
    "confusion": _confusion,
    "answers": _answers,
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
