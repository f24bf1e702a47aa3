"""Draw the pictures of the documentation: how the method works, what it gains, and a hierarchy.

    python docs/figures/draw.py
    python docs/figures/draw.py --data DIR

With DIR, also a part of the hierarchy that a trained ImageNet classifier gives. DIR holds
heads/imagenet1001_mobilenet_v2.npz with the arrays W, the weight of the final layer with one
row a class, and labels, the names of the classes.
"""

import argparse
import os
from pathlib import Path

import numpy as np
from explained import levels_picture, schedule_picture
from matplotlib.axes import Axes
from measured import gains_picture
from style import BLUE, GREY, ORANGE, new_axes, save

from coarse2fine import Hierarchy

HEAD = Path("heads", "imagenet1001_mobilenet_v2.npz")
FOLDER = Path(__file__).parent
MEMBER = "gorilla"  # the picture shows this class's cluster at level ROOT
ROOT = 1
GAP = 0.6  # between the lowest clusters, in lines
TOP = -3.0
COLOURS = (ORANGE, BLUE)


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


def imagenet_picture(hierarchy: Hierarchy, path: Path) -> None:
    figure, axes = new_axes((7.2, 7.0))
    draw(axes, hierarchy)
    write_head_line(axes, hierarchy)
    axes.set(xlim=(ROOT - 0.4, 5.1), ylim=(axes.dataLim.y1 + 1, TOP))
    save(figure, path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    data = os.environ.get("COARSE2FINE_DATA")
    what = "folder that holds heads/; the environment variable COARSE2FINE_DATA if not given"
    parser.add_argument("--data", type=Path, default=data and Path(data), help=what)
    folder = parser.parse_args().data
    levels_picture(FOLDER / "levels.svg")
    schedule_picture(FOLDER / "schedule.svg")
    gains_picture(FOLDER.parent / "results", FOLDER / "gains.svg")
    if folder is not None:
        imagenet_picture(read_hierarchy(folder), FOLDER / "imagenet.svg")


if __name__ == "__main__":
    main()
