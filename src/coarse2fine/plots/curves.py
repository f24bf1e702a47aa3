"""Accuracy after every epoch, with the epochs at which the level changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .._arrays import Array
from .._marks import level_marks, mark_label
from .style import INK, Look, graph_objects, looks_of, new_figure, shown

WIDTH_OF_LABEL = 0.12  # as a share of the figure's width


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
    for method, look in looks_of(curve.method for curve in curves).items():
        own = [curve for curve in curves if curve.method == method]
        figure.add_traces([*_seeds(own, look), _line(_mean(own), shown(method), look)])
    _mark_levels(figure, curves)
    return figure


def _title(curves: Sequence[CurveLike]) -> str:
    parts = {curve.is_test: "test" if curve.is_test else "validation" for curve in curves}
    return f"{' or '.join(parts.values())} accuracy, %".strip()


def _seeds(curves: Sequence[CurveLike], look: Look) -> list[Any]:
    """Return the thin lines, which one alone does not need: it is the mean."""
    if len(curves) == 1:
        return []
    thin = {"line_width": 1, "opacity": 0.5, "hoverinfo": "skip"}
    return [
        _line(curve.accuracy, f"{shown(curve.method)}, seed {curve.seed}", look)
        .update(showlegend=False, hovertemplate=None, **thin)
        for curve in curves
    ]  # fmt: skip


def _mean(curves: Sequence[CurveLike]) -> Array:
    shared = min(len(curve.accuracy) for curve in curves)
    mean: Array = np.mean([curve.accuracy[:shared] for curve in curves], axis=0)
    return mean


def _line(accuracy: Sequence[float] | Array, name: str, look: Look) -> Any:
    is_point = np.count_nonzero(~np.isnan(accuracy)) == 1  # of which no line can be drawn
    return graph_objects().Scatter(
        x=list(range(1, len(accuracy) + 1)),
        y=list(accuracy),
        name=name,
        mode="markers" if is_point else "lines",
        line={"width": 3, "color": look.colour, "dash": look.dash},
        hovertemplate="%{y:.2f} %",
    )


def _mark_levels(figure: Any, curves: Sequence[CurveLike]) -> None:
    changing = (curve for curve in curves if len(set(curve.level)) > 1)
    levels = next((curve.level for curve in changing), [])
    longest = max((len(curve.level) for curve in curves), default=0)
    for group in level_marks(levels, WIDTH_OF_LABEL * longest):
        for epoch, _ in group:
            figure.add_vline(epoch, line={"color": INK, "dash": "dash", "width": 1}, layer="below")
        figure.add_annotation(
            x=group[0][0], y=1, yref="paper", yanchor="bottom", xanchor="left", showarrow=False,
            text=mark_label(group), font={"size": 11}, xshift=-4,
        )  # fmt: skip
