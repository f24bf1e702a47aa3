"""Example images of the classes, all on one sheet."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from .._util.arrays import IntArray
from ..data import Split
from ..errors import RunError, require
from ..figures.values import Layout
from ..runs.directory import Run
from ..runs.restorer import Restorer
from .runs import FinishedRun

MOST = 2_000  # images in all
MOST_BYTES = 3 * 2**20  # of the sheet
SIDE = 48  # pixels at most
QUALITIES = (80, 60, 40, 20, 5)


@dataclass(frozen=True)
class Examples:
    """Images of every class, on one sheet.

    Args:
        sheet: A data URL.
        size: The side of an image, in pixels.
        columns: How many images lie side by side.
        places: For each class the numbers of its images on the sheet.
    """

    sheet: str
    size: int
    columns: int
    places: list[list[int]]


def example_images(
    run: FinishedRun, layout: Layout, count: int, restorer: Restorer
) -> Examples | None:
    """Return test images of every class, read again from the data of a run.

    Args:
        run: Whose test samples are shown.
        layout: The order of the classes.
        count: How many of each class, or fewer where the classes are many.
        restorer: Reads the data.

    Returns:
        The images; None where the data are no images.

    Raises:
        RunError: Where the samples are no pictures, and as `Restorer.data`, as for the rest.
        ValueError: As `Restorer.data`.
        TypeError: As `Restorer.data`.
        OSError: As `Restorer.data`.
        MissingExtraError: As `Restorer.data`.
    """
    if run.config.data.kind != "image" or not count:
        return None
    test = restorer.data(Run(run.result.path)).test.with_class()
    rows = chosen_rows(test.targets.numpy(), layout.order, count)
    images = [_picture(_pixels(test, row)) for own in rows for row in own]
    ends = np.cumsum([0, *map(len, rows)]).tolist()
    columns = max(math.ceil(math.sqrt(len(images))), 1)
    return Examples(
        sheet=_encoded(_sheet(images, columns)),
        size=images[0].width if images else 0,
        columns=columns,
        places=[list(range(*pair)) for pair in pairwise(ends)],
    )


# ----------------------------------------------------------------------------- which images


def chosen_rows(targets: IntArray, order: IntArray, count: int) -> list[list[int]]:
    """Return the first few samples of each class, of only some classes where they are many.

    Args:
        targets: The class of each sample.
        order: The classes in the order of the result.
        count: How many of each class at most.

    Examples:
        >>> chosen_rows(np.array([1, 0, 1, 1]), np.array([1, 0, 2]), 2)
        [[0, 2], [1], []]
    """
    every = math.ceil(len(order) / MOST)  # so that all clusters have some
    each = min(count, max(MOST // len(order), 1))
    by_class = np.argsort(targets, kind="stable")
    starts = np.searchsorted(targets[by_class], np.arange(len(order) + 1))
    found: list[list[int]] = [[] for _ in range(len(order))]
    for place in range(0, len(order), every):
        start, end = starts[order[place]], starts[order[place] + 1]
        found[place] = by_class[start : min(end, start + each)].tolist()
    return found


# --------------------------------------------------------------------------------- the sheet


def _pixels(test: Split, row: int) -> Any:
    """Return a sample as an array that Pillow takes."""
    inputs = test.inputs
    found = inputs[row] if isinstance(inputs, torch.Tensor) else inputs.read(row, None)
    if found.dtype != torch.uint8 or found.dim() != 3 or found.shape[0] not in (1, 3):
        shape = "×".join(map(str, found.shape))
        raise RunError(f"samples of {shape} and {found.dtype} are no pictures of 1 or 3 colours")
    return found.expand(3, -1, -1).permute(1, 2, 0).contiguous().numpy()


def _picture(pixels: Any) -> Any:
    """Return an image small and square, its shorter side between black bars."""
    pillow = require("PIL.Image", "train")
    image = pillow.fromarray(pixels)
    image.thumbnail((SIDE, SIDE), pillow.Resampling.LANCZOS)
    side = max(image.size)
    square = pillow.new("RGB", (side, side))
    square.paste(image, ((side - image.width) // 2, (side - image.height) // 2))
    return square


def _sheet(images: Sequence[Any], columns: int) -> Any:
    pillow = require("PIL.Image", "train")
    side = images[0].width if images else 1
    lines = max(math.ceil(len(images) / columns), 1)
    sheet = pillow.new("RGB", (columns * side, lines * side))
    for place, image in enumerate(images):
        sheet.paste(image, (place % columns * side, place // columns * side))
    return sheet


def _encoded(sheet: Any) -> str:
    """Return the sheet as the address of itself, in the best quality that is small enough."""
    for quality in QUALITIES:
        file = BytesIO()
        sheet.save(file, "WEBP", quality=quality)
        if len(file.getvalue()) <= MOST_BYTES:
            break
    return "data:image/webp;base64," + base64.b64encode(file.getvalue()).decode()
