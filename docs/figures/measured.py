"""What one can depend on: the gain of the curriculum, and of the model that one is told to use."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from style import BLUE, GREY, ORANGE, save

from coarse2fine.experiments.content import read_all
from coarse2fine.experiments.declaration import CHOSEN
from coarse2fine.experiments.results import Row
from coarse2fine.runs.statistics import paired

EXPERIMENT, ADAPTIVE = "dependable", "adaptive"
LOOKS = {
    ADAPTIVE: ("always the curriculum", ORANGE, -0.14),
    CHOSEN: ("the model you are told to use", BLUE, 0.14),
}


def read_rows(folder: Path) -> list[Row]:
    """Return all rows of the experiment, those that gain most first."""
    found = {
        row.label: row
        for results in read_all(folder)
        if results.experiment == EXPERIMENT
        for row in results.rows
    }
    return sorted(found.values(), key=lambda row: -paired(row.gains(ADAPTIVE)).mean)


def draw_gains(axes: Axes, rows: Sequence[Row], method: str) -> None:
    label, colour, shift = LOOKS[method]
    gains = [paired(row.gains(method)) for row in rows]
    means = [gain.mean for gain in gains]
    bounds = [[gain.mean - gain.low for gain in gains], [gain.high - gain.mean for gain in gains]]
    places = [place + shift for place in range(len(rows))]
    axes.errorbar(means, places, xerr=bounds, fmt="o", color=colour, capsize=2, label=label)


def gains_picture(results: Path, path: Path) -> None:
    rows = read_rows(results)
    figure = Figure(figsize=(7.4, 0.9 + 0.36 * len(rows)), facecolor="white", layout="constrained")
    axes = figure.add_subplot()
    axes.axvline(0, color=GREY, linewidth=0.8)
    for method in LOOKS:
        draw_gains(axes, rows, method)
    axes.set_yticks(range(len(rows)), [row.label for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("gain in test accuracy over plain training, points, with 95% interval")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.legend(loc="lower right", frameon=False)
    save(figure, path)
