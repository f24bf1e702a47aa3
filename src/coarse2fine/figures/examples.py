"""One image of each class of a data set, with the class's name."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .._util.arrays import Array
from ..data import Split
from .letters import cut, fitted, lettering
from .style import Panel, add_title, draw_panels, points

CELL = 0.8  # inches, of an image and of the room for its name
NAME = 0.4  # the share of a cell's side that the two lines of its name take
WIDTH = 8.0  # inches, of a figure whose width is not given
MOST = 300  # classes


class Example(NamedTuple):
    """An image of a class.

    Args:
        name: Of the class.
        image: Of shape (H, W, 3), or (H, W) where it is grey.
    """

    name: str
    image: Array


def examples_of(split: Split) -> list[Example]:
    """Return the first image of each class that has one, in the order of the classes.

    Args:
        split: Whose inputs are images.

    Raises:
        ValueError: There are too many classes to draw.
    """
    if len(split.class_names) > MOST:
        raise ValueError(
            f"a figure of examples has room for {MOST} classes. Got {len(split.class_names)}."
        )
    split = split.with_class()
    classes, rows = np.unique(split.targets.numpy(), return_index=True)
    names = (split.class_names[index] for index in classes)
    return [Example(name, _pixels(split, int(row))) for name, row in zip(names, rows, strict=True)]


def _pixels(split: Split, row: int) -> Array:
    image = split.sample(row).permute(1, 2, 0).numpy()
    return image[:, :, 0] if image.shape[2] == 1 else image


def draw(panels: Sequence[Panel[Sequence[Example]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a grid of images for each data set."""
    total = WIDTH if width is None else width
    columns = max(1, int(total / CELL))
    most = max((len(panel.values) for panel in panels), default=1)
    height = math.ceil(most / columns) * (1 + NAME) * CELL
    return draw_panels(
        panels,
        lambda axes, panel: _draw_panel(axes, panel, columns),
        height=height,
        columns=1,
        total=total,
    )


def _two_lines(name: str) -> str:
    """Return the name of a class as it fits below an image."""
    room, size = 0.95 * CELL, points("x-small")
    first, *others = fitted(name, room, size).split("\n")
    return "\n".join([first, *([cut(" ".join(others), room, size)] if others else [])])


def _draw_panel(axes: Any, panel: Panel[Sequence[Example]], columns: int) -> None:
    for number, example in enumerate(panel.values):
        row, column = divmod(number, columns)
        left, bottom = column + 0.05, (row + 1) * (1 + NAME) - NAME
        extent = (left, left + 0.9, bottom, bottom - 0.9)
        grey = {"cmap": "gray", "vmin": 0, "vmax": 255} if example.image.ndim == 2 else {}
        axes.imshow(example.image, extent=extent, **grey)
        name = _two_lines(example.name)
        place = {"ha": "center", "va": "top", "fontsize": "x-small"}
        axes.text(column + 0.5, bottom + 0.04, name, **place, **lettering(name))
    rows = math.ceil(len(panel.values) / columns)
    axes.set(xlim=(0, min(columns, len(panel.values))), ylim=(rows * (1 + NAME), 0))
    axes.set_axis_off()
    add_title(axes, panel.title)
