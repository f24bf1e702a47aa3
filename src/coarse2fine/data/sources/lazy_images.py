"""Images of a data set, decoded when they are needed where not all fit in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from ..split import Source, Split
from .images import Box, Encoded, centre_box, decode, decode_all

MEMORY_LIMIT = 4 * 2**30
"""How many bytes of pixels are held in memory; of a larger set, images are decoded when needed."""

# The usual random crop of ImageNet: its share of the area, and width over height.
_AREAS = (0.08, 1.0)
_ASPECTS = (3 / 4, 4 / 3)
_TRIES = 10


class LazyImages:
    """`LazyInputs` of images in files; can be pickled, so any loader's process can read it.

    Args:
        items: The encoded images, or their files.
        size: The height and width of every image that is read.
        share: Without randomness, the part of the largest centred crop's sides that is kept
            and resized to `size`. Defaults to 1.0; 224 / 256 is usual for ImageNet.
        name: What to call the image of a row in an error. Defaults to None: its file.

    Attributes:
        is_plain: That without randomness an image is always the same.
    """

    is_plain = True

    def __init__(
        self,
        items: Encoded,
        size: tuple[int, int],
        share: float = 1.0,
        name: Callable[[int], str] | None = None,
    ) -> None:
        self.items, self.size, self.share, self.name = items, size, share, name

    def __len__(self) -> int:
        return len(self.items)

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        """Return an image as uint8 of shape (3, height, width).

        Args:
            row: Which image.
            rng: Draws a random crop (8 to 100 % of the area, at most 4:3 off in shape) and
                whether to flip it; None gives the centre.
        """
        crop = partial(centre_box, share=self.share) if rng is None else partial(random_box, rng)
        name = None if self.name is None else self.name(row)
        pixels = decode(self.items[row], self.size, crop=crop, name=name)
        if rng is not None and rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def random_box(rng: np.random.Generator, width: int, height: int, aspect: float) -> Box:
    """Return a random box (left, top, right, bottom), of 8 to 100 % of an image's area.

    Its shape is up to 4:3 flatter or higher than `aspect`; if ten draws do not fit into the
    image, the centred box of the nearest shape that does is taken.

    Args:
        rng: What to draw from.
        width: Of the image.
        height: Of the image.
        aspect: Width over height of what the box will be resized to.
    """
    low, high = math.log(_ASPECTS[0] * aspect), math.log(_ASPECTS[1] * aspect)
    for _ in range(_TRIES):
        area = width * height * rng.uniform(*_AREAS)
        shape = math.exp(rng.uniform(low, high))
        box_width, box_height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < box_width <= width and 0 < box_height <= height:
            left = int(rng.integers(0, width - box_width + 1))
            top = int(rng.integers(0, height - box_height + 1))
            return left, top, left + box_width, top + box_height
    return centre_box(width, height, min(max(width / height, math.exp(low)), math.exp(high)))


class NamedImages(Encoded, Protocol):
    """Encoded images that tell what to call one of them in an error."""

    def name(self, row: int, /) -> str:
        """Return what to call an image: its file, and its row where the file has more."""


def image_source(
    images: Mapping[str, NamedImages],
    targets: Mapping[str, Tensor],
    class_names: tuple[str, ...],
    size: tuple[int, int],
    memory_limit: int = MEMORY_LIMIT,
) -> Source:
    """Return images to train on and others, decoded now if memory holds them all, else later.

    Args:
        images: Those to train on as ``"train"`` and, where there are such, those to test and
            to validate on as ``"test"`` and ``"val"``.
        targets: Their classes.
        class_names: The names of the classes.
        size: The height and width to bring all images to.
        memory_limit: How many bytes of pixels to hold in memory. Defaults to 4 GiB.
    """
    is_lazy = 3 * math.prod(size) * sum(map(len, images.values())) > memory_limit

    def split(role: str) -> Split:
        items = images[role]
        read = LazyImages if is_lazy else decode_all
        return Split(read(items, size, name=items.name), targets[role], class_names)

    splits = {role: split(role) for role in images}
    return Source("image", splits["train"], splits.get("test"), splits.get("val"))
