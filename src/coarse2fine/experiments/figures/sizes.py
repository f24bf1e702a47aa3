"""Test accuracy against the number of training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._files import parse_json
from ...training.result import RunResult
from ...training.run import CONFIG
from ..content import accuracies
from .style import add_legend, add_title, labels_and_colours, mean_and_error, new_panels

Row = dict[str, Any]
Point = tuple[float, float, float]


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return how many images there were to train and validate on.

    Settings that train on all images do not say it.
    """
    if not runs:
        return {}
    train, val, _ = parse_json(runs[0].path / CONFIG)["data"]["samples"]
    return {"samples": train + val}


def shows(row: Row) -> bool:
    """Whether a setting has runs."""
    return bool(row["runs"])


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each data set and model, with a line for each method."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in filter(shows, content["settings"]):
        groups.setdefault((row["config"]["data"], row["config"]["model"]), []).append(row)
    figure, panels = new_panels(len(groups), total=width)
    for rows, axes in zip(groups.values(), panels, strict=True):
        _draw_group(axes, rows)
    add_legend(figure, panels, "mean over seeds ± standard error")
    return figure


def _draw_group(axes: Any, rows: list[Row]) -> None:
    is_share = not any(isinstance(row["config"].get("train_size"), int) for row in rows)
    places = [_place(row, is_share) for row in rows]
    for name, (label, colour) in labels_and_colours(rows).items():
        found = [
            (place, *mean_and_error(accuracies(row, name).values()))
            for place, row in zip(places, rows, strict=True)
            if accuracies(row, name)
        ]
        if found:
            _draw_line(axes, sorted(found), label, colour)
    axes.set_xscale("log")
    labels = [f"{100 * place:g}%" if is_share else f"{place:,}" for place in places]
    axes.set_xticks(places, labels)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("share of the training images" if is_share else "training images")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, _common(rows))


def _place(row: Row, is_share: bool) -> float:
    """Return where a setting lies on the axis; without a size it takes all images."""
    size: int | float | None = row["config"].get("train_size")
    if is_share:
        return 1.0 if size is None else size
    return size if isinstance(size, int) else int(row["samples"])


def _draw_line(axes: Any, points: list[Point], label: str, colour: str) -> None:
    places, means, errors = zip(*points, strict=True)
    axes.plot(places, means, "o-", color=colour, label=label, markersize=4)
    if len(points) == 1:  # where a band has no width
        axes.errorbar(places, means, yerr=errors, color=colour, capsize=3)
    else:
        low, high = np.subtract(means, errors), np.add(means, errors)
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)


def _common(rows: list[Row]) -> str:
    """Return what the labels begin with alike, else data and model."""
    parts = [row["label"].split(", ") for row in rows]
    same = 0
    while all(len(part) > same and part[same] == parts[0][same] for part in parts):
        same += 1
    config = rows[0]["config"]
    return ", ".join(parts[0][:same]) or f"{config['data']}, {config['model']}"
