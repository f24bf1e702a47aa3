"""The gain of each method, with its 95% interval, and the paper's beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._colours import COLOURS
from ...training.result import RunResult
from ..content import gains
from ..statistics import paired
from .letters import cut, inches, lettering
from .style import add_legend, add_title, add_x_label, new_panels

MOST_LABEL = 1.6  # inches


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:  # noqa: ARG001
    """Return nothing: the results are enough."""
    return {}


def shows(row: dict[str, Any]) -> bool:
    """Whether a setting has a method with a baseline of the same seed."""
    return bool(_compared(row))


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each setting, with a point for each method that has runs."""
    rows = list(filter(shows, content["settings"]))
    most = max((len(_compared(row)) for row in rows), default=0)
    figure, panels = new_panels(len(rows), 5.0, 1.2 + 0.4 * most, total=width)
    here = "here" if any(row["paper"] for row in rows) else "mean over seeds"
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row, here)
    add_legend(figure, panels)
    return figure


def _compared(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the variants that can be compared with the baseline."""
    return [variant for variant in row["variants"] if gains(row, variant["name"])]


def _draw_row(axes: Any, row: dict[str, Any], here: str) -> None:
    variants = _compared(row)
    axes.axvline(0, color="grey", linewidth=0.8)
    for place, variant in enumerate(variants):
        found = paired(gains(row, variant["name"]))
        bounds = [[found.mean - found.low], [found.high - found.mean]]
        axes.errorbar(
            found.mean, place, xerr=bounds, fmt="o", color=COLOURS[0], capsize=3,
            label=f"{here}, 95% interval" if found.runs > 1 else "one seed",
        )  # fmt: skip
        if variant["name"] in row["paper"]:
            mean, error = row["paper"][variant["name"]]
            axes.errorbar(
                mean, place + 0.25, xerr=error, fmt="d", color=COLOURS[1], capsize=3,
                label="paper, standard error",
            )  # fmt: skip
    labels = [cut(variant["label"], MOST_LABEL) for variant in variants]
    axes.set_yticks(range(len(variants)), labels, **lettering("".join(labels)))
    axes.set_ylim(len(variants) - 0.4, -0.6)
    beside = max(map(inches, labels))
    add_x_label(axes, "gain in test accuracy, percentage points", beside)
    add_title(axes, row["label"], beside=beside)
