"""Accuracy after every epoch, with the epochs at which the level changed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.text import brief
from ..errors import RunError
from ..runs.directory import Metrics, Run
from ..runs.result import RunResult
from .style import FLAT, LineStyle, Panel, add_legend, add_title, draw_panels, line_styles
from .theme import GREY, INK, Look, graph_objects, looks_of, new_figure, shown

# What is noted of the classes, and of the clusters of the level in force.
TEST, VALIDATION = ("test_accuracy", "test_level_accuracy"), ("accuracy", "level_accuracy")
LABEL_ON_PAGE, LABEL_ON_PAPER = 0.12, 0.035  # widths, as shares of that of the panel
HEADROOM = 0.18  # for the labels of levels, as a share of the panel's height
Mark = tuple[float, int]  # between which epochs, and the level that begins there


# --------------------------------------------------------------------------------- values


@dataclass(frozen=True)
class Curve:
    """How one run went on, epoch by epoch.

    Args:
        method: ``"baseline"``, or the name of a method.
        seed: Of the run.
        accuracy: On the target classes after every epoch, in percent; nan where an epoch has
            none, as in the coarse stages of ``"staged"``.
        level: In force in that epoch; None where the method has no levels.
        is_test: Whether it is on the test samples, else on the validation samples.
        coarse: The accuracy on the clusters of the level in force, in percent, after the epochs
            that have none on the classes; nan in all others. Defaults to none: it was not noted.
    """

    method: str
    seed: int
    accuracy: list[float]
    level: list[int | None]
    is_test: bool
    coarse: list[float] = field(default_factory=list)

    @property
    def part(self) -> str:
        """Which samples the accuracy is of."""
        return "test" if self.is_test else "validation"


def values_of(runs: Iterable[RunResult]) -> list[Curve]:
    """Return the curves of the runs that noted an accuracy."""
    found = map(learning_curve, runs)
    return [curve for curve in found if not all(map(math.isnan, curve.accuracy))]


def learning_curve(run: RunResult) -> Curve:
    """Return how a run went on: by the test samples where it noted them after every epoch.

    Where it did not, the validation samples tell; where it had none, all are nan.

    Raises:
        RunError: Where its metrics are damaged.
    """
    try:
        return _curve(run, Run(run.path).metrics())
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise RunError(f"{Run(run.path).metrics_file} is damaged: {brief(repr(error))}.") from None


def _curve(run: RunResult, lines: list[Metrics]) -> Curve:
    is_test = any(TEST[0] in line for line in lines)
    fine, level = TEST if is_test else VALIDATION
    accuracy = [_percent(line.get(fine)) for line in lines]
    coarse = [_percent(line.get(level)) if line.get(fine) is None else math.nan for line in lines]
    levels = [line["level"] for line in lines]
    has_coarse = not all(map(math.isnan, coarse))
    return Curve(run.method, run.seed, accuracy, levels, is_test, coarse if has_coarse else [])


def _percent(share: Any) -> float:
    return math.nan if share is None else 100 * float(share)


def coarse_stages(curve: Curve) -> tuple[list[int], list[float]]:
    """Return the epochs and accuracies of coarse stages, with a gap of nan after each.

    Examples:
        >>> nan = math.nan
        >>> coarse = [50.0, 60.0, 30.0, nan]
        >>> curve = Curve("staged", 0, [nan, nan, nan, 9.0], [0, 0, 1, 2], True, coarse)
        >>> coarse_stages(curve)
        ([1, 2, 2, 3, 3], [50.0, 60.0, nan, 30.0, nan])
    """
    epochs: list[int] = []
    accuracies: list[float] = []
    for epoch, accuracy in enumerate(curve.coarse, 1):
        if math.isnan(accuracy):
            continue
        epochs.append(epoch)
        accuracies.append(accuracy)
        if epoch == len(curve.level) or curve.level[epoch] != curve.level[epoch - 1]:
            epochs.append(epoch)
            accuracies.append(math.nan)
    return epochs, accuracies


def mean_accuracy(curves: Sequence[Curve]) -> Array:
    """Return the mean over seeds for each epoch that all have; later ones would jump."""
    shared = min(len(curve.accuracy) for curve in curves)
    mean: Array = np.mean([curve.accuracy[:shared] for curve in curves], axis=0)
    return mean


def level_marks(curves: Sequence[Curve], label: float) -> list[list[Mark]]:
    """Return where the first curve of several levels changes them.

    Marks that are too close for a label each are together.

    Args:
        curves: Of all runs.
        label: The width of a label, as a share of that of the longest curve.

    Examples:
        >>> curve = Curve("continuous", 0, [1.0] * 8, [0, 0, 1, 2, 2, 2, 2, 3], is_test=True)
        >>> level_marks([curve], 0.25)
        [[(2.5, 1), (3.5, 2)], [(7.5, 3)]]
    """
    levels = next((curve.level for curve in curves if len(set(curve.level)) > 1), [])
    width = label * max((len(curve.level) for curve in curves), default=0)
    groups: list[list[Mark]] = []
    for mark in _changes(levels):
        if groups and mark[0] - groups[-1][-1][0] < width:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def _changes(levels: Sequence[int | None]) -> Iterable[Mark]:
    for epoch, (before, after) in enumerate(pairwise(levels), 1):
        if after is not None and after != before:
            yield epoch + 0.5, after


def mark_label(group: Sequence[Mark]) -> str:
    """Return which levels begin at marks that share a label.

    Examples:
        >>> mark_label([(2.5, 1)]), mark_label([(2.5, 1), (3.5, 2)])
        ('level 1', 'levels 1–2')
    """
    first, last = group[0][1], group[-1][1]
    return f"level {first}" if len(group) == 1 else f"levels {first}–{last}"


def _parts(curves: Iterable[Curve]) -> list[str]:
    """Return which samples the accuracies are of."""
    found = {curve.part for curve in curves}
    return [part for part in ("test", "validation") if part in found]


def _y_title(curves: Iterable[Curve]) -> str:
    return f"{' or '.join(_parts(curves))} accuracy, %".strip()


def _is_point(accuracy: Sequence[float] | Array) -> bool:
    """Whether there is a single accuracy, of which no line can be drawn."""
    return bool(np.count_nonzero(~np.isnan(accuracy)) == 1)


# ------------------------------------------------------------------------------ for pages


def plot(curves: Sequence[Curve]) -> Any:
    """Return a plotly figure: a thick line for each method, and a thin one for each seed.

    The thick line is the mean over seeds. It ends where the first of its seeds does, as it would
    jump there. Dashed lines mark where the first curriculum of several levels goes to the next.
    Dotted lines are the accuracy on clusters in stages that train on nothing finer.

    Args:
        curves: Of the runs, in the order of the legend.
    """
    figure = new_figure(
        height=420,
        hovermode="x unified",
        legend={"y": 1.07},
        margin={"t": 60},
        xaxis={"title": {"text": "epoch"}, "rangemode": "tozero", "showgrid": False},
        yaxis={"title": {"text": _y_title(curves)}, "rangemode": "tozero"},
    )
    for method, look in looks_of(curve.method for curve in curves).items():
        own = [curve for curve in curves if curve.method == method]
        figure.add_traces([*_thin_traces(own, look), _trace(mean_accuracy(own), method, look)])
        figure.add_traces(_coarse_traces(own, look))
    for group in level_marks(curves, LABEL_ON_PAGE):
        _add_marks(figure, group)
    return figure


def _thin_traces(curves: Sequence[Curve], look: Look) -> list[Any]:
    """Return a line for each seed; one alone does not need it, as it is the mean."""
    if len(curves) == 1:
        return []
    thin = {"line_width": 1, "opacity": 0.5, "hoverinfo": "skip"}
    return [
        _trace(curve.accuracy, curve.method, look).update(
            name=f"{shown(curve.method)}, seed {curve.seed}",
            showlegend=False,
            hovertemplate=None,
            **thin,
        )
        for curve in curves
    ]


def _coarse_traces(curves: Sequence[Curve], look: Look) -> list[Any]:
    """Return a dotted line for each seed that had coarse stages."""
    found = [(curve, *coarse_stages(curve)) for curve in curves if curve.coarse]
    return [
        graph_objects().Scatter(
            x=epochs,
            y=accuracies,
            name=_coarse_label(shown(curve.method)),
            mode="lines",
            line={"width": 1.5, "color": look.colour, "dash": "dot"},
            showlegend=number == 0,
            hoverinfo="skip" if number else None,
            hovertemplate=None if number else "%{y:.2f} %",
        )
        for number, (curve, epochs, accuracies) in enumerate(found)
    ]


def _coarse_label(method: str) -> str:
    return f"{method}, on clusters"


def _trace(accuracy: Sequence[float] | Array, method: str, look: Look) -> Any:
    return graph_objects().Scatter(
        x=list(range(1, len(accuracy) + 1)),
        y=list(accuracy),
        name=shown(method),
        mode="markers" if _is_point(accuracy) else "lines",
        line={"width": 3, "color": look.colour, "dash": look.dash},
        hovertemplate="%{y:.2f} %",
    )


def _add_marks(figure: Any, group: list[Mark]) -> None:
    for epoch, _ in group:
        figure.add_vline(epoch, line={"color": INK, "dash": "dash", "width": 1}, layer="below")
    figure.add_annotation(
        x=group[0][0], y=1, yref="paper", yanchor="bottom", xanchor="left", showarrow=False,
        text=mark_label(group), font={"size": 11}, xshift=-4,
    )  # fmt: skip


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[Sequence[Curve]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a line for each method, and thin ones for seeds."""
    height = 4.0 if width is None else FLAT
    figure = draw_panels(panels, _draw_panel, width=6.5, height=height, columns=2, total=width)
    is_mean = any(len({curve.seed for curve in panel.values}) > 1 for panel in panels)
    note = "mean over seeds, as long as all train; thin lines: each seed"
    return add_legend(figure, note if is_mean else None)


