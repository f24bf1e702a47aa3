"""Shapes: one filled shape on black, 3 colours × 10 shapes = 30 classes, drawn when asked for.

It follows the data of the paper as measured: an image of 64×64 pixels holds a circle of
radius r, an ellipse with two independent semi-axes, or a regular polygon of inradius r; each
of these lengths is uniform on 6..16 pixels, the rotation is uniform, and the tight bounding
box lies uniformly at random inside the image. Other sizes scale the same scenes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ..split import Source, Split

COLOURS = {"cyan": (0, 255, 255), "gray": (128, 128, 128), "magenta": (255, 0, 255)}
SHAPES = ("circle", "ellipse", *(f"polygon[{sides}]" for sides in range(3, 11)))
CLASS_NAMES = tuple(f"{colour} {shape}" for colour in COLOURS for shape in SHAPES)

_ELLIPSE = 1
_SMALLEST, _LARGEST, _SIDE = 6, 16, 64
_CHUNK_PIXELS = 1 << 18  # what fits a processor's cache; memory stays bounded

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Pieces = tuple[_Floats, _Floats, _Floats, _Floats, _Integers]


def load_shapes(
    *, count: int = 50_000, size: int = 64, test: int | None = None, seed: int = 0
) -> Source:
    """Draw the Shapes data.

    Shapes take turns, so that any run of images holds each as often as any other, give or
    take one; colours are uniformly random. Image i depends on the seed and i alone, not on
    the count, and another size shows the same scene. The last images are for testing.

    Args:
        count: How many images in all. Defaults to 50,000.
        size: The side of an image in pixels, at least 8. Defaults to 64.
        test: How many of the images are for testing. Defaults to None: a fifth.
        seed: Defaults to 0.

    Returns:
        uint8 images (N, 3, size, size); class c has colour c // 10 (cyan, gray, magenta) and
        shape c % 10 (circle, ellipse, polygon[3] to polygon[10]).

    Examples:
        >>> source = load_shapes(count=100, size=16)
        >>> source.train.inputs.shape, len(source.test)
        (torch.Size([80, 3, 16, 16]), 20)
        >>> source.train.class_names[9]
        'cyan polygon[10]'
    """
    _check_integer("count", count, 1)
    test = count // 5 if test is None else test
    _check_integer("test", test, 0)
    _check_integer("seed", seed, 0)
    if test >= count:
        raise ValueError(
            f"test must be less than count, {count}, to leave some for training. Got {test}."
        )
    # RandomState is the generator whose numbers are promised to stay the same in every numpy.
    uniform = np.random.RandomState(seed).random_sample((count, 6))
    shape = np.arange(count) % len(SHAPES)
    colour = (uniform[:, 0] * len(COLOURS)).astype(np.int64)
    radii = (_SMALLEST + (_LARGEST - _SMALLEST) * uniform[:, 1:3]) * (size / _SIDE)
    rotation, position = 2 * np.pi * uniform[:, 3], uniform[:, 4:]
    images = torch.from_numpy(draw_shapes(shape, colour, radii, rotation, position, size=size))
    targets = torch.from_numpy(colour * len(SHAPES) + shape)
    index, cut = torch.arange(count), count - test
    train = Split(images[:cut], targets[:cut], CLASS_NAMES, index[:cut])
    held_out = Split(images[cut:], targets[cut:], CLASS_NAMES, index[cut:])
    return Source("image", train, held_out if test else None)


def draw_shapes(
    shape: ArrayLike,
    colour: ArrayLike,
    radii: ArrayLike,
    rotation: ArrayLike,
    position: ArrayLike,
    *,
    size: int = 64,
) -> NDArray[np.uint8]:
    """Return one image for each shape, anti-aliased by the exact area it covers of each pixel.

    A pixel is its coverage times the colour, rounded. Polygons are exact to float64; circles
    and ellipses are drawn as polygons of the same area with so many sides, 64 · √size, that
    the coverage of a pixel is off by less than 1/2000.

    Args:
        shape: Which of `SHAPES`, of shape (N).
        colour: Which of `COLOURS`, of shape (N).
        radii: Lengths in pixels, of shape (N, 2): an ellipse's semi-axes; of others the first
            alone counts, a circle's radius or a polygon's inradius.
        rotation: Angles in radians, of shape (N).
        position: Of shape (N, 2), where the bounding box lies across and down: 0 has it touch
            the left or upper edge of the image, 1 the right or lower edge.
        size: The side of the images in pixels, at least 8. Defaults to 64.

    Returns:
        uint8 images of shape (N, 3, size, size).

    Examples:
        >>> square = draw_shapes([3], [0], [[2.2, 0]], [np.pi / 4], [[0, 0]], size=8)
        >>> square[0, 2, 3:6, :6]  # 4.4 pixels wide
        array([[255, 255, 255, 255, 102,   0],
               [102, 102, 102, 102,  41,   0],
               [  0,   0,   0,   0,   0,   0]], dtype=uint8)
    """
    _check_integer("size", size, 8)
    shape = _choices("shape", shape, len(SHAPES))
    colour = _choices("colour", colour, len(COLOURS))
    radii = _floats("radii", radii, (len(shape), 2))
    rotation = _floats("rotation", rotation, (len(shape),))
    position = _floats("position", position, (len(shape), 2))
    if len(colour) != len(shape):
        raise ValueError(f"colour must have one entry a shape, {len(shape)}. Got {len(colour)}.")
    _check_ranges(shape, radii, position)
    images = np.empty((len(shape), 3, size, size), np.uint8)
    rgb = np.array(list(COLOURS.values()), np.float64)[colour, :, None, None]
    step = max(1, _CHUNK_PIXELS // size**2)
    for start in range(0, len(shape), step):
        rows = slice(start, start + step)
        outline = _outlines(shape[rows], radii[rows], rotation[rows], position[rows], size)
        covered = _coverage(outline, len(shape[rows]), size)
        images[rows] = np.rint(covered[:, None] * rgb[rows])
    return images


def _outlines(
    shape: _Integers, radii: _Floats, rotation: _Floats, position: _Floats, size: int
) -> _Pieces:
    """Return the sides of all shapes: y and x where they begin, the same where they end, owner."""
    is_round = shape <= _ELLIPSE
    sides = np.where(is_round, int(np.ceil(64 * size**0.5)), shape + 1)
    angle = np.pi / sides
    # From the inradius to a polygon's corners; or to those of one with the area of the circle.
    reach = np.where(is_round, np.sqrt(2 * angle / np.sin(2 * angle)), 1 / np.cos(angle))
    across = radii[:, 0] * reach
    down = np.where(shape == _ELLIPSE, radii[:, 1] * reach, across)
    first, owner, corner = _numbered(sides)
    angle = (2 * angle)[owner] * corner
    u, v = across[owner] * np.cos(angle), down[owner] * np.sin(angle)
    cos, sin = np.cos(rotation)[owner], np.sin(rotation)[owner]
    x = _placed(u * cos - v * sin, first, owner, position[:, 0], size)
    y = _placed(u * sin + v * cos, first, owner, position[:, 1], size)
    following = np.arange(1, len(owner) + 1)
    following[np.append(first[1:], len(owner)) - 1] = first
    return y, x, y[following], x[following], owner


def _placed(
    along: _Floats, first: _Integers, owner: _Integers, position: _Floats, size: int
) -> _Floats:
    """Return coordinates along one axis, moved so that each shape lies where it should."""
    low: _Floats = np.minimum.reduceat(along, first)
    room: _Floats = size - (np.maximum.reduceat(along, first) - low)
    if (room < 0).any():
        raise ValueError(
            f"radii are too large: a shape is {size - room.min():.1f} pixels wide, an image {size}."
        )
    moved: _Floats = along + (position * room - low)[owner]
    return moved.clip(0, size)


def _coverage(outline: _Pieces, count: int, size: int) -> _Floats:
    """Return how much of each pixel the shapes cover, of shape (count, size, size).

    Each piece of an outline, cut up by the pixels' borders, adds to its own pixel the area
    between it and the pixel's right side, and its height to all pixels further right: with a
    sign, so that what lies to the right of a shape cancels out.
    """
    y0, x0, y1, x1, owner = outline
    y0, x0, y1, x1, owner = _cut(y0, x0, y1, x1, owner)
    x0, y0, x1, y1, owner = _cut(x0, y0, x1, y1, owner)
    middle = (x0 + x1) / 2
    column = np.minimum(middle.astype(np.int64), size - 1)
    row = np.minimum(((y0 + y1) / 2).astype(np.int64), size - 1)
    # One column more than the image has takes what lies to the right of it.
    pixel = (owner * size + row) * (size + 1) + column
    height = y0 - y1
    further = height * (middle - column)
    cells = np.concatenate([pixel, pixel + 1])
    weights = np.concatenate([height - further, further])
    grid = np.bincount(cells, weights, count * size * (size + 1))
    covered: _Floats = grid.reshape(count, size, size + 1).cumsum(axis=2)[:, :, :-1]
    return covered


def _cut(a0: _Floats, b0: _Floats, a1: _Floats, b1: _Floats, owner: _Integers) -> _Pieces:
    """Return line segments from (a0, b0) to (a1, b1) cut up wherever a is whole."""
    low, high = np.minimum(a0, a1), np.maximum(a0, a1)
    floor = np.floor(low)
    _, source, place = _numbered(np.maximum(np.ceil(high) - floor, 1).astype(np.int64))
    line = floor[source] + place
    below, above = np.maximum(line, low[source]), np.minimum(line + 1, high[source])
    rising = (a0 <= a1)[source]
    begin, end = np.where(rising, below, above), np.where(rising, above, below)
    a, b, along, across = a0[source], b0[source], (a1 - a0)[source], (b1 - b0)[source]
    # A segment along a border, whose a does not change, stays whole: from 0 to 1.
    moves = along != 0
    t0 = np.divide(begin - a, along, out=np.zeros_like(a), where=moves)
    t1 = np.divide(end - a, along, out=np.ones_like(a), where=moves)
    return begin, b + t0 * across, end, b + t1 * across, owner[source]


def _numbered(counts: _Integers) -> tuple[_Integers, _Integers, _Integers]:
    """Return where each group of so many begins, each member's group, and its place therein."""
    first = np.cumsum(counts) - counts
    group = np.repeat(np.arange(len(counts)), counts)
    return first, group, np.arange(len(group)) - first[group]


def _choices(name: str, values: ArrayLike, count: int) -> _Integers:
    array = np.asarray(values)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise TypeError(
            f"{name} must be integers of shape (N). Got {array.dtype} of shape {array.shape}."
        )
    if ((array < 0) | (array >= count)).any():
        raise ValueError(f"{name} must lie in 0..{count - 1}. Got {array.min()}..{array.max()}.")
    return array.astype(np.int64)


def _floats(name: str, values: ArrayLike, shape: tuple[int, ...]) -> _Floats:
    array = np.asarray(values, np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}. Got {array.shape}.")
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite. Got {array[~np.isfinite(array)][0]}.")
    return array


def _check_ranges(shape: _Integers, radii: _Floats, position: _Floats) -> None:
    flat = (radii[:, 0] <= 0) | ((shape == _ELLIPSE) & (radii[:, 1] <= 0))
    if flat.any():
        raise ValueError(f"radii must be above 0. Got {radii[flat][0]} for shape {flat.argmax()}.")
    outside = ((position < 0) | (position > 1)).any(axis=1)
    if outside.any():
        raise ValueError(
            f"position must lie in 0..1, to keep the shape in its image. Got "
            f"{position[outside][0]} for shape {outside.argmax()}."
        )


def _check_integer(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer. Got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}. Got {value}.")
