"""How often classes are taken for each other, as a plotly figure to zoom into."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.arrays import Array, IntArray
from ..runs.result import BASELINE
from .confusion import ConfusionPair, for_the_worse, ordered_rates
from .theme import BAR, BETTER, INK, WORSE, graph_objects, new_figure, scale_end, shown
from .values import Confusions

MOST_NAMED = 40
MOST_SHARP = 300  # beyond, a class is less than two pixels, and plotly leaves some out
QUANTILE = 0.98  # of the mistakes, as very few are far more frequent than all others
WIDTHS = (2.0, 1.0)  # of the outlines, for the coarsest level and the next
# What is rare fades into the page, be it light or dark.
SHARES = [[0.0, "rgba(0,114,178,0.08)"], [1.0, "rgba(0,114,178,1)"]]
CHANGES = [
    [0.0, BETTER],
    [0.5, "rgba(0,158,115,0)"],
    [0.5, "rgba(213,94,0,0)"],
    [1.0, WORSE],
]


def plot(values: ConfusionPair) -> Any:
    """Return how often each class was taken for each, in percent of the true class.

    Only pairs that occur are stored, so that a thousand classes are still quick. Buttons choose
    between baseline, method and their difference, where there is a baseline. Colours are clipped
    where only the most frequent mistakes are beyond. The two coarsest levels are outlined.
    """
    before, after, order = values.before, values.after, values.order
    rates = [_rates(given, order) for given in (before, after) if given is not None]
    top = scale_end(np.concatenate([_mistakes(own) for own in rates]), QUANTILE)
    traces = [_shares(own, top) for own in rates]
    if before is not None:
        traces.append(_difference(*rates))
    dots = [_dots(trace) for trace in traces if len(order) > MOST_SHARP]
    outlines = [_outline(*each) for each in zip(values.edges, WIDTHS, strict=False)]
    figure = new_figure(*traces, *dots, *outlines, height=680, showlegend=False, margin={"t": 56})
    ends = [-0.5, after.num_classes - 0.5]
    names = {"labelalias": _aliases(order, values.class_names)}
    axis = {"constrain": "domain", **names, **_ticks(len(order))}
    figure.update_xaxes(title="predicted class", range=ends, tickangle=90, **axis)
    figure.update_yaxes(title="true class", range=ends[::-1], scaleanchor="x", **axis)
    if before is not None:
        _add_buttons(figure, [BASELINE, shown(values.method), "difference"])
    return figure


def _rates(found: Confusions, order: IntArray) -> Array:
    """Return the percentages, with nan for a class and itself where it has no samples."""
    rates = ordered_rates(found, order)
    empty = np.flatnonzero(~rates.any(axis=1))
    rates[empty, empty] = np.nan
    return rates


def _mistakes(rates: Array) -> Array:
    mistakes: Array = rates[(rates != 0) & ~np.eye(len(rates), dtype=bool)]
    return mistakes


def _shares(rates: Array, top: float) -> Any:
    scale = {"colorscale": SHARES, "zmin": 0.0, "zmax": top}
    text = f"% of the true class, up to {top:.1f}"
    return _heatmap(rates, rates > 0, "%{z:.1f} %", text, **scale)


def _difference(before: Array, after: Array) -> Any:
    change, occurring = after - before, (before > 0) | (after > 0)
    most = scale_end(_mistakes(change), QUANTILE)
    scale = {"colorscale": CHANGES, "zmin": -most, "zmax": most}
    text = f"points for the worse, up to ±{most:.1f}"
    made = _heatmap(for_the_worse(change), occurring, "%{text} points", text, **scale)
    told = change[made.y, made.x].tolist()
    return made.update(text=[f"{points:+.1f}" for points in told])


def _heatmap(rates: Array, occurring: Array, told: str, text: str, **scale: Any) -> Any:
    """Return the cells that occur, and the diagonal, as plotly needs one in every place."""
    rows, columns = np.nonzero(occurring | np.eye(len(rates), dtype=bool))
    return graph_objects().Heatmap(
        x=columns.astype(np.int16),
        y=rows.astype(np.int16),
        z=rates[rows, columns].astype(np.float32),
        hovertemplate=f"true: %{{y}}<br>predicted: %{{x}}<br>{told}<extra></extra>",
        hoverongaps=False,
        colorbar={"title": {"text": text, "side": "bottom"}, **BAR},
        **scale,
    )


def _dots(heatmap: Any) -> Any:
    """Return the cells of a heatmap as dots that show from afar, and hide in them from near."""
    colour = {"color": heatmap.z, "cmin": heatmap.zmin, "cmax": heatmap.zmax}
    return graph_objects().Scattergl(
        x=heatmap.x,
        y=heatmap.y,
        mode="markers",
        marker={**colour, "colorscale": heatmap.colorscale, "size": 2, "symbol": "square"},
        hoverinfo="skip",
    )


def _aliases(order: Any, names: Sequence[str] | None) -> dict[str, str]:
    """Return what stands at each place of an axis, on it and in the hover labels."""
    classes = np.asarray(order).tolist()
    called = [str(at) if names is None else shown(names[at]) for at in classes]
    return {str(place): name for place, name in enumerate(called)}


def _ticks(count: int) -> dict[str, object]:
    """Return how the names are set: all where there is room, else as many as fit."""
    every = {"tick0": 0, "dtick": 1} if count <= MOST_NAMED else {}
    return {"showgrid": False, "zeroline": False, "tickfont": {"size": 11}, **every}


def _outline(level: Sequence[int], width: float) -> Any:
    """Return the clusters of a level along the diagonal, as one line with gaps."""
    corners = [(start - 0.5, end - 0.5) for start, end in pairwise(level)]
    return graph_objects().Scatter(
        x=[at for low, high in corners for at in (low, high, high, low, low, None)],
        y=[at for low, high in corners for at in (low, low, high, high, low, None)],
        mode="lines",
        line={"color": INK, "width": width},
        hoverinfo="skip",
    )


def _add_buttons(figure: Any, labels: list[str]) -> None:
    """Add a button for each matrix, which shows it, its dots and all outlines."""
    kinds = [trace.type for trace in figure.data]
    chosen = [
        [kind == "scatter" or at % len(labels) == place for at, kind in enumerate(kinds)]
        for place in range(len(labels))
    ]
    for trace, is_shown in zip(figure.data, chosen[1], strict=True):
        trace.visible = is_shown
    buttons = [
        {"label": label, "method": "restyle", "args": [{"visible": own}]}
        for label, own in zip(labels, chosen, strict=True)
    ]
    place = {"x": 0, "xanchor": "left", "y": 1.01, "yanchor": "bottom", "direction": "right"}
    # Plotly paints the chosen button nearly white, whatever the page is.
    look = {
        "bgcolor": "#dddddd",
        "bordercolor": "#999999",
        "font": {"color": "#222222", "size": 11},
    }
    figure.update_layout(
        updatemenus=[{"type": "buttons", "active": 1, "buttons": buttons, **place, **look}]
    )
