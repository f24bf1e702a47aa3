"""The gain of every class, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.arrays import Array
from ..runs.directory import Run
from ..runs.result import BASELINE, RunResult
from .letters import cut, inches, lettering
from .style import Panel, add_title, add_x_label, draw_panels
from .theme import BETTER, GREY, INK, WORSE, graph_objects, new_figure, shown
from .values import compared, preferred, with_baseline

MOST_NAMED, MOST_BARS = 40, 300  # classes, on a page
TITLE = {"text": "gain, points"}
MOST = 40  # classes, on paper; of more, as many of the best and the worst
NAMES = 7  # points
LONGEST_NAME = 1.5  # inches
LINE = 0.15  # inches of a class


# --------------------------------------------------------------------------------- values


@dataclass(frozen=True, eq=False)
class ClassAccuracies:
    """How good the baseline and a method are at each class.

    Args:
        method: That is compared with the baseline.
        class_names: None for numbers.
        before: The baseline's accuracies in percent, nan for a class without samples.
        after: The method's.
    """

    method: str
    class_names: Sequence[str] | None
    before: Array
    after: Array

    @property
    def gains(self) -> Array:
        """In percentage points."""
        gains: Array = self.after - self.before
        return gains


def values_of(runs: Sequence[RunResult]) -> ClassAccuracies | None:
    """Return the accuracies by the baseline and a method: the continuous one, or the first.

    They are those of the test samples over all seeds that both have; None where there are none.
    """
    first = preferred(with_baseline(runs))
    if first is None:
        return None
    names = Run(first.path).config.data.class_names
    return accuracies_of(runs, first.method, len(names), names)


def accuracies_of(
    runs: Sequence[RunResult], method: str, num_classes: int, class_names: Sequence[str] | None
) -> ClassAccuracies | None:
    """Return the accuracies by the baseline and a given method; None without a shared seed.

    Args:
        runs: Of all methods.
        method: That is compared with the baseline.
        num_classes: K.
        class_names: None for numbers.
    """
    before, after = compared(runs, method, num_classes)
    if before is None:
        return None
    return ClassAccuracies(method, class_names, before.accuracies, after.accuracies)


def ranking(gains: Array) -> list[int]:
    """Return the classes from the largest gain down, without those of nan.

    Examples:
        >>> ranking(np.array([-2.0, 5.0, np.nan]))
        [1, 0]
    """
    known = int(np.count_nonzero(~np.isnan(gains)))
    order: list[int] = np.argsort(-gains, kind="stable")[:known].tolist()
    return order


# ------------------------------------------------------------------------------ for pages


def plot(names: Sequence[str] | None, gains: Any) -> Any:
    """Return a plotly figure: a bar for each class, the largest gain first.

    Up to 40 classes have their names beside the bars, more have them in the hover labels;
    more than 300 are drawn as one area.

    Args:
        names: Of the classes; None for numbers.
        gains: For each class, in percentage points; classes of nan are left out.

    Examples:
        >>> figure = plot(["cat", "dog", "car"], [-2.0, 5.0, float("nan")])
        >>> figure.data[0].customdata, figure.data[0].x
        (('dog', 'cat'), (5.0, -2.0))
    """
    values = np.asarray(gains, dtype=float)
    order = ranking(values)
    labels = [f"class {at}" if names is None else shown(names[at]) for at in order]
    if len(order) <= MOST_NAMED:
        return _named(labels, values[order])
    return _numbered(labels, values[order])


def _named(labels: list[str], gains: Array) -> Any:
    """Return horizontal bars, with the names to their left."""
    places = list(range(len(labels)))
    bars = graph_objects().Bar(
        x=gains.tolist(), y=places, customdata=labels, hovertemplate=_hover("x"),
        marker={"color": _colours(gains)}, orientation="h",
    )  # fmt: skip
    ticks = {
        "tickvals": places,
        "ticktext": labels,
        "showgrid": False,
        "range": [len(labels) - 0.5, -0.5],
    }
    line = {"zeroline": True, "zerolinecolor": INK}
    return new_figure(
        bars, height=110 + 20 * len(labels), bargap=0.2, xaxis={"title": TITLE, **line}, yaxis=ticks
    )


def _numbered(labels: list[str], gains: Array) -> Any:
    """Return upright bars side by side, or one area of each sign where they are too many."""
    make = _bars if len(labels) <= MOST_BARS else _area
    places = np.arange(1, len(labels) + 1)
    parts = [(gains >= 0, BETTER, "better"), (gains < 0, WORSE, "worse")]
    figure = new_figure(
        height=420,
        bargap=0,
        showlegend=False,
        hovermode="x",
        xaxis={"title": {"text": f"{len(labels)} classes, by gain"}, "showgrid": False},
        yaxis={"title": TITLE, "zerolinecolor": INK},
    )
    for part, colour, name in parts:
        own = [label for label, is_in in zip(labels, part.tolist(), strict=True) if is_in]
        values = {"x": places[part].tolist(), "y": gains[part].tolist(), "customdata": own}
        figure.add_trace(make(colour, name=name, hovertemplate=_hover("y"), **values))
    return figure


def _bars(colour: str, **values: Any) -> Any:
    return graph_objects().Bar(marker={"color": colour, "line": {"width": 0}}, **values)


def _area(colour: str, **values: Any) -> Any:
    line = {"shape": "hvh", "color": colour, "width": 1}
    return graph_objects().Scatter(mode="lines", fill="tozeroy", line=line, **values)


def _hover(axis: str) -> str:
    return f"%{{customdata}}<br>%{{{axis}:+.1f}} points<extra></extra>"


def _colours(gains: Array) -> list[str]:
    return [BETTER if gain >= 0 else WORSE for gain in gains.tolist()]


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[ClassAccuracies]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a bar for each class, the largest gain on top."""
    most = max((len(_rows(panel.values)) for panel in panels), default=0)
    return draw_panels(panels, _draw_panel, height=0.9 + LINE * most, total=width)


def _draw_panel(axes: Any, panel: Panel[ClassAccuracies]) -> None:
    rows = _rows(panel.values)
    names = [cut(name, LONGEST_NAME, NAMES) for name, _ in rows]
    gains = [gain for _, gain in rows]
    colours = [BETTER if gain > 0 else WORSE for gain in gains]
    axes.barh(range(len(rows)), gains, color=colours, height=0.8)
    axes.axvline(0, color=GREY, linewidth=0.8)
    axes.set_yticks(range(len(rows)), names, fontsize=NAMES, **lettering("".join(names)))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    beside = max(inches(name, NAMES) for name in names)
    add_x_label(axes, "gain in test accuracy, percentage points", beside)
    label = panel.label(panel.values.method)
    add_title(axes, panel.title, f"{label} − {BASELINE}", beside)


def _rows(values: ClassAccuracies) -> list[tuple[str, float]]:
    """Return names and gains from the largest down, with a line for those that are left out."""
    gains, names = values.gains, values.class_names
    rows = [
        (f"class {at}" if names is None else names[at], float(gains[at])) for at in ranking(gains)
    ]
    left_out = len(rows) - MOST
    if left_out <= 1:
        return rows
    between = (f"… {left_out} classes between …", 0.0)
    return [*rows[: MOST // 2], between, *rows[-MOST // 2 :]]
