"""Accuracy after every epoch, with the epochs at which the level changed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from .._arrays import Array
from .style import INK, colours_of, graph_objects, new_figure, shown

WIDTH_OF_LABEL = 0.12  # as a share of the figure's width
Mark = tuple[float, int]


class CurveLike(Protocol):
    """How one run went on, epoch by epoch; see `coarse2fine.training.views.Curve`."""

    @property
    def method(self) -> str:
        """Of the run."""

    @property
    def seed(self) -> int:
        """Of the run."""

    @property
    def accuracy(self) -> Sequence[float]:
        """In percent, nan where an epoch has none."""

    @property
    def level(self) -> Sequence[int | None]:
        """In force in each epoch."""

    @property
    def is_test(self) -> bool:
        """Whether the accuracy is on the test samples, else on the validation samples."""


def curves(curves: Sequence[CurveLike]) -> Any:
    """Return a line for each method, the mean over seeds, and a thin one for each seed.

    A mean ends where the first of its seeds does, as it would jump there. Dashed lines mark
    where the first curriculum of several levels goes to the next.

    Args:
        curves: Of the runs, in the order of the legend.
    """
    figure = new_figure(
        height=420,
        hovermode="x unified",
        legend={"y": 1.07},
        margin={"t": 60},
        xaxis={"title": {"text": "epoch"}, "rangemode": "tozero", "showgrid": False},
        yaxis={"title": {"text": _title(curves)}, "rangemode": "tozero"},
    )
    for method, colour in colours_of(curve.method for curve in curves).items():
        own = [curve for curve in curves if curve.method == method]
        figure.add_traces([*_seeds(own, colour), _line(_mean(own), shown(method), colour)])
    _mark_levels(figure, curves)
    return figure


def _title(curves: Sequence[CurveLike]) -> str:
    parts = {curve.is_test: "test" if curve.is_test else "validation" for curve in curves}
    return f"{' or '.join(parts.values())} accuracy, %".strip()


def _seeds(curves: Sequence[CurveLike], colour: str) -> list[Any]:
    """Return the thin lines, which one alone does not need: it is the mean."""
    if len(curves) == 1:
        return []
    thin = {"line": {"width": 1, "color": colour}, "opacity": 0.5, "hoverinfo": "skip"}
    return [
        _line(curve.accuracy, f"{shown(curve.method)}, seed {curve.seed}", colour)
        .update(showlegend=False, hovertemplate=None, **thin)
        for curve in curves
    ]  # fmt: skip


def _mean(curves: Sequence[CurveLike]) -> Array:
    shared = min(len(curve.accuracy) for curve in curves)
    mean: Array = np.mean([curve.accuracy[:shared] for curve in curves], axis=0)
    return mean


def _line(accuracy: Sequence[float] | Array, name: str, colour: str) -> Any:
    return graph_objects().Scatter(
        x=list(range(1, len(accuracy) + 1)),
        y=list(accuracy),
        name=name,
        mode="lines" if len(accuracy) > 1 else "markers",
        line={"width": 3, "color": colour},
        hovertemplate="%{y:.2f} %",
    )


def _mark_levels(figure: Any, curves: Sequence[CurveLike]) -> None:
    changing = (curve for curve in curves if len(set(curve.level)) > 1)
    levels = next((curve.level for curve in changing), [])
    longest = max((len(curve.level) for curve in curves), default=0)
    marks = changes(levels)
    for epoch, _ in marks:
        figure.add_vline(epoch, line={"color": INK, "dash": "dash", "width": 1}, layer="below")
    for group in _grouped(marks, WIDTH_OF_LABEL * longest):
        first, last = group[0][1], group[-1][1]
        figure.add_annotation(
            x=group[0][0], y=1, yref="paper", yanchor="bottom", xanchor="left", showarrow=False,
            text=f"level {first}" if len(group) == 1 else f"levels {first}–{last}",
            font={"size": 11}, xshift=-4,
        )  # fmt: skip


def changes(levels: Sequence[int | None]) -> list[Mark]:
    """Return where between two epochs a new level begins, and which.

    Examples:
        >>> changes([0, 0, 1, 2, 2])
        [(2.5, 1), (3.5, 2)]
    """
    pairs = enumerate(pairwise(levels), 1)
    return [
        (epoch + 0.5, after)
        for epoch, (before, after) in pairs
        if after != before and after is not None
    ]


def _grouped(marks: list[Mark], width: float) -> list[list[Mark]]:
    """Return those together that are too close for a label each."""
    groups: list[list[Mark]] = []
    for mark in marks:
        if groups and mark[0] - groups[-1][0][0] < width:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups
