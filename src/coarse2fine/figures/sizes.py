"""Test accuracy against the number of training images."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..runs.result import RunResult
from .style import LineStyle, Panel, add_legend, add_title, draw_panels, line_styles
from .values import Estimate, mean_accuracies

Point = tuple[float, Estimate]


@dataclass(frozen=True)
class Size:
    """How good methods are with some number of training images.

    Args:
        asked: How many images, or which share of them; None for all.
        samples: How many there were to train and validate with; None where it is not known.
        accuracy: Of each method on the test samples.
    """

    asked: int | float | None
    samples: int | None
    accuracy: Mapping[str, Estimate]

    def place(self, *, is_share: bool) -> float:
        """Return where it lies on the axis, that of shares or that of numbers."""
        if is_share:
            return 1.0 if self.asked is None else self.asked
        if isinstance(self.asked, int):
            return self.asked
        if self.samples is None:
            raise ValueError("a setting on all images must say how many there are.")
        return self.samples


def values_of(runs: Iterable[RunResult], asked: float | None, samples: int | None) -> Size | None:
    """Return the accuracies of the methods; None without runs.

    Args:
        runs: Of all methods.
        asked: See `Size`.
        samples: See `Size`.
    """
    found = mean_accuracies(runs)
    return Size(asked, samples, found) if found else None


def draw(panels: Sequence[Panel[Sequence[Size]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a line for each method."""
    figure = draw_panels(panels, _draw_panel, total=width)
    return add_legend(figure, "mean over seeds ± standard error")


def _draw_panel(axes: Any, panel: Panel[Sequence[Size]]) -> None:
    sizes = panel.values
    is_share = not any(isinstance(size.asked, int) for size in sizes)
    places = [size.place(is_share=is_share) for size in sizes]
    for name, style in line_styles(panel.labels).items():
        found = [
            (place, size.accuracy[name])
            for place, size in zip(places, sizes, strict=True)
            if name in size.accuracy
        ]
        if found:
            _draw_line(axes, sorted(found), style)
    axes.set_xscale("log")
    axes.set_xticks(places, [f"{100 * at:g}%" if is_share else f"{at:,}" for at in places])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("share of the training images" if is_share else "training images")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, panel.title)


def _draw_line(axes: Any, points: list[Point], style: LineStyle) -> None:
    places = [place for place, _ in points]
    means, errors = zip(*(estimate for _, estimate in points), strict=True)
    colour = style["color"]
    axes.plot(places, means, marker="o", markersize=4, **style)
    if len(points) == 1:  # where a band has no width
        axes.errorbar(places, means, yerr=errors, color=colour, capsize=3)
    else:
        low, high = np.subtract(means, errors), np.add(means, errors)
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
