"""Accuracy after every epoch, with the epochs at which the level changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._colours import GREY
from ..._marks import Mark, level_marks, mark_label
from ...training.result import BASELINE, RunResult
from ...training.views import learning_curve
from .style import FLAT, add_legend, add_title, line_styles, new_panels

Row = dict[str, Any]
KINDS = {"test_accuracy": "test", "val_accuracy": "validation"}
DECIMALS = 5  # as many as 100,000 test images can have
HEADROOM = 0.18  # for the labels of levels, as a share of the panel's height
WIDTH_OF_LABEL = 0.035  # as a share of the panel's width


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return accuracy and level of every epoch, for the runs that noted an accuracy.

    It is ``test_accuracy`` where it was noted, else ``val_accuracy``; None for epochs without.
    """
    found = map(_curve, runs)
    return {"curves": [curve for curve in found if set(_accuracy(curve)) - {None}]}


def _curve(run: RunResult) -> dict[str, Any]:
    found = learning_curve(run)
    return {
        "method": found.method,
        "seed": found.seed,
        "test_accuracy" if found.is_test else "val_accuracy": [
            None if math.isnan(value) else round(value / 100, DECIMALS) for value in found.accuracy
        ],
        "level": found.level,
    }


def _kind(curve: dict[str, Any]) -> str:
    return next(key for key in KINDS if key in curve)


def _accuracy(curve: dict[str, Any]) -> list[float | None]:
    found: list[float | None] = curve[_kind(curve)]
    return found


def shows(row: Row) -> bool:
    """Whether a setting has curves."""
    return bool(row.get("curves"))


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each setting, with a line for each method and thin ones for seeds."""
    rows = list(filter(shows, content["settings"]))
    height = 4.0 if width is None else FLAT
    figure, panels = new_panels(len(rows), 6.5, height, columns=2, total=width)
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row)
    is_mean = any(len({curve["seed"] for curve in row["curves"]}) > 1 for row in rows)
    note = "mean over seeds, as long as all train; thin lines: each seed"
    add_legend(figure, panels, note if is_mean else None)
    return figure


def _draw_row(axes: Any, row: Row) -> None:
    kinds = [KINDS[kind] for kind in KINDS if kind in map(_kind, row["curves"])]
    for name, style in line_styles([row]).items():
        for kind in kinds:
            curves = [
                curve
                for curve in row["curves"]
                if curve["method"] == name and KINDS[_kind(curve)] == kind
            ]
            label = style["label"] if len(kinds) == 1 else f"{style['label']}, {kind}"
            _draw_method(axes, curves, style | {"label": label})
    _mark_levels(axes, row["curves"])
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"{' or '.join(kinds)} accuracy, %")
    add_title(axes, row["label"])


def _draw_method(axes: Any, curves: list[dict[str, Any]], style: dict[str, str]) -> None:
    """Draw a thin line for each seed, and their mean for each epoch that all have.

    Later ones would jump where a seed ends.
    """
    if not curves:
        return
    found = [100 * np.array(_accuracy(curve), dtype=float) for curve in curves]
    for accuracies in found:
        _draw_line(axes, accuracies, linewidth=0.7, alpha=0.5, **style | {"label": None})
    shared = min(map(len, found))
    mean = np.mean([accuracies[:shared] for accuracies in found], axis=0)
    _draw_line(axes, mean, linewidth=2, **style)


def _draw_line(axes: Any, accuracies: Any, **style: Any) -> None:
    is_point = np.count_nonzero(~np.isnan(accuracies)) == 1  # of which no line can be drawn
    marker = "o" if is_point else None
    axes.plot(range(1, len(accuracies) + 1), accuracies, marker=marker, **style)


def _mark_levels(axes: Any, curves: list[dict[str, Any]]) -> None:
    """Mark where the first curriculum with several levels changes them."""
    changing = (c for c in curves if c["method"] != BASELINE and len(set(c["level"])) > 1)
    levels: list[int] = next((curve["level"] for curve in changing), [])
    if not levels:
        return
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + HEADROOM * (high - low))
    longest = max(len(curve["level"]) for curve in curves)
    for group in level_marks(levels, WIDTH_OF_LABEL * longest):
        for epoch, _ in group:
            axes.axvline(epoch, color=GREY, linestyle="--", linewidth=0.8)
        _label(axes, group)


def _label(axes: Any, group: list[Mark]) -> None:
    """Write beside the last line of a group which levels begin there."""
    axes.annotate(
        mark_label(group), (group[-1][0], 1.0), (2, 0), color=GREY,
        xycoords=axes.get_xaxis_transform(), textcoords="offset points",
        rotation=90, ha="left", va="top", fontsize="small",
    )  # fmt: skip
