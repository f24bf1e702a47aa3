"""What a level was worth: how well it was learned, against what the curriculum gained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..metrics import level_accuracies
from ..runs.directory import Run
from ..runs.result import BASELINE, RunResult
from .style import Panel, add_legend, add_title, add_x_label, draw_panels
from .theme import COLOURS, MARKERS
from .values import with_baseline

Several = Sequence[Panel[Sequence["Worth"]]]


@dataclass(frozen=True)
class Worth:
    """What came of teaching the last coarse level of one run, beside its baseline.

    Args:
        method: Of the run.
        seed: Of the run and its baseline.
        learned: The validation accuracy at that level when it was left, minus the baseline's at
            the same level, in percentage points.
        gain: In test accuracy over the baseline, in percentage points.
    """

    method: str
    seed: int
    learned: float
    gain: float


def values_of(runs: Sequence[RunResult]) -> list[Worth]:
    """Return what each run's last coarse level was worth, where it has one and a baseline."""
    plain = {run.seed: run for run in runs if run.method == BASELINE}
    found = ((run, _learned(run, plain[run.seed])) for run in with_baseline(runs))
    return [
        Worth(run.method, run.seed, learned, 100 * (run.accuracy - plain[run.seed].accuracy))
        for run, learned in found
        if learned is not None
    ]


def _learned(run: RunResult, baseline: RunResult) -> float | None:
    """Return how much better than the baseline a run was at its last coarse level."""
    last = len(run.num_clusters) - 2
    if last < 0 or baseline.val_accuracy is None:
        return None
    lines = [line for line in Run(run.path).metrics() if line.get("level") == last]
    taught = lines[-1].get("level_accuracy") if lines else None
    if taught is None:
        return None
    plain = level_accuracies(*baseline.predictions("val"), run.hierarchy())[last]
    return float(100 * (taught - plain))


def draw(panels: Several, width: float | None = None) -> Any:
    """Return a matplotlib figure: a point for each run, a colour for each panel's data.

    All are drawn into one panel, since the question is whether one rule holds for all of them.
    """
    together: list[Panel[Several]] = [Panel("", {}, list(panels))] if panels else []
    return add_legend(draw_panels(together, _draw_all, width=6.0, height=4.0, total=width))


def _draw_all(axes: Any, panel: Panel[Several]) -> None:
    for at in (axes.axhline, axes.axvline):
        at(0, color="grey", linewidth=0.8)
    for place, own in enumerate(panel.values):
        axes.plot(
            [worth.learned for worth in own.values], [worth.gain for worth in own.values],
            linestyle="", marker=MARKERS[place % len(MARKERS)], markersize=5, alpha=0.8,
            color=COLOURS[place % len(COLOURS)], label=own.title,
        )  # fmt: skip
    add_x_label(axes, "validation accuracy at the last coarse level, minus the baseline's, points")
    axes.set_ylabel("gain in test accuracy, points")
    add_title(axes, panel.title)
