"""How good the methods are at every level of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .style import graph_objects, looks_of, new_figure, shown


def levels(num_clusters: Sequence[int], rows: Mapping[str, Sequence[float]]) -> Any:
    """Return a group of bars for each level, in which each method has one.

    Args:
        num_clusters: Of each level, coarsest first; the last is the classes.
        rows: For each method the accuracy at each level, in percent.

    Examples:
        >>> figure = levels([4, 100], {"baseline": [70.0, 30.0], "continuous": [72.0, 33.0]})
        >>> figure.layout.xaxis.ticktext, figure.data[1].name, figure.data[1].y
        (('4 clusters', '100 classes'), 'continuous', (72.0, 33.0))
    """
    places = list(range(len(num_clusters)))
    ticks = {"tickvals": places, "ticktext": _names(num_clusters), "showgrid": False}
    figure = new_figure(
        height=420,
        barmode="group",
        bargap=0.25,
        xaxis={"title": {"text": "level, from coarse to fine"}, **ticks},
        yaxis={"title": {"text": "test accuracy, %"}, "rangemode": "tozero"},
        uniformtext={"minsize": 8, "mode": "hide"},
    )
    for method, look in looks_of(rows).items():
        bars = {"x": places, "y": list(rows[method]), "name": shown(method)}
        text = {"texttemplate": "%{y:.1f}", "textposition": "outside", "cliponaxis": False}
        marker = {"color": look.colour, "pattern": {"shape": look.pattern}}
        hover = {"hovertemplate": "%{x}: %{y:.2f} %", "marker": marker}
        figure.add_trace(graph_objects().Bar(**bars, **text, **hover))
    return figure


def _names(num_clusters: Sequence[int]) -> list[str]:
    *coarse, classes = map(str, num_clusters)
    if coarse:
        coarse[0] += " clusters"
    return [*coarse, f"{classes} classes"]
