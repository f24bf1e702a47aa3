"""Our gains against the paper's: a point a row, and the line on which both are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..runs.statistics import Paired
from .style import Panel, add_legend, add_title, add_x_label, draw_panels
from .theme import COLOURS, GREY

MARKERS = "osD^vP*X"


@dataclass(frozen=True)
class Pair:
    """A gain here and in the paper, in percentage points.

    Args:
        data: The data set.
        method: As tables call it.
        here: Over the seeds.
        paper: The paper's own, and its standard error.
    """

    data: str
    method: str
    here: Paired
    paper: tuple[float, float]


def draw(panels: Sequence[Panel[Sequence[Pair]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a marker for each data set, a colour for each method."""
    filled = [panel for panel in panels if panel.values]
    return add_legend(draw_panels(filled, _draw_panel, width=6.0, height=5.0, total=width))


def _draw_panel(axes: Any, panel: Panel[Sequence[Pair]]) -> None:
    axes.axline((0, 0), slope=1, color=GREY, linewidth=0.8, label="the same gain")
    for at in (axes.axhline, axes.axvline):
        at(0, color=GREY, linewidth=0.5, linestyle="dotted")
    markers = _numbered([pair.data for pair in panel.values])
    colours = _numbered([pair.method for pair in panel.values])
    for pair in panel.values:
        axes.errorbar(
            pair.paper[0], pair.here.mean, xerr=pair.paper[1], yerr=pair.here.error,
            fmt=MARKERS[markers[pair.data] % len(MARKERS)], markersize=6, linewidth=1,
            color=COLOURS[colours[pair.method] % len(COLOURS)],
            label=f"{pair.data}, {pair.method}",
        )  # fmt: skip
    add_x_label(axes, "the paper's gain, percentage points, with its standard error")
    axes.set_ylabel("gain here, with its standard error")
    add_title(axes, panel.title)


def _numbered(names: Sequence[str]) -> Mapping[str, int]:
    """Return a number for each name, in the order in which they first appear."""
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
