"""The gain of every class, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._colours import COLOURS, GREY
from ..._files import parse_json
from ...training.result import BASELINE, RunResult
from ...training.run import CONFIG
from ...training.views import confusions
from .letters import cut, inches, lettering
from .style import add_title, add_x_label, labels_and_colours, new_panels

Row = dict[str, Any]
MOST = 40  # classes; of more, as many of the best and the worst
NAMES = 7  # points
LONGEST_NAME = 1.5  # inches
LINE = 0.15  # inches of a class


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return the accuracy of each class by the baseline and the first method, in percent.

    It is that of the test samples over all seeds that both have; None without samples.
    """
    seeds = {run.seed for run in runs if run.method == BASELINE}
    others = [run for run in runs if run.method != BASELINE and run.seed in seeds]
    if not others:
        return {}
    first = min(others, key=lambda run: run.method != "continuous")
    names = _class_names(first)
    shared = {run.seed for run in others if run.method == first.method}
    found = {
        name: _accuracies([r for r in runs if r.method == name and r.seed in shared], len(names))
        for name in (BASELINE, first.method)
    }
    return {
        "classes": {
            "method": first.method,
            "class_names": names,
            "accuracies": found,
        }
    }


def _class_names(run: RunResult) -> list[str]:
    names: list[str] = parse_json(run.path / CONFIG)["data"]["class_names"]
    return names


def _accuracies(runs: Sequence[RunResult], count: int) -> list[float | None]:
    found = confusions(runs, count).accuracies
    return [None if np.isnan(value) else float(value) for value in found]


def shows(row: Row) -> bool:
    """Whether a setting has a method with a baseline of the same seed."""
    return "classes" in row


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each setting, with a bar for each class, the largest gain on top."""
    rows = list(filter(shows, content["settings"]))
    most = max((len(_bars(row["classes"])) for row in rows), default=0)
    figure, panels = new_panels(len(rows), height=0.9 + LINE * most, total=width)
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row)
    return figure


def _draw_row(axes: Any, row: Row) -> None:
    found = row["classes"]
    bars = _bars(found)
    names = [cut(name, LONGEST_NAME, NAMES) for name, _ in bars]
    values = [0.0 if gain is None else gain for _, gain in bars]
    colours = [COLOURS[0] if gain > 0 else COLOURS[1] for gain in values]
    axes.barh(range(len(bars)), values, color=colours, height=0.8)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(bars)), names, fontsize=NAMES, **lettering("".join(names)))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(bars) - 0.4, -0.6)
    beside = max(inches(name, NAMES) for name in names)
    add_x_label(axes, "gain in test accuracy, percentage points", beside)
    label = labels_and_colours([row])[found["method"]][0]
    add_title(axes, row["label"], f"{label} − {BASELINE}", beside)


def _bars(found: dict[str, Any]) -> list[tuple[str, float | None]]:
    """Return names and gains from the largest down, with a line for those that are left out."""
    after, before = (found["accuracies"][name] for name in (found["method"], BASELINE))
    gains = [
        (name, new - old)
        for name, new, old in zip(found["class_names"], after, before, strict=True)
        if new is not None and old is not None
    ]
    gains.sort(key=lambda pair: -pair[1])
    left_out = len(gains) - MOST
    if left_out <= 1:
        return list(gains)
    between = (f"… {left_out} classes between …", None)
    return [*gains[: MOST // 2], between, *gains[-MOST // 2 :]]
