"""What a comparison tells: sentences, and tables as rows of cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._scores import ratio
from .._util.arrays import IntArray
from .._util.columns import Rows, marked
from .._util.text import brief
from ..errors import RunError
from ..hierarchy import Hierarchy
from .directory import PREDICTIONS
from .result import BASELINE, Result, RunResult, mean_epochs
from .statistics import plus_minus, standard_error


def told(result: Result) -> list[str | Rows]:
    """Return what `print` shows of a comparison: its sentences, its accuracies and its notes."""
    sentences = [str(result.choice), *map(str, result.verdicts.values())]
    notes = [f"note: {remark}" for remark in result.remarks]
    return [*sentences, "", "test accuracy:", accuracy_rows(result), *notes]


def accuracy_rows(result: Result) -> Rows:
    """Return the test accuracies and gains of each seed, with their means."""
    gained = [f"gain of {method}" for method in result.methods if result.gains(method)]
    header = ["seed", *result.methods, *gained]
    seeds = dict.fromkeys(run.seed for run in result.runs)
    rows = [_row(result, seed) for seed in seeds]
    return [header, *rows, _mean_row(result), _epochs_row(result)]


def level_rows(result: Result) -> Rows:
    """Return the test accuracy at each level of the first seed's hierarchy, if it has one."""
    first = next((run for run in result.runs if run.num_clusters), None)
    if first is None:
        return []
    hierarchy = first.hierarchy()
    runs = [run for run in result.runs if run.seed == first.seed]
    header = ["clusters", *map(str, hierarchy.num_clusters)]
    hits = [_level_hits(run, hierarchy) for run in runs]
    rows = [
        [run.method, *(f"{100 * ratio(*each):.1f}" for each in zip(*found, strict=True))]
        for run, found in zip(runs, hits, strict=True)
    ]
    counts = hits[0][1]
    if counts.min() < counts.max():  # some samples are labelled finely enough for some levels only
        rows.append(["samples", *map(str, counts)])
    return [header, *rows]


def _row(result: Result, seed: int) -> list[str]:
    of_seed = {run.method: run for run in result.runs if run.seed == seed}
    cells = [f"{100 * of_seed[m].accuracy:.2f}" if m in of_seed else "" for m in result.methods]
    plain = of_seed.get(BASELINE)
    others = [of_seed.get(m) for m in result.methods if m != BASELINE and result.gains(m)]
    gains = [f"{100 * (r.accuracy - plain.accuracy):+.2f}" if r and plain else "" for r in others]
    return [str(seed), *cells, *gains]


def _mean_row(result: Result) -> list[str]:
    means = [_shown(result.accuracies(method)) for method in result.methods]
    verdicts = result.verdicts
    gains = {method: result.gains(method) for method in result.methods}
    shown = [
        marked(_shown(found, "+"), verdicts[method].direction)
        for method, found in gains.items()
        if found
    ]
    return ["mean", *means, *shown]


def _epochs_row(result: Result) -> list[str]:
    has_more = any(run.hierarchy_epochs for run in result.runs)
    name = "epochs + those for the hierarchy" if has_more else "epochs"
    return [name, *(mean_epochs(result.of(method)) for method in result.methods)]


def _shown(values: Sequence[float], sign: str = "") -> str:
    percent = [100 * value for value in values]
    return plus_minus((float(np.mean(percent)), standard_error(percent)), sign) if percent else ""


def _level_hits(run: RunResult, hierarchy: Hierarchy) -> tuple[IntArray, IntArray]:
    try:
        return run.level_hits(hierarchy)
    except (ValueError, TypeError) as error:
        path = run.path / PREDICTIONS
        text = brief(str(error).removeprefix(f"{path}: "))
        raise RunError(f"{path} is damaged: {text}") from None
