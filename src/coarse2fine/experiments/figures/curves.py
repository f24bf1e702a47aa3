"""Test accuracy after every epoch, with the epochs at which the level changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ...training.result import BASELINE, RunResult
from ...training.run import Run
from .style import GREY, add_legend, labels_and_colours, new_panels

Row = dict[str, Any]
Mark = tuple[float, int]
DECIMALS = 5  # as many as 100,000 test images can have
HEADROOM = 0.18  # for the labels of levels, as a share of the panel's height
WIDTH_OF_LABEL = 0.035  # as a share of the panel's width


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return test accuracy and level of every epoch, for the runs that noted them."""
    return {"curves": [curve for curve in map(_curve, runs) if curve["test_accuracy"]]}


def _curve(run: RunResult) -> dict[str, Any]:
    metrics = Run(run.path, is_writer=False).metrics()
    lines = [line for line in metrics if line.get("test_accuracy") is not None]
    return {
        "method": run.method,
        "seed": run.seed,
        "test_accuracy": [round(line["test_accuracy"], DECIMALS) for line in lines],
        "level": [line["level"] for line in lines],
    }


def draw(content: dict[str, Any]) -> Any:
    """Return a panel for each setting, with a line for each method and thin ones for seeds."""
    rows = [row for row in content["settings"] if row.get("curves")]
    figure, panels = new_panels(len(rows), 6.5, 4.0, columns=2)
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row)
    add_legend(figure, panels, "mean over seeds, as long as all train; thin lines: each seed")
    return figure


def _draw_row(axes: Any, row: Row) -> None:
    for name, (label, colour) in labels_and_colours([row]).items():
        curves = [curve for curve in row["curves"] if curve["method"] == name]
        for curve in curves:
            accuracies = 100 * np.array(curve["test_accuracy"])
            _draw_line(axes, accuracies, color=colour, linewidth=0.7, alpha=0.5)
        if curves:
            _draw_line(axes, _mean(curves), color=colour, linewidth=2, label=label)
    _mark_levels(axes, row["curves"])
    axes.set_xlabel("epoch")
    axes.set_ylabel("test accuracy, %")
    axes.set_title(row["label"], fontsize="medium")


def _draw_line(axes: Any, accuracies: Any, **style: Any) -> None:
    axes.plot(range(1, len(accuracies) + 1), accuracies, **style)


def _mean(curves: list[dict[str, Any]]) -> Any:
    """Return the mean of each epoch that all have: later ones would jump where a seed ends."""
    shared = min(len(curve["test_accuracy"]) for curve in curves)
    return 100 * np.mean([curve["test_accuracy"][:shared] for curve in curves], axis=0)


def _mark_levels(axes: Any, curves: list[dict[str, Any]]) -> None:
    """Mark where the first curriculum with several levels changes them."""
    changing = (c for c in curves if c["method"] != BASELINE and len(set(c["level"])) > 1)
    levels: list[int] = next((curve["level"] for curve in changing), [])
    if not levels:
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + HEADROOM * (high - low))
    longest = max(len(curve["level"]) for curve in curves)
    for group in _grouped(changes(levels), WIDTH_OF_LABEL * longest):
        for epoch, _ in group:
            axes.axvline(epoch, color=GREY, linestyle="--", linewidth=0.8)
        _label(axes, group)


def _label(axes: Any, group: list[Mark]) -> None:
    """Write beside the last line of a group which levels begin there."""
    first, last = group[0][1], group[-1][1]
    text = f"level {first}" if len(group) == 1 else f"levels {first}–{last}"
    axes.annotate(
        text, (group[-1][0], 1.0), (2, 0), xycoords=axes.get_xaxis_transform(), color=GREY,
        textcoords="offset points", rotation=90, ha="left", va="top", fontsize="small",
    )  # fmt: skip


def changes(levels: Sequence[int]) -> list[Mark]:
    """Return where between two epochs a new level begins, and which.

    Examples:
        >>> changes([0, 0, 1, 2, 2])
        [(2.5, 1), (3.5, 2)]
    """
    pairs = enumerate(pairwise(levels), 1)
    return [(epoch + 0.5, after) for epoch, (before, after) in pairs if after != before]


def _grouped(marks: list[Mark], width: float) -> list[list[Mark]]:
    """Return those together that are too close for a label each."""
    groups: list[list[Mark]] = []
    for mark in marks:
        if groups and mark[0] - groups[-1][-1][0] < width:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups
