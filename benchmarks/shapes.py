"""Drawing the Shapes data against Pillow, which draws larger and averages 4×4 pixels."""

from __future__ import annotations

import numpy as np
from measure import Row, compare, seconds
from PIL import Image, ImageDraw

from coarse2fine.data.sets.shapes import draw_shapes, load_shapes

COUNT, FINER = 2_000, 4


def by_pillow(shape: np.ndarray, radius: np.ndarray, rotation: np.ndarray) -> np.ndarray:
    """Circles and regular polygons in the middle of the image, in one colour."""
    images = np.empty((len(shape), 64, 64, 3), np.uint8)
    side = 64 * FINER
    for row, (sides, r, turn) in enumerate(zip(shape + 1, radius * FINER, rotation, strict=True)):
        image = Image.new("RGB", (side, side))
        pen = ImageDraw.Draw(image)
        if sides < 3:
            pen.ellipse([side / 2 - r, side / 2 - r, side / 2 + r, side / 2 + r], "cyan")
        else:
            reach = r / np.cos(np.pi / sides)
            pen.regular_polygon((side / 2, side / 2, reach), int(sides), np.degrees(turn), "cyan")
        images[row] = image.reduce(FINER)
    return images


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    shape, radii = np.arange(COUNT) % 10, rng.uniform(6, 16, (COUNT, 2))
    rotation, middle = rng.uniform(0, 2 * np.pi, COUNT), np.full((COUNT, 2), 0.5)
    cyan = np.zeros(COUNT, np.int64)
    found = compare(
        lambda: draw_shapes(shape, cyan, radii, rotation, middle),
        lambda: by_pillow(shape, radii[:, 0], rotation),
        repeats=5,
    )
    detail = f"{COUNT / found.ours:,.0f} images a second against {COUNT / found.peer:,.0f}"
    what = "64×64 Shapes, against Pillow drawing 4×4 times larger"
    whole = seconds(lambda: load_shapes(count=50_000))
    return [
        Row.at_most(what, found.ratio, 1, "×", detail),
        Row.at_most("50,000 images of Shapes, 64×64", whole, 30, " s"),
    ]
