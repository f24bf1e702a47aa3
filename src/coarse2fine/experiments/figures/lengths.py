"""Test accuracy against the curriculum's length T."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._colours import COLOURS, GREY
from ...training.result import BASELINE, RunResult
from ..content import accuracies
from .style import add_legend, add_title, mean_and_error, new_panels

Row = dict[str, Any]


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:  # noqa: ARG001
    """Return nothing: the results are enough."""
    return {}


def shows(row: Row) -> bool:
    """Whether a setting has a T."""
    return any(_points(row))


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return a panel for each setting: a point for each T, and the baseline as a line."""
    rows = list(filter(shows, content["settings"]))
    figure, panels = new_panels(len(rows), total=width)
    for row, axes in zip(rows, panels, strict=True):
        _draw_row(axes, row)
    add_legend(figure, panels, "mean over seeds ± standard error")
    return figure


def _draw_row(axes: Any, row: Row) -> None:
    plain = accuracies(row, BASELINE)
    if plain:
        mean, error = mean_and_error(plain.values())
        axes.axhline(mean, color=GREY, label=BASELINE)
        axes.axhspan(mean - error, mean + error, color=GREY, alpha=0.2, linewidth=0)
    given, by_rule = _points(row)
    if given:
        style = {"fmt": "o-", "linewidth": 1, "elinewidth": 1.5, "capsize": 3}
        _draw_points(axes, given, color=COLOURS[0], label="T given", **style)
        axes.set_xticks([length for length, _, _ in given])
    if by_rule:
        _draw_points(axes, by_rule, color=COLOURS[1], label="T by rule", fmt="D", capsize=3)
    axes.set_xlabel("length of the curriculum T, epochs")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, row["label"])


def _points(row: Row) -> tuple[list[Any], list[Any]]:
    """Return T, mean and error of the variants whose T is given, and of those by rule."""
    given, by_rule = [], []
    for variant in row["variants"]:
        name = variant["name"]
        lengths = [run["curriculum_epochs"] for run in row["runs"] if run["method"] == name]
        if not lengths or None in lengths:
            continue
        asked = {**row["config"], **variant["settings"]}["curriculum_epochs"]
        point = mean_and_error(accuracies(row, name).values())
        if isinstance(asked, int):
            given.append((asked, *point))
        else:  # each seed has its own
            by_rule.append((sum(lengths) / len(lengths), *point))
    return sorted(given), sorted(by_rule)


def _draw_points(axes: Any, points: list[Any], **style: Any) -> None:
    lengths, means, errors = zip(*points, strict=True)
    axes.errorbar(lengths, means, yerr=errors, **style)
