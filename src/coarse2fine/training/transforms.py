"""What happens to the inputs of a run before the model sees them."""

from __future__ import annotations

import torch
from torch import Tensor

from ..data import Data, Transform, channel_statistics, input_shape
from ..runs.config import Config

# Mean and deviation of the channels, as they are commonly used for these sets.
_CIFAR = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)
_IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
PUBLISHED = {
    "cifar10": _CIFAR,
    "cifar100": _CIFAR,
    "cifar100-coarse": _CIFAR,
    "tiny-imagenet": ((0.4802, 0.4481, 0.3975), (0.2302, 0.2265, 0.2262)),
    "imagenet": _IMAGENET,
}


def transform_for(data: Data, config: Config) -> Transform:
    """Return the transform of the settings: its statistics are those of the training samples.

    Images are cropped after padding by an eighth of their side: 4 pixels for CIFAR, 8 for
    Tiny-ImageNet. Images that are read lazily are cropped and mirrored as they are read.
    """
    inputs = data.train.inputs
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    if config.normalise and data.kind in ("image", "table"):
        if config.data in PUBLISHED:
            mean, std = PUBLISHED[config.data]
        elif isinstance(inputs, Tensor):
            mean, std = channel_statistics(inputs)
        elif _are_colour_bytes(inputs.read(0, None)):
            mean, std = _IMAGENET
    if config.augment and data.kind == "image" and isinstance(inputs, Tensor):
        return Transform(mean, std, padding=input_shape(data.train)[-1] // 8, flip=True)
    return Transform(mean, std)


def _are_colour_bytes(image: Tensor) -> bool:
    return image.dtype == torch.uint8 and image.dim() == 3 and len(image) == 3
