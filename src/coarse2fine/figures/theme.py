"""The colours of all figures, and what all plotly figures have in common.

They have one look, for light and for dark pages.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

import numpy as np

from .._util.arrays import Array
from .._util.text import JOINERS, printable
from ..errors import require

# Two of Okabe and Ito's, which people who see colours differently tell apart, too. They mean
# this alone; colours.css has them for text, and no method is drawn in green or orange.
BETTER, WORSE = "#009e73", "#d55e00"
COLOURS = ("#0072b2", "#cc79a7", "#56b4e9", "#8467c4", "#8c8930", "#9e3d64")
MARKERS = "osD^vP*Xd"  # of points, matplotlib's
GREY = "#555555"  # of the baseline on paper, and of what is not data
# As far from white as from the black of a dark page: text, the baseline, what is not data.
INK = "#7a7a7a"
FAINT = "rgba(128,128,128,0.25)"
# Of the colours, at the foot of the figure, as beside it a phone would have no room for it.
BAR = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "len": 0.9}
MOST_LETTERS = 40


def new_figure(*traces: Any, **layout: Any) -> Any:
    """Return a plotly figure without a background, so that the page's own shows.

    All text takes its colour from ``layout.font.color``, which a page may set to its own.

    Args:
        traces: What it shows.
        layout: Of the figure, beside what all share.
    """
    figure = graph_objects().Figure(layout={"template": _template()})
    figure.add_traces(list(traces))
    return figure.update_layout(**layout)


def graph_objects() -> Any:
    """Return plotly's module of that name, or say how to install it."""
    return require("plotly.graph_objects", "report")


def shown(name: str, most: int = MOST_LETTERS) -> str:
    r"""Return a name as plotly shows it letter by letter, cut where it is too long.

    Plotly reads a little HTML in every text, and in notebooks formulas too, so that ``<``,
    ``>``, ``&`` and ``$`` are escaped; control characters, among them those that turn the
    direction of writing, are spelt out, and blanks are put in quotation marks.

    Args:
        name: Whatever somebody has called a class.
        most: How many letters it may have. Defaults to 40.

    Examples:
        >>> shown("<b>cat & dog</b>"), shown("a\nb"), shown("hippopotamus", 6), shown(" ")
        ('&lt;b&gt;cat &amp; dog&lt;/b&gt;', 'a\\nb', 'hippo…', '“ ”')
    """
    text = printable(name[: most + 1], keep=JOINERS)
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return escape(text, quote=False).replace("$", "&#36;") if text.strip() else f"“{text}”"


def scale_end(values: Array, share: float) -> float:
    """Return what few of the values are beyond, for a scale on which they can be told apart.

    Args:
        values: Nan counts for nothing.
        share: How many of them are within, of 1.

    Examples:
        >>> scale_end(np.array([1.0, -3.0, np.nan]), 1.0), scale_end(np.zeros(2), 0.5)
        (3.0, 1.0)
    """
    sizes = abs(values[~np.isnan(values)])
    return float(np.quantile(sizes, share)) or 1.0 if len(sizes) else 1.0


class Look(NamedTuple):
    """How a method is drawn: where colours repeat, lines are dashed and bars hatched."""

    colour: str
    dash: str = "solid"
    pattern: str = ""


ROUNDS = (("solid", ""), ("dot", "/"), ("dashdot", "x"))


def looks_of(methods: Iterable[str]) -> dict[str, Look]:
    """Return how each method is drawn; the baseline is grey.

    Examples:
        >>> looks_of(["baseline", "continuous"])["continuous"]
        Look(colour='#0072b2', dash='solid', pattern='')
        >>> looks_of(map(str, range(7)))["6"]
        Look(colour='#0072b2', dash='dot', pattern='/')
    """
    from ..runs.result import BASELINE  # which takes torch, and a hierarchy's figure does not

    methods = list(dict.fromkeys(methods))
    others = [method for method in methods if method != BASELINE]
    looks = {name: _look(place) for place, name in enumerate(others)}
    return {name: looks.get(name, Look(INK)) for name in methods}


def _look(place: int) -> Look:
    colour, again = COLOURS[place % len(COLOURS)], place // len(COLOURS)
    return Look(colour, *ROUNDS[again % len(ROUNDS)])


def _template() -> Any:
    axis = {
        "gridcolor": FAINT,
        "linecolor": FAINT,
        "zerolinecolor": FAINT,
        "automargin": True,
        "title": {"standoff": 8},
    }
    bar = {"outlinewidth": 0, "thickness": 14, "ticks": ""}
    layout = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": INK, "family": "system-ui, sans-serif", "size": 13},
        "colorway": list(COLOURS),
        "hoverlabel": {"bgcolor": "#222222", "font": {"color": "#ffffff"}, "align": "left"},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
        "margin": {"l": 50, "r": 20, "t": 40, "b": 40},
        "xaxis": axis,
        "yaxis": axis,
    }
    data = {"heatmap": [{"colorbar": bar}]}
    return graph_objects().layout.Template(layout=layout, data=data)
