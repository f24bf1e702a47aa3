"""The hierarchies: a column for each level, the coarsest to the left; see also `icicle`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from ..errors import require
from ..hierarchy import Hierarchy
from ..runs.result import RunResult
from .letters import LETTERS, cut, drawable, inches, lettering, wrapped
from .style import Panel, new_figure, new_panels
from .theme import COLOURS, GREY
from .values import Layout, Level

# In inches, as all here but the letters.
LINE, PADDING, GAP, HEADER, MARGIN = 0.155, 0.06, 0.04, 0.5, 0.15
BASE = 0.72  # how far down in a line its letters stand
WIDTH, LEAST_NAMES, MOST_LABEL = 9.5, 5.0, 1.6
MOST_CLASSES = 5000
LEAST_ROOM = 1.0  # for names, where the width is given


# --------------------------------------------------------------------------------- values


class NamedHierarchy(NamedTuple):
    """A hierarchy and whose it is.

    Args:
        hierarchy: Of the classes.
        method: That was trained with it. Defaults to ``""``: it was read from a file.
        seed: Of that training. Defaults to None.
    """

    hierarchy: Hierarchy
    method: str = ""
    seed: int | None = None


def values_of(runs: Iterable[RunResult]) -> list[NamedHierarchy]:
    """Return the hierarchy of each method's first seed."""
    first: dict[str, RunResult] = {}
    for run in runs:
        if run.num_clusters:
            first.setdefault(run.method, run)
    return [NamedHierarchy(run.hierarchy(), name, run.seed) for name, run in first.items()]


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[Sequence[NamedHierarchy]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: all hierarchies, one below the other."""
    room = None if width is None else width - 2 * MARGIN
    trees = [tree for panel in panels for tree in _trees(panel, room)]
    if not trees:
        return new_panels(0)[0]
    width = max(tree.width for tree in trees) + 2 * MARGIN
    height = sum(tree.height + 2 * MARGIN for tree in trees)
    figure, top = new_figure(width, height), height
    # Placed by hand, so that an inch of the panel is an inch and every line has its room.
    figure.set_layout_engine("none")
    for tree in trees:
        top -= tree.height + MARGIN
        place = (MARGIN / width, top / height, tree.width / width, tree.height / height)
        tree.draw(figure.add_axes(place))
        top -= MARGIN
    return figure


@dataclass(frozen=True)
class _Column:
    """The clusters of a level, from top to bottom.

    Args:
        heading: Above it.
        edges: Where the clusters begin and end in the nested order.
        labels: Of the clusters.
    """

    heading: str
    edges: list[int]
    labels: list[str]

    @property
    def width(self) -> float:
        """Of the boxes, and the space to the next."""
        return max(map(inches, (self.heading, *self.labels))) + 2 * PADDING + GAP


@dataclass(frozen=True)
class _Tree:
    """A panel, in inches from its top left corner.

    Args:
        title: Above it, in parts, of which the first is cut if there is no room.
        columns: Of the levels above the classes; the last has the names beside it.
        names: Of the classes, in the nested order.
        room: For its width. Defaults to None: as much as it likes.
    """

    title: list[str]
    columns: list[_Column]
    names: list[str]
    room: float | None = None

    @cached_property
    def left(self) -> list[float]:
        """Where the columns begin, that of the names last."""
        return [0.0, *accumulate(column.width for column in self.columns)]

    @property
    def width(self) -> float:
        """Of all columns."""
        if self.room is None:
            return max(WIDTH, self.left[-1] + LEAST_NAMES)
        least = self.left[-1] + LEAST_ROOM
        if self.room < least:
            raise ValueError(
                f"{len(self.columns)} levels above the classes need a width of at least "
                f"{math.ceil(10 * (least + 2 * MARGIN)) / 10} inches."
            )
        return self.room

    @cached_property
    def texts(self) -> list[list[str]]:
        """The lines of names beside each cluster of the last column."""
        room = self.width - self.left[-1] - 2 * PADDING
        return [wrapped(self.names[a:b], room) for a, b in pairwise(self.columns[-1].edges)]

    @cached_property
    def tops(self) -> dict[int, float]:
        """Where the classes begin that begin a cluster of the last column."""
        heights = [len(text) * LINE + 2 * PADDING + GAP for text in self.texts]
        tops = accumulate(heights, initial=HEADER)
        return dict(zip(self.columns[-1].edges, tops, strict=True))

    @property
    def height(self) -> float:
        """Of all lines."""
        return max(self.tops.values())

    def draw(self, axes: Any) -> None:
        """Draw the panel into axes of its size."""
        axes.set(xlim=(0, self.width), ylim=(self.height, 0))
        axes.set_axis_off()
        first, *others = self.title or [""]
        behind = "".join(f": {drawable(part)}" for part in others)
        room = max(self.width - inches(behind, LETTERS + 2), LEAST_ROOM)
        title = cut(cut(first, room, LETTERS + 2) + behind, self.width, LETTERS + 2)
        axes.text(0, 0, title, fontsize=LETTERS + 2, va="top", **lettering(title))
        bounds = [*pairwise(self.left), (self.left[-1], self.width + GAP)]
        names = _Column(f"{len(self.names)} classes", self.columns[-1].edges, [])
        labels = [[[label] for label in column.labels] for column in self.columns]
        for column, lines, (left, right) in zip(
            [*self.columns, names], [*labels, self.texts], bounds, strict=True
        ):
            _write(axes, left + PADDING, HEADER - LINE / 2 - GAP, [column.heading], GREY)
            self._draw_boxes(axes, column.edges, lines, left, right - left - GAP)

    def _draw_boxes(
        self, axes: Any, ends: list[int], lines: list[list[str]], left: float, width: float
    ) -> None:
        rectangle = require("matplotlib.patches", "report").Rectangle
        tops, coarsest = self.tops, self.columns[0].edges
        for (start, end), text in zip(pairwise(ends), lines, strict=True):
            group = int(np.searchsorted(coarsest, start, side="right")) - 1
            colour, top = COLOURS[group % len(COLOURS)], tops[start]
            box = rectangle((left, top), width, tops[end] - GAP - top, color=colour, linewidth=0)
            box.set_alpha(0.18)
            axes.add_patch(box)
            _write(axes, left + PADDING, (top + tops[end] - GAP) / 2, text, "black")


def _trees(panel: Panel[Sequence[NamedHierarchy]], room: float | None) -> Iterator[_Tree]:
    for found in panel.values:
        what = "" if found.seed is None else f"{panel.label(found.method)}, seed {found.seed}"
        title = [part for part in (panel.title, what) if part]
        count = found.hierarchy.num_classes
        _check_size(count)
        layout = Layout(found.hierarchy)
        names = found.hierarchy.class_names or tuple(map(str, range(count)))
        yield _Tree(title, list(_columns(layout)), [names[at] for at in layout.order], room)


def _check_size(count: int) -> None:
    """Refuse a hierarchy whose figure would be longer than any page."""
    if count > MOST_CLASSES:
        raise ValueError(
            f"a hierarchy of {count} classes is too long for a figure, which has at most "
            f"{MOST_CLASSES}: look at it by c2f report, or at its text by c2f hierarchy."
        )


def _columns(layout: Layout) -> Iterator[_Column]:
    """Return a column for each level above the classes, or a single box where there is none."""
    for level in layout.levels or [Level([0, len(layout.order)], None)]:
        sizes = [_counted(end - start, "class") for start, end in pairwise(level.edges)]
        names = level.names or [""] * len(sizes)
        labels = [cut(name, MOST_LABEL) or size for name, size in zip(names, sizes, strict=True)]
        yield _Column(_counted(len(sizes), "cluster"), level.edges, labels)


def _counted(count: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("s") else f"{what}s"
    return f"{count} {what if count == 1 else plural}"


def _write(axes: Any, x: float, middle: float, lines: list[str], colour: str) -> None:
    """Write lines around a height, line by line, since matplotlib's own spacing varies."""
    first = middle - (len(lines) / 2 - BASE) * LINE
    for number, line in enumerate(lines):
        y = first + number * LINE
        style = lettering(line)
        axes.text(x, y, line, fontsize=LETTERS, va="baseline", color=colour, **style)
