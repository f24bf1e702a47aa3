"""Test accuracy at every level of a hierarchy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._scores import ratio
from .._util.arrays import Array
from ..runs.result import RunResult
from .style import FLAT, Panel, add_legend, add_title, add_x_label, draw_panels, line_styles
from .theme import graph_objects, looks_of, new_figure, shown
from .values import Estimate

APART = 0.06  # how far apart the points of two methods are, as a share of a level


# --------------------------------------------------------------------------------- values


@dataclass(frozen=True)
class RunLevels:
    """How good a run is at every level.

    Args:
        method: ``"baseline"``, or the name of a method.
        seed: Of the run.
        accuracy: On the test samples at each level, coarsest first, as a share.
    """

    method: str
    seed: int
    accuracy: list[float]


@dataclass(frozen=True)
class Levels:
    """How good runs are at every level of one hierarchy, so that the levels are the same ones.

    Args:
        method: Whose hierarchy it is.
        seed: Whose hierarchy it is.
        num_clusters: Of each level, coarsest first; the last is the classes.
        runs: All that are compared.
    """

    method: str
    seed: int
    num_clusters: list[int]
    runs: list[RunLevels]

    def estimates(self) -> dict[str, list[Estimate]]:
        """Return the mean of each method at each level, in percent."""
        found: dict[str, list[list[float]]] = {}
        for run in self.runs:
            found.setdefault(run.method, []).append(run.accuracy)
        return {
            name: [Estimate.of(values) for values in 100 * np.transpose(own)]
            for name, own in found.items()
        }


def values_of(runs: Sequence[RunResult]) -> Levels | None:
    """Return the accuracies at the levels of the first hierarchy; None where there is none."""
    first = next((run for run in runs if run.num_clusters), None)
    return None if first is None else levels_of(runs, first)


def levels_of(runs: Sequence[RunResult], guide: RunResult) -> Levels:
    """Return the test accuracies of runs at the levels of a given run's hierarchy."""
    hierarchy = guide.hierarchy()
    rows = []
    for run in runs:
        accuracy = [ratio(*pair) for pair in zip(*run.level_hits(hierarchy), strict=True)]
        rows.append(RunLevels(run.method, run.seed, accuracy))
    return Levels(guide.method, guide.seed, list(hierarchy.num_clusters), rows)


# ------------------------------------------------------------------------------ for pages


def plot(num_clusters: Sequence[int], means: Mapping[str, Sequence[float]]) -> Any:
    """Return a plotly figure: a group of bars for each level, in which each method has one.

    Args:
        num_clusters: Of each level, coarsest first; the last is the classes.
        means: For each method the accuracy at each level, in percent.

    Examples:
        >>> figure = plot([4, 100], {"baseline": [70.0, 30.0], "continuous": [72.0, 33.0]})
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
    for method, look in looks_of(means).items():
        bars = {"x": places, "y": list(means[method]), "name": shown(method)}
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


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[Levels]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a line for each method from coarse to fine."""
    height = 3.5 if width is None else FLAT
    figure = draw_panels(panels, _draw_panel, height=height, total=width)
    is_mean = any(len({run.seed for run in panel.values.runs}) > 1 for panel in panels)
    return add_legend(figure, "mean over seeds ± standard error" if is_mean else None)


def _draw_panel(axes: Any, panel: Panel[Levels]) -> None:
    values, styles = panel.values, line_styles(panel.labels)
    found = values.estimates()
    names = [name for name in styles if name in found]
    for name, offset in zip(names, _offsets(len(names)), strict=True):
        means, errors = zip(*found[name], strict=True)
        axes.errorbar(
            np.arange(len(means)) + offset, means, yerr=errors, marker="o", linewidth=1,
            markersize=4, capsize=2, **styles[name],
        )  # fmt: skip
    *coarse, classes = values.num_clusters
    axes.set_xticks(range(len(coarse) + 1), [*map(str, coarse), f"{classes} classes"])
    source = f"{styles[values.method]['label']}, seed {values.seed}"
    add_x_label(axes, f"clusters in the hierarchy of {source}")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, panel.title)


def _offsets(count: int) -> Array:
    """Return how far to the side each method's points lie."""
    return APART * (np.arange(count) - (count - 1) / 2)
