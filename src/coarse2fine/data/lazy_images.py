"""Images that are decoded when they are needed, as not all fit in memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor

from .images import Box, Encoded, centre_box, decode

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
