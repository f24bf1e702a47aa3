"""Images as a model takes them: of its size and channels, channels first."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._util.parallel import cores
from .._util.text import brief
from ..data.sources.images import Crop, Pixels, centre_box, decode, pixels_of
from ..errors import require

_MOST_THREADS = 16


def is_pil(value: Any) -> bool:
    """Return whether something is an image of Pillow's."""
    return type(value).__module__.partition(".")[0] == "PIL" and hasattr(value, "convert")


def image_tensor(
    values: Any, names: Sequence[str], shape: tuple[int, ...], share: float = 1.0
) -> Tensor:
    """Return images as a tensor (N, C, H, W), bytes or floats as they are given.

    Files, encoded images, Pillow's and arrays of bytes are brought to the size as in training.

    Args:
        values: Images, one a sample; an array or tensor may have its channels first or last.
        names: What to call each.
        shape: C, H and W.
        share: The part of the largest centred crop's sides that is kept. Defaults to 1.0.

    Raises:
        ValueError: An image cannot be read, or is not of such a shape.
    """
    if isinstance(values, np.ndarray | Tensor):
        return _from_array(values, names, shape, share)
    crop = partial(centre_box, share=share)
    work = partial(_image, shape=shape, crop=crop)
    if len(values) < 2 or not any(isinstance(value, Path | bytes) for value in values):
        images = [work(value, name) for value, name in zip(values, names, strict=True)]
    else:
        with ThreadPoolExecutor(min(cores(), _MOST_THREADS, len(values))) as pool:
            images = list(pool.map(work, values, names))
    return _stacked(images, names)


def as_image_batch(values: Any, shape: tuple[int, ...]) -> Any:
    """Return an array or tensor of one or more images with one row an image.

    Args:
        values: Of shape (H, W), (N, H, W), (C, H, W), (H, W, C) or four dimensions.
        shape: C, H and W.
    """
    is_grey = shape[0] == 1 and 1 not in (values.shape[0], values.shape[-1])
    if values.ndim == 2 or (values.ndim == 3 and not is_grey):
        return values[None]
    return values


def _stacked(images: Sequence[Tensor], names: Sequence[str]) -> Tensor:
    if len({image.dtype for image in images}) > 1:
        kinds = {str(image.dtype): name for image, name in zip(images, names, strict=True)}
        told = " and ".join(f"{name} of {kind}" for kind, name in kinds.items())
        raise ValueError(f"the images must all be of one type. Got {brief(told)}.")
    return torch.stack(list(images))


def _image(value: Any, name: str, *, shape: tuple[int, ...], crop: Crop) -> Tensor:
    size = (shape[1], shape[2])
    if isinstance(value, Path | bytes):
        return _channels_first(decode(value, size, crop=crop, name=name), shape, name)
    if is_pil(value):
        # A copy, as what Pillow has not loaded yet would be loaded smaller than it is.
        return _channels_first(_resized(value.copy(), name, size, crop), shape, name)
    if not isinstance(value, np.ndarray | Tensor):
        raise TypeError(
            f"{name} must be an image: a path, an image of Pillow's or an array. Got "
            f"{type(value).__name__}."
        )
    return _from_array(as_image_batch(value, shape)[:1], [name], shape, crop=crop)[0]


def _resized(image: Any, name: str, size: tuple[int, int], crop: Crop) -> Pixels:
    try:
        return pixels_of(image, size, crop)
    except (ValueError, OSError) as error:
        raise ValueError(f"{name} cannot be used ({brief(error)}).") from error


def _channels_first(pixels: Pixels, shape: tuple[int, ...], name: str) -> Tensor:
    """Return RGB pixels with as many channels as the model takes: three, or grey alone."""
    if shape[0] == 1:
        grey = require("PIL.Image", "train").fromarray(pixels).convert("L")
        pixels = np.array(grey)[..., None]
    elif shape[0] != 3:
        raise ValueError(
            f"{name}: the model takes images of {shape[0]} channels, which image files do not "
            f"have; give arrays."
        )
    return torch.from_numpy(np.require(pixels.transpose(2, 0, 1), requirements=["C", "W"]))


# --------------------------------------------------------------------------------- arrays


def _from_array(
    values: Any,
    names: Sequence[str],
    shape: tuple[int, ...],
    share: float = 1.0,
    crop: Crop | None = None,
) -> Tensor:
    """Return one or more images in an array as a tensor (N, C, H, W)."""
    images = _with_channels_first(values, names[0], shape)
    if images.dtype != torch.uint8:
        images = _as_floats(images, names[0])
    if tuple(images.shape[1:]) == shape:
        return images
    if images.dtype != torch.uint8 or shape[0] not in (1, 3):
        raise _wrong_shape(names[0], values.shape[1:], shape, "resize it first")
    pillow = require("PIL.Image", "train")
    crop = partial(centre_box, share=share) if crop is None else crop
    size = (shape[1], shape[2])
    resized = []
    for image, name in zip(images, names, strict=True):
        pixels = image.permute(1, 2, 0).cpu().numpy()
        made = pillow.fromarray(pixels if shape[0] == 3 else pixels[..., 0])
        resized.append(_channels_first(_resized(made, name, size, crop), shape, name))
    return torch.stack(resized)


def _with_channels_first(values: Any, name: str, shape: tuple[int, ...]) -> Tensor:
    images = values.detach() if isinstance(values, Tensor) else _tensor(values, name)
    if images.dim() == 3 and shape[0] == 1:  # greys without a dimension for it
        images = images.unsqueeze(1)
    if images.dim() != 4:
        raise _wrong_shape(name, values.shape[1:], shape)
    own, (channels, *size) = tuple(images.shape[1:]), shape
    is_last = own[2] == channels and own[0] != channels
    if is_last or (own == (*size, channels) and own != shape):
        return images.permute(0, 3, 1, 2)
    if own[0] != channels:
        raise _wrong_shape(name, own, shape, f"it must have {channels} channels")
    return images


def _tensor(values: Any, name: str) -> Tensor:
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers. Got an array of {values.dtype}.")
    # Torch knows few types, no other order of bytes, and no arrays that may not be written to.
    dtype = np.uint8 if values.dtype == np.uint8 else np.float32
    if dtype is np.float32 and values.dtype.kind != "f":
        raise TypeError(
            f"{name} must be an image of bytes (uint8) or of floats from 0 to 1. Got "
            f"{values.dtype}."
        )
    return torch.from_numpy(np.require(values, dtype, ["C", "W"]))


def _as_floats(images: Tensor, name: str) -> Tensor:
    if not images.is_floating_point():
        raise TypeError(
            f"{name} must be an image of bytes (uint8) or of floats from 0 to 1. Got "
            f"{images.dtype}."
        )
    return images.float()


def _wrong_shape(
    name: str, got: Sequence[int], shape: Sequence[int], remedy: str = "give one of that shape"
) -> ValueError:
    wanted, found = ("×".join(map(str, sizes)) for sizes in (shape, got))
    return ValueError(f"{name} is of {found}, but the model takes images of {wanted}; {remedy}.")
