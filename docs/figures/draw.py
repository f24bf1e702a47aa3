"""Draw one part of the hierarchy that a trained ImageNet classifier gives.

    python docs/figures/draw.py --data DIR

DIR holds heads/imagenet1001_mobilenet_v2.npz with the arrays W, the weight of the final
layer with one row a class, and labels, the names of the classes.
"""

import argparse
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from coarse2fine import Hierarchy

HEAD = Path("heads", "imagenet1001_mobilenet_v2.npz")
PICTURE = Path(__file__).with_name("imagenet.svg")
MEMBER = "gorilla"  # the picture shows this class's cluster at level ROOT
ROOT = 1
GAP = 0.6  # between the lowest clusters, in lines
TOP = -3.0
GREY = "#656d76"
COLOURS = ("#bc4c00", "#0969da")
STYLE = {
    "font.family": "sans-serif",
    "font.size": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "coarse2fine",
}


def read_hierarchy(data: Path) -> Hierarchy:
    with np.load(data / HEAD, allow_pickle=False) as content:
        names = [str(label).split(",")[0] for label in content["labels"]]
        return Hierarchy.from_embeddings(content["W"], class_names=names)


def place_classes(hierarchy: Hierarchy) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes to show, top to bottom, and their heights."""
    levels = np.stack(hierarchy.levels[ROOT:])
    root = levels[0, hierarchy.class_names.index(MEMBER)]
    classes = np.flatnonzero(levels[0] == root)
    # By the coarsest level first, so that branches do not cross.
    classes = classes[np.lexsort(levels[::-1, classes])]
    lowest = levels[-2, classes]
    is_new = np.diff(lowest, prepend=lowest[0]) != 0
    return classes, np.arange(len(classes)) + GAP * np.cumsum(is_new)


def parent_heights(owner: np.ndarray, heights: np.ndarray) -> np.ndarray:
    """Return for each class the middle between its cluster's highest and lowest child."""
    middles = {one: np.ptp(at) / 2 + at.min() for one in owner for at in [heights[owner == one]]}
    return np.array([middles[one] for one in owner])


def draw(axes: Axes, hierarchy: Hierarchy) -> None:
    classes, heights = place_classes(hierarchy)
    is_second = hierarchy.levels[ROOT + 1][classes] != hierarchy.levels[ROOT + 1][classes[0]]
    colours = np.where(is_second, *COLOURS)
    depth = len(hierarchy.levels) - 1
    for one, height, colour in zip(classes, heights, colours, strict=True):
        name = hierarchy.class_names[one]
        axes.text(depth + 0.05, height, name, va="center", color=colour)
    for level in range(depth - 1, ROOT - 1, -1):
        parents = parent_heights(hierarchy.levels[level][classes], heights)
        draw_branches(axes, level, {*zip(parents, heights, colours, strict=True)})
        for height, size in zip(*np.unique(parents, return_counts=True), strict=True):
            axes.plot(level, height, "o", color=GREY, markersize=3 + size**0.5)
        heights = parents


def draw_branches(axes: Axes, level: int, branches: set[tuple[float, float, str]]) -> None:
    """Draw an S-shaped line from each cluster to each of its children."""
    along = np.linspace(0, 1, 24)
    bend = along**2 * (3 - 2 * along)
    for left, right, colour in sorted(branches):
        axes.plot(level + along, left + (right - left) * bend, color=colour, linewidth=1.2)


def write_head_line(axes: Axes, hierarchy: Hierarchy) -> None:
    for level, count in enumerate(hierarchy.num_clusters[:-1]):
        if level >= ROOT:
            text = f"level {level}\n{count} clusters"
            axes.text(level, TOP, text, ha="center", va="top", color=GREY, size=9)
    text = f"level {len(hierarchy.levels) - 1}\n{hierarchy.num_classes:,} classes"
    axes.text(len(hierarchy.levels) - 0.95, TOP, text, va="top", color=GREY, size=9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("COARSE2FINE_DATA")
    parser.add_argument(
        "--data",
        type=Path,
        default=data,
        required=not data,
        help="folder that holds heads/; the environment variable COARSE2FINE_DATA if not given",
    )
    hierarchy = read_hierarchy(parser.parse_args().data)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 7.0), facecolor="white")
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        axes.set_axis_off()
        draw(axes, hierarchy)
        write_head_line(axes, hierarchy)
        axes.set(xlim=(ROOT - 0.4, 5.1), ylim=(axes.dataLim.y1 + 1, TOP))
        figure.savefig(PICTURE, metadata={"Date": None})
    print(f"wrote {PICTURE.name}: {hierarchy!r}")


if __name__ == "__main__":
    main()
