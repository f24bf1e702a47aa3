"""Encoded images, such as PNG and JPEG, as uint8 pixels."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._util.parallel import filled_rows
from ..._util.text import brief
from ...errors import require

Box = tuple[float, float, float, float]
Crop = Callable[[int, int, float], Box]
Pixels = NDArray[np.uint8]

# How Pillow undoes each EXIF orientation, by the names of its transpositions.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_ORIENTATION = 0x0112
_LIES_ON_ITS_SIDE = range(5, 9)
# What images come in; Pillow's readers of others do more than read, up to starting programs.
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "JPEG2000", "AVIF", "PPM")


class Encoded(Protocol):
    """Encoded images or their files: a list, or anything that gives them one at a time.

    Where it has a method ``name(row)``, that tells what to call an image in an error.
    """

    def __len__(self) -> int: ...

    def __getitem__(self, row: int, /) -> bytes | Path: ...


def centre_box(width: int, height: int, aspect: float, share: float = 1.0) -> Box:
    """Return the largest box (left, top, right, bottom) of a shape at an image's centre.

    Args:
        width: Of the image.
        height: Of the image.
        aspect: The box's width over its height.
        share: The part of the largest box's sides to keep. Defaults to 1.0.

    Examples:
        >>> centre_box(100, 50, aspect=1.0)
        (25, 0, 75.0, 50.0)
    """
    box_width = share * min(width, height * aspect)
    box_height = share * min(height, width / aspect)
    # Whole pixels, so that where nothing needs to be resized nothing is blurred.
    left, top = round((width - box_width) / 2), round((height - box_height) / 2)
    return left, top, left + box_width, top + box_height


def decode(
    data: bytes | Path,
    size: tuple[int, int] | None = None,
    *,
    crop: Crop = centre_box,
    name: str | None = None,
) -> Pixels:
    """Return the RGB pixels of an image, of shape (height, width, 3).

    What people see is what they get: EXIF orientation is applied (one that cannot be read
    counts as none), 16-bit greys are scaled to 8 bits, transparency is dropped as by
    Pillow's ``convert("RGB")``, and of an animation the first picture is taken.

    Args:
        data: The encoded image, or its file.
        size: The height and width to bring it to: the part that `crop` picks is resized,
            which for the default means to resize the shorter side and crop the centre.
            Defaults to None: as it is.
        crop: Gives a box (left, top, right, bottom) from width, height and the aspect of
            `size`. Defaults to `centre_box`.
        name: What to call the image in an error. Defaults to None: its file.

    Raises:
        ValueError: The data is empty, broken, cut off, not an image, or larger than
            Pillow's limit against decompression bombs.
    """
    with _opened(data, name) as image:
        return pixels_of(image, size, crop)


def decode_all(
    items: Encoded, size: tuple[int, int] | None = None, workers: int | None = None
) -> Tensor:
    """Return images as one uint8 tensor (N, 3, height, width), decoded on every core.

    Args:
        items: The encoded images, or their files.
        size: The height and width to bring them to, as `decode` does. Defaults to None: all
            are of one size, which is kept.
        workers: How many processes. Defaults to None: one a core.
    """
    if not len(items):
        raise ValueError("there are no images to decode.")
    shape = decode(items[0], size, name=name_of(items, 0)).shape

    def work(row: int) -> Pixels:
        pixels = decode(items[row], size, name=name_of(items, row))
        if pixels.shape != shape:
            raise ValueError(
                f"{name_of(items, row)} is {pixels.shape[1]}×{pixels.shape[0]} pixels, but "
                f"{name_of(items, 0)} is {shape[1]}×{shape[0]}; give a size to bring all images to."
            )
        return pixels

    rows = filled_rows(work, (len(items), *shape), np.uint8, workers)
    return torch.from_numpy(rows).permute(0, 3, 1, 2)


def image_sizes(items: Encoded) -> NDArray[np.int64]:
    """Return the heights and widths of images, of shape (N, 2), without decoding them."""

    def work(row: int) -> tuple[int, int]:
        with _opened(items[row], name_of(items, row)) as image:
            width, height = image.size
            return (width, height) if _orientation(image) in _LIES_ON_ITS_SIDE else (height, width)

    return filled_rows(work, (len(items), 2), np.int64)


def name_of(items: Encoded, row: int) -> str:
    """Return what to call an image in an error: as `items` says, or else its file."""
    if hasattr(items, "name"):
        return str(items.name(row))
    item = items[row]
    return str(item) if isinstance(item, Path) else f"image {row}"


@contextmanager
def _opened(data: bytes | Path, name: str | None) -> Iterator[Any]:
    name = name or (str(data) if isinstance(data, Path) else "the image")
    pillow = require("PIL.Image", "train")
    # A pipe would be waited for, and names of any length come from lists in files.
    if isinstance(data, Path) and not os.path.isfile(data):  # noqa: PTH113
        if not os.path.lexists(data):
            raise FileNotFoundError(f"there is no file {name}.")
        raise ValueError(f"{name} is no file, or a link to none; replace or remove it.")
    with data.open("rb") if isinstance(data, Path) else BytesIO(data) as stream:
        try:
            with pillow.open(stream, formats=_known_formats()) as image:
                yield image
        except pillow.UnidentifiedImageError:
            what = "is not an image that Pillow can read" if stream.seek(0, 2) else "is empty"
            raise ValueError(f"{name} {what}; replace or remove it.") from None
        except Exception as error:  # broken data leads Pillow's readers to raise whatever
            raise ValueError(
                f"{name} cannot be decoded ({brief(error)}); replace or remove it."
            ) from error


@cache
def _known_formats() -> tuple[str, ...]:
    """Return those formats that this version of Pillow has a reader of."""
    pillow = require("PIL.Image", "train")
    pillow.init()
    return tuple(name for name in _FORMATS if name in pillow.OPEN)


def pixels_of(image: Any, size: tuple[int, int] | None, crop: Crop = centre_box) -> Pixels:
    """Return the RGB pixels of an image of Pillow's, of shape (height, width, 3).

    Args:
        image: The image; one that is not loaded yet is afterwards, no larger than needed.
        size: As for `decode`.
        crop: As for `decode`.
    """
    pillow = require("PIL.Image", "train")
    if image.format != "JPEG":
        image.load()  # as what tells the orientation may follow the pixels
    orientation = _orientation(image)
    if size is None:
        image = _as_rgb(image)
    else:
        height, width = size[::-1] if orientation in _LIES_ON_ITS_SIDE else size
        box = _drafted_box(image, (height, width), crop)
        image = _as_rgb(image).resize((width, height), pillow.Resampling.BILINEAR, box)
    if orientation in _TURNS:
        image = image.transpose(getattr(pillow.Transpose, _TURNS[orientation]))
    return np.asarray(image)


def _drafted_box(image: Any, size: tuple[int, int], crop: Crop) -> Box:
    """Have a JPEG decoded no finer than it is needed; return the box in what comes of it."""
    (height, width), (full_width, full_height) = size, image.size
    left, top, right, bottom = crop(full_width, full_height, width / height)
    shrink = min((right - left) / width, (bottom - top) / height)
    drafted = image.draft(None, (math.ceil(full_width / shrink), math.ceil(full_height / shrink)))
    scale = 1.0 if drafted is None else full_width / drafted[1][2]
    return left / scale, top / scale, right / scale, bottom / scale


def _as_rgb(image: Any) -> Any:
    mode = image.mode
    if mode == "RGB":
        return image
    if mode.startswith("I;16") or (mode == "I" and image.format == "PNG"):
        grey = (np.asarray(image).astype(np.uint32) + 128) // 257
        return require("PIL.Image", "train").fromarray(grey.astype(np.uint8)).convert("RGB")
    if mode in ("I", "F"):
        raise ValueError("its greys have no fixed range; save it with 8 or 16 bits")
    if mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")  # which Pillow asks for; the colours are the same
    return image.convert("RGB")


def _orientation(image: Any) -> int:
    """Return the EXIF orientation, 1 where there is none that can be read.

    Pillow's `getexif` would decode a whole PNG to look for one behind the pixels, and also
    take one that a TIFF has been turned by already.
    """
    if "exif" not in image.info:
        return 1
    exif = require("PIL.Image", "train").Exif()
    try:
        exif.load(image.info["exif"])
        orientation = exif.get(_ORIENTATION)
    except Exception:  # broken data leads Pillow's readers to raise whatever
        return 1
    return orientation if orientation in _TURNS else 1
