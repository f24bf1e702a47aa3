"""Whether stored weights are those of a model, before any memory is taken for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..data import Kind
from ..models import build_model, is_ours


def check_kind(shape: tuple[Any, ...], class_names: tuple[Any, ...]) -> None:
    """Raise a ValueError where a model cannot be for such data.

    Args:
        shape: Of one sample, as a file has it.
        class_names: As a file has them.
    """
    if len(class_names) < 2 or not all(isinstance(name, str) for name in class_names):
        raise ValueError("class_names must hold two or more strings")
    if not all(type(size) is int and size > 0 for size in shape):
        raise ValueError("input_shape must hold integers from 1 on")


def check_fits(
    model: Any, num_classes: int, shape: tuple[int, ...], kind: Kind, weights: Mapping[str, Tensor]
) -> None:
    """Raise a ValueError where one of our models would have other weights than these.

    A run's config of a few bytes may ask for a model that no memory holds.

    Args:
        model: What makes it; anyone's own may do more than to make layers, and is let alone.
        num_classes: How many classes there are.
        shape: Of one sample.
        kind: What the data is.
        weights: What was stored.
    """
    if not is_ours(model):
        return
    with torch.device("meta"):
        wanted = build_model(model, num_classes, shape, kind).state_dict()
    if {name: x.shape for name, x in wanted.items()} != {n: x.shape for n, x in weights.items()}:
        raise ValueError("the weights are those of another model")
