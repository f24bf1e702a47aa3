"""What the pictures share."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GREY = "#656d76"
ORANGE = "#bc4c00"
BLUE = "#0969da"

mpl.rcParams |= {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "coarse2fine",
}


def new_axes(size: tuple[float, float]) -> tuple[Figure, Axes]:
    figure = Figure(figsize=size, facecolor="white")
    axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    axes.set_axis_off()
    return figure, axes


def save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else {}, dpi=150)
    print(f"wrote {path.name}")
