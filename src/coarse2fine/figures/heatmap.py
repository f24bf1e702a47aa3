"""How often classes are taken for each other, as a plotly figure to zoom into."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.arrays import Array, IntArray
from ..runs.result import BASELINE
from .confusion import ConfusionPair
from .theme import INK, graph_objects, new_figure, shown
from .values import Confusions

MOST_NAMED = 40
MOST_SHARP = 300  # beyond, a class is less than two pixels, and plotly leaves some out
QUANTILE = 0.98  # of the mistakes, as very few are far more frequent than all others
WIDTHS = (2.0, 1.0)  # of the outlines, for the coarsest level and the next
# Of the colours, at the foot of the figure, as beside it a phone would have no room for it.
BAR = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "len": 0.9}
# What is rare fades into the page, be it light or dark.
SHARES = [[0.0, "rgba(0,114,178,0.08)"], [1.0, "rgba(0,114,178,1)"]]
CHANGES = [
    [0.0, "rgba(0,114,178,1)"],
    [0.5, "rgba(0,114,178,0)"],
    [0.5, "rgba(213,94,0,0)"],
    [1.0, "rgba(213,94,0,1)"],
]


def plot(values: ConfusionPair) -> Any:
    """Return how often each class was taken for each, in percent of the true class.

    Only pairs that occur are stored, so that a thousand classes are still quick. Buttons choose
    between baseline, method and their difference, where there is a baseline. Colours are clipped
    where only the most frequent mistakes are beyond. The two coarsest levels are outlined.
    """
    before, after, order = values.before, values.after, values.order
    cells = [_Cells.of(given, np.argsort(order)) for given in (before, after) if given is not None]
    top = _frequent(np.concatenate([own.mistakes for own in cells]))
    traces = [_shares(own, top) for own in cells]
    if before is not None:
        traces.append(_difference(*cells))
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


@dataclass(frozen=True)
class _Cells:
    """The pairs of classes that occur, and every class with itself.

    Args:
        rows: Places of the true classes.
        columns: Places of the predicted classes.
        rates: In percent of the true class; nan where it has no samples.
        count: How many classes there are.
    """

    rows: IntArray
    columns: IntArray
    rates: Array
    count: int

    @classmethod
    def of(cls, given: Confusions, places: IntArray) -> _Cells:
        """Return the rates, sorted by their place."""
        count, samples = given.num_classes, given.samples
        rates = 100 * given.counts / np.maximum(samples[given.rows], 1)
        own = np.where(samples > 0, 0.0, np.nan)  # a plotly heatmap needs every place
        keys = places[given.rows] * count + places[given.columns]
        diagonal = places * (count + 1)
        return cls.summed(np.concatenate([keys, diagonal]), np.concatenate([rates, own]), count)

    @classmethod
    def summed(cls, keys: IntArray, rates: Array, count: int) -> _Cells:
        """Return the sums of those of the same place, ``keys`` being row·K + column."""
        found, inverse = np.unique(keys, return_inverse=True)
        sums = np.bincount(inverse, weights=rates, minlength=len(found))
        return cls(found // count, found % count, sums, count)

    @property
    def keys(self) -> IntArray:
        """The places, row·K + column."""
        return self.rows * self.count + self.columns

    @property
    def mistakes(self) -> Array:
        """The rates off the diagonal."""
        rates: Array = self.rates[self.rows != self.columns]
        return rates


def _frequent(rates: Array) -> float:
    """Return what few of the rates are above, for a scale on which they can be told apart."""
    given = abs(rates[rates != 0])
    return float(np.quantile(given, QUANTILE)) if len(given) else 1.0


def _shares(cells: _Cells, top: float) -> Any:
    return _heatmap(
        cells, "%{z:.1f} %", f"% of the true class, up to {top:.1f}", SHARES, zmin=0.0, zmax=top
    )


def _difference(before: _Cells, after: _Cells) -> Any:
    keys = np.concatenate([after.keys, before.keys])
    rates = np.concatenate([after.rates, -before.rates])
    cells = _Cells.summed(keys, rates, after.count)
    most = _frequent(cells.mistakes)
    text = f"percentage points, up to ±{most:.1f}"
    return _heatmap(cells, "%{z:+.1f} points", text, CHANGES, zmin=-most, zmax=most)


def _heatmap(cells: _Cells, told: str, text: str, scale: list[Any], **limits: float) -> Any:
    return graph_objects().Heatmap(
        x=cells.columns.astype(np.int16),
        y=cells.rows.astype(np.int16),
        z=cells.rates.astype(np.float32),
        hovertemplate=f"true: %{{y}}<br>predicted: %{{x}}<br>{told}<extra></extra>",
        hoverongaps=False,
        colorscale=scale,
        colorbar={"title": {"text": text, "side": "bottom"}, **BAR},
        **limits,
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
