"""Test accuracy at every level of a hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._arrays import Array
from ...metrics import level_accuracies
from ...training.result import RunResult
from .style import (
    FLAT,
    add_legend,
    add_title,
    add_x_label,
    line_styles,
    mean_and_error,
    new_panels,
)

Row = dict[str, Any]
APART = 0.06  # how far apart the points of two methods are, as a share of a level


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return the test accuracy of every run at the levels of the first hierarchy.

    One hierarchy for all seeds, so that the levels are the same ones.
    """
    first = next((run for run in runs if run.num_clusters), None)
    if first is None:
        return {}
    hierarchy = first.hierarchy()
    found = [
        {
            "method": run.method,
            "seed": run.seed,
            "accuracy": level_accuracies(*run.predictions(), hierarchy).tolist(),
        }
        for run in runs
    ]
    source = {"method": first.method, "seed": first.seed}
    return {"levels": {**source, "num_clusters": list(hierarchy.num_clusters), "runs": found}}


def shows(row: Row) -> bool:
    """Whether a setting has a hierarchy."""
    return "levels" in row


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each setting, with a line for each method from coarse to fine."""
    rows = list(filter(shows, content["settings"]))
    figure, panels = new_panels(len(rows), height=3.5 if width is None else FLAT, total=width)
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row)
    is_mean = any(len({run["seed"] for run in row["levels"]["runs"]}) > 1 for row in rows)
    add_legend(figure, panels, "mean over seeds ± standard error" if is_mean else None)
    return figure


def _draw_row(axes: Any, row: Row) -> None:
    found, names = row["levels"], _names(row)
    styles = line_styles([row])
    for name, offset in zip(names, _offsets(len(names)), strict=True):
        means, errors = _means(found["runs"], name)
        axes.errorbar(
            np.arange(len(means)) + offset, means, yerr=errors, marker="o", linewidth=1,
            markersize=4, capsize=2, **styles[name],
        )  # fmt: skip
    counts = found["num_clusters"]
    axes.set_xticks(range(len(counts)), [*map(str, counts[:-1]), f"{counts[-1]} classes"])
    source = f"{styles[found['method']]['label']}, seed {found['seed']}"
    add_x_label(axes, f"clusters in the hierarchy of {source}")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, row["label"])


def _offsets(count: int) -> Array:
    """Return how far to the side each method's points lie."""
    return APART * (np.arange(count) - (count - 1) / 2)


def _means(runs: Sequence[dict[str, Any]], name: str) -> tuple[list[float], list[float]]:
    """Return mean and error of each level, in percent."""
    own = [run["accuracy"] for run in runs if run["method"] == name]
    found = [mean_and_error(values) for values in 100 * np.transpose(own)]
    return [mean for mean, _ in found], [error for _, error in found]


def _names(row: Row) -> list[str]:
    """Return the methods that have runs."""
    there = {run["method"] for run in row["levels"]["runs"]}
    return [name for name in line_styles([row]) if name in there]