def _draw_panel(axes: Any, panel: Panel[Sequence[Curve]]) -> None:
    parts = _parts(panel.values)
    for name, style in line_styles(panel.labels).items():
        for part in parts:
            own = [c for c in panel.values if c.method == name and c.part == part]
            label = style["label"] if len(parts) == 1 else f"{style['label']}, {part}"
            _draw_method(axes, own, {**style, "label": label})
    _draw_marks(axes, level_marks(panel.values, LABEL_ON_PAPER))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel("epoch")
    axes.set_ylabel(_y_title(panel.values))
    add_title(axes, panel.title)


def _draw_method(axes: Any, curves: Sequence[Curve], style: LineStyle) -> None:
    if not curves:
        return
    for curve in curves:
        _draw_line(axes, curve.accuracy, linewidth=0.7, alpha=0.5, **{**style, "label": None})
    _draw_line(axes, mean_accuracy(curves), linewidth=2, **style)
    label: str | None = _coarse_label(style["label"])
    for curve in curves:
        if curve.coarse:
            dotted = {**style, "linestyle": "dotted", "label": label}
            axes.plot(*coarse_stages(curve), linewidth=1.2, **dotted)
            label = None  # once for all seeds


def _draw_line(axes: Any, accuracy: Sequence[float] | Array, **style: Any) -> None:
    marker = "o" if _is_point(accuracy) else None
    axes.plot(range(1, len(accuracy) + 1), accuracy, marker=marker, **style)


def _draw_marks(axes: Any, groups: list[list[Mark]]) -> None:
    """Draw a line at each mark, and beside the last of a group which levels begin there."""
    if not groups:
        return
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= min(high, 100)]
    axes.set_yticks(ticks)  # none above, where there is nothing but labels
    axes.set_ylim(low, high + HEADROOM * (high - low))
    for group in groups:
        for epoch, _ in group:
            axes.axvline(epoch, color=GREY, linestyle="--", linewidth=0.8)
        axes.annotate(
            mark_label(group), (group[-1][0], 1.0), (2, 0), color=GREY,
            xycoords=axes.get_xaxis_transform(), textcoords="offset points",
            rotation=90, ha="left", va="top", fontsize="small",
        )  # fmt: skip
