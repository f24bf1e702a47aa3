"""How much better each class is predicted, sorted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._arrays import Array
from .style import BETTER, INK, WORSE, graph_objects, new_figure, shown

MOST_NAMED, MOST_BARS = 40, 300
TITLE = {"text": "gain, points"}


def class_gains(names: Sequence[str] | None, gains: Any) -> Any:
    """Return a bar for each class, the largest gain first.

    Up to 40 classes have their names beside the bars, more have them in the hover labels;
    more than 300 are drawn as one area.

    Args:
        names: Of the classes; None for numbers.
        gains: For each class, in percentage points; classes of nan are left out.

    Examples:
        >>> figure = class_gains(["cat", "dog", "car"], [-2.0, 5.0, float("nan")])
        >>> figure.data[0].customdata, figure.data[0].x
        (('dog', 'cat'), (5.0, -2.0))
    """
    values = np.asarray(gains, dtype=float)
    order = np.argsort(-values, kind="stable")[: int(np.count_nonzero(~np.isnan(values)))]
    labels = [f"class {at}" if names is None else shown(names[at]) for at in order.tolist()]
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
    draw = _bars if len(labels) <= MOST_BARS else _area
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
        figure.add_trace(draw(colour, name=name, hovertemplate=_hover("y"), **values))
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
