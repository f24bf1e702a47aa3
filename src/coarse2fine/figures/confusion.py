"""How often classes are taken for each other, in the order of the hierarchy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .._util.arrays import Array, IntArray
from ..errors import require
from ..hierarchy import Hierarchy
from ..runs.result import BASELINE, RunResult
from .letters import cut, fitted, inches, lettering
from .style import MARGINS, Panel, add_title, new_figure, new_panels, points, room_of
from .theme import BETTER, WORSE, scale_end
from .values import Confusions, Layout, compared, preferred, with_baseline

MOST_CLASSES = 2000  # of more, a class is no point of a page
MOST_NAMED = 30
NAMES = 7  # points
LONGEST_NAME = 1.3  # inches
LINE = 0.1  # inches of a name
BELOW = 0.6  # inches for the scale
SIDE_BY_SIDE = 6.5  # inches that three panels need
WIDTHS = (1.4, 0.7)  # of the outlines, for the coarsest level and the next
QUANTILE = 0.998  # of the mistakes, as very few are far more frequent than all others


# --------------------------------------------------------------------------------- values


@dataclass(frozen=True, eq=False)
class ConfusionPair:
    """The confusions of the baseline and of a method, and the order to show the classes in.

    Args:
        method: That is compared with the baseline.
        class_names: None for numbers.
        order: The classes, so that every cluster is in one piece; see `nested_order`.
        edges: Where the clusters begin in it and the last ends, for each level above the
            classes, coarsest first.
        before: Of the baseline; None where there is none.
        after: Of the method.

    Raises:
        ValueError: They are of too many classes to look at, or not of the same.
    """

    method: str
    class_names: Sequence[str] | None
    order: IntArray
    edges: Sequence[Sequence[int]]
    before: Confusions | None
    after: Confusions

    def __post_init__(self) -> None:
        count = self.after.num_classes
        _check_size(count)
        sizes = {len(self.order), count, (self.before or self.after).num_classes}
        if len(sizes) > 1:
            raise ValueError(
                f"before, after and order must be of the same classes. Got {sorted(sizes)} of them."
            )


def _check_size(count: int) -> None:
    if count > MOST_CLASSES:
        raise ValueError(
            f"a confusion matrix of {count} classes cannot be looked at, {MOST_CLASSES} can: draw "
            f"levels or classes instead, or count the clusters of a coarser level."
        )


def values_of(runs: Sequence[RunResult]) -> ConfusionPair | None:
    """Return the confusions of the baseline and a curriculum: the continuous one, or the first.

    They are of the test samples over all seeds that both have, in the order of the first
    seed's hierarchy; None where there are none.
    """
    first = preferred(run for run in with_baseline(runs) if run.num_clusters)
    return None if first is None else confusions_of(runs, first.method, first.hierarchy())


def confusions_of(runs: Sequence[RunResult], method: str, hierarchy: Hierarchy) -> ConfusionPair:
    """Return the confusions of the baseline, where there is one, and of a given method.

    Args:
        runs: Of all methods.
        method: That is compared with the baseline.
        hierarchy: Which the classes are ordered by.
    """
    _check_size(hierarchy.num_classes)  # before anything is counted
    layout, counts = Layout(hierarchy), compared(runs, method, hierarchy.num_classes)
    edges = [level.edges for level in layout.levels]
    return ConfusionPair(method, hierarchy.class_names, layout.order, edges, *counts)


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[ConfusionPair]], width: float | None = None) -> Any:
    """Return a matplotlib figure: baseline, method and their difference for each panel.

    They are side by side, or one below the other in a narrow figure.
    """
    if not panels:
        return new_panels(0)[0]
    names = any(_names(panel.values) for panel in panels)
    columns = 3 if width is None or width >= SIDE_BY_SIDE else 1
    lines = 3 * len(panels) // columns
    if width is None:
        figure = new_figure(14.0 if names else 12.5, (6.0 if names else 5.0) * lines)
    else:
        figure = new_figure(width, (width / columns + BELOW) * lines)
    places = figure.subplots(lines, columns, squeeze=False, sharey="row")
    for panel, own in zip(panels, places.reshape(len(panels), 3), strict=True):
        _draw_panel(own, panel, _names(panel.values, width and width / columns))
        for axes in own[::columns]:
            axes.set_ylabel("true class")
    return figure


def _draw_panel(places: Any, panel: Panel[ConfusionPair], names: list[str]) -> None:
    values = panel.values
    if values.before is None:
        raise ValueError("the difference of confusions needs those of a baseline.")
    plain, taught = (ordered_rates(found, values.order) for found in (values.before, values.after))
    change = taught - plain
    top = scale_end(np.concatenate([_mistakes(plain), _mistakes(taught)]), QUANTILE)
    most = scale_end(_mistakes(change), QUANTILE)
    label = panel.label(values.method)
    beside = max((inches(name, NAMES) for name in names), default=0.0)
    for axes, what in zip(places, (BASELINE, label, f"{label} − {BASELINE}"), strict=True):
        _write_names(axes, names)
        add_title(axes, panel.title, what, beside)
    room = room_of(places[0]) - beside - MARGINS
    share = _Scale("Blues", 0.0, top, f"share of the true class, %; clipped at {top:.1f}")
    both = _Scale(_diverging(), -most, most, f"points for the worse; clipped at ±{most:.1f}")
    drawn = ((plain, share), (taught, share), (for_the_worse(change), both))
    for axes, (rates, scale) in zip(places, drawn, strict=True):
        _draw_matrix(axes, rates, values.edges, scale, room)


def ordered_rates(found: Confusions, order: IntArray) -> Array:
    """Return the percentages of each true class, 0 where it has no samples."""
    ordered = found.matrix[np.ix_(order, order)].astype(float)
    rates: Array = 100 * ordered / np.maximum(ordered.sum(axis=1, keepdims=True), 1)
    return rates


def for_the_worse(change: Array) -> Array:
    """Return changes so that more is worse: off the diagonal they are, as those are mistakes.

    Args:
        change: Of the percentages of each true class.

    Examples:
        >>> for_the_worse(np.array([[5.0, -5.0], [2.0, -2.0]])).tolist()
        [[-5.0, -5.0], [2.0, 2.0]]
    """
    turned: Array = np.where(np.eye(len(change), dtype=bool), -change, change)
    return turned


def _diverging() -> Any:
    colours = require("matplotlib.colors", "report")
    return colours.LinearSegmentedColormap.from_list("change", [BETTER, "#ffffff", WORSE])


def _mistakes(rates: Array) -> Array:
    mistakes: Array = rates[~np.eye(len(rates), dtype=bool)]
    return mistakes


def _names(values: ConfusionPair, width: float | None = None) -> list[str]:
    """Return the names in order, none where they are too many to read.

    Args:
        values: What is drawn.
        width: Of a panel in inches. Defaults to None: of enough.
    """
    names, most = values.class_names, MOST_NAMED
    if width is not None:
        most = min(most, int((width - LONGEST_NAME - MARGINS) / LINE))
    if len(values.order) > most or names is None:
        return []
    return [cut(names[index], LONGEST_NAME, NAMES) for index in values.order]


class _Scale(NamedTuple):
    """The colours of a matrix, from the lowest to the highest, and what they mean."""

    colours: Any
    low: float
    high: float
    text: str


def _draw_matrix(
    axes: Any, rates: Array, edges: Sequence[Sequence[int]], scale: _Scale, room: float
) -> None:
    colours, low, high, text = scale
    image = axes.imshow(rates, interpolation="nearest", cmap=colours, vmin=low, vmax=high)
    label, extend = fitted(text, room, points("medium")), "both" if low else "max"
    axes.figure.colorbar(
        image, ax=axes, location="bottom", label=label, extend=extend, shrink=0.8, aspect=30
    )
    for level, width in zip(edges, WIDTHS, strict=False):
        _outline(axes, level, width)
    axes.set_xlabel("predicted class")


def _write_names(axes: Any, names: list[str]) -> None:
    ticks = range(len(names))
    style = {"fontsize": NAMES, **lettering("".join(names))}
    axes.set_xticks(ticks, names, rotation=90, **style)
    axes.set_yticks(ticks, names, **style)


def _outline(axes: Any, level: Sequence[int], width: float) -> None:
    """Draw the clusters of a level along the diagonal."""
    rectangle = require("matplotlib.patches", "report").Rectangle
    for start, end in pairwise(level):
        corner, side = (start - 0.5, start - 0.5), end - start
        axes.add_patch(rectangle(corner, side, side, fill=False, linewidth=width))
