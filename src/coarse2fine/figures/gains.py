"""The gain of each method, with its 95% interval, and the paper's beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..runs.result import BASELINE, RunResult
from ..runs.statistics import Paired, paired
from .letters import cut, inches, lettering
from .style import Panel, add_legend, add_title, add_x_label, draw_panels
from .theme import COLOURS
from .values import accuracies

MOST_LABEL = 1.6  # inches


@dataclass(frozen=True)
class Gain:
    """How much better a method is than the baseline of the same seed, in percentage points.

    Args:
        here: Over the seeds that both have.
        paper: The paper's own, and its standard error. Defaults to None: it has none.
    """

    here: Paired
    paper: tuple[float, float | None] | None = None


def values_of(
    runs: Iterable[RunResult], paper: Mapping[str, tuple[float, float | None]] | None = None
) -> dict[str, Gain]:
    """Return the gain of each method that has a baseline of the same seed.

    Args:
        runs: Of all methods.
        paper: The paper's gains with their standard errors, by method. Defaults to None.
    """
    found, values = accuracies(runs), {}
    plain = found.pop(BASELINE, {})
    for name, own in found.items():
        gains = [accuracy - plain[seed] for seed, accuracy in own.items() if seed in plain]
        if gains:
            values[name] = Gain(paired(gains), (paper or {}).get(name))
    return values


def draw(panels: Sequence[Panel[Mapping[str, Gain]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a point for each method."""
    most = max((len(panel.values) for panel in panels), default=0)
    has_paper = any(gain.paper for panel in panels for gain in panel.values.values())
    draw_panel = partial(_draw_panel, here="here" if has_paper else "mean over seeds")
    height = 1.2 + 0.4 * most
    return add_legend(draw_panels(panels, draw_panel, width=5.0, height=height, total=width))


def _draw_panel(axes: Any, panel: Panel[Mapping[str, Gain]], here: str) -> None:
    names = [name for name in panel.labels if name in panel.values]
    axes.axvline(0, color="grey", linewidth=0.8)
    for place, name in enumerate(names):
        _draw_gain(axes, place, panel.values[name], here)
    labels = [cut(panel.labels[name], MOST_LABEL) for name in names]
    axes.set_yticks(range(len(names)), labels, **lettering("".join(labels)))
    axes.set_ylim(len(names) - 0.4, -0.6)
    beside = max(map(inches, labels))
    add_x_label(axes, "gain in test accuracy, percentage points", beside)
    add_title(axes, panel.title, beside=beside)


def _draw_gain(axes: Any, place: int, gain: Gain, here: str) -> None:
    found = gain.here
    bounds = [[found.mean - found.low], [found.high - found.mean]]
    axes.errorbar(
        found.mean, place, xerr=bounds, fmt="o", color=COLOURS[0], capsize=3,
        label=f"{here}, 95% interval" if found.runs > 1 else "one seed",
    )  # fmt: skip
    if gain.paper is not None:
        mean, error = gain.paper
        axes.errorbar(
            mean, place + 0.25, xerr=error, fmt="d", color=COLOURS[1], capsize=3,
            label="paper, standard error",
        )  # fmt: skip
