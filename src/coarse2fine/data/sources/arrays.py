"""Arrays, images and lists as tensors that models take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..split import Kind

_CHANNELS = (1, 3, 4)


def as_sample(value: Any, name: str) -> Tensor:
    """Return one input as a tensor; PIL images and arrays of images become channels first.

    Args:
        value: A tensor, an array, a PIL image, a number or a list of numbers.
        name: What to call it in an error.

    Examples:
        >>> as_sample(np.zeros((8, 6, 3), np.uint8), "sample 0").shape
        torch.Size([3, 8, 6])
    """
    if type(value).__module__.partition(".")[0] == "PIL":
        value = np.asarray(value if value.mode in ("L", "RGB") else value.convert("RGB"))
    return _usual(_tensor(value, name, leading=0), leading=0)


def as_inputs(values: Any, role: str) -> Tensor:
    """Return inputs, one row a sample, as a tensor.

    Args:
        values: A tensor, an array or a list of what `as_sample` takes.
        role: What to call them in an error.
    """
    if isinstance(values, list | tuple):
        return _stacked(values, role)
    return _usual(_tensor(values, role, leading=1), leading=1)


def kind_of(sample: Tensor) -> Kind:
    """Return what kind of data a sample is of, by its shape and type.

    Examples:
        >>> [kind_of(torch.zeros(3, 8, 8)), kind_of(torch.zeros(5)), kind_of(torch.tensor([7, 0]))]
        ['image', 'table', 'text']
    """
    if sample.dim() == 3 and (sample.is_floating_point() or sample.dtype == torch.uint8):
        return "image"
    if sample.dim() == 1:
        return "table" if sample.is_floating_point() else "text"
    return "other"


def check_samples_finite(inputs: Tensor, role: str, first: int = 0) -> None:
    """Refuse inputs that hold NaN or infinity.

    Args:
        inputs: One row a sample.
        role: What to call them in an error.
        first: The number of the first row. Defaults to 0.
    """
    if not inputs.is_floating_point():
        return
    # A sum is finite only if all its parts are, and needs no second array of their size.
    sums = inputs.flatten(start_dim=1).sum(dim=1, dtype=torch.float64)
    for row in torch.nonzero(~torch.isfinite(sums)).flatten().tolist():
        raise ValueError(
            f"{role}: sample {first + row} holds NaN or infinity; correct it or leave it out."
        )


def check_shape(sample: Tensor, shape: Sequence[int], role: str, row: int) -> None:
    """Refuse a sample of another shape than the first one's.

    Args:
        sample: The sample.
        shape: That of the first one.
        role: What to call the data in an error.
        row: The number of the sample.
    """
    if sample.shape != shape:
        raise ValueError(
            f"{role}: sample {row} has the shape {tuple(sample.shape)}, but sample 0 "
            f"{tuple(shape)}; bring all to one shape."
        )


def _stacked(values: Sequence[Any], role: str) -> Tensor:
    samples = [as_sample(value, f"{role}: sample {row}") for row, value in enumerate(values)]
    for row, sample in enumerate(samples):
        check_shape(sample, samples[0].shape, role, row)
    return torch.stack(samples)


def _tensor(values: Any, name: str, leading: int) -> Tensor:
    """Return values as a tensor; of images that have their channels last, those first."""
    if isinstance(values, Tensor):
        return values.detach()
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold numbers, images or sentences. Got {type(values).__name__}"
            f"{f' of {array.dtype}' if array.ndim else ''}."
        )
    is_image = array.ndim == leading + 3 and (array.dtype == np.uint8 or array.dtype.kind == "f")
    if is_image and array.shape[-1] in _CHANNELS and array.shape[-3] not in _CHANNELS:
        array = np.moveaxis(array, -1, -3)
    # Torch knows few types, no other order of bytes, and no arrays that may not be written to.
    types = {"b": np.bool_, "f": np.float32, "i": np.int64, "u": np.int64}
    dtype = np.uint8 if array.dtype == np.uint8 else types[array.dtype.kind]
    with np.errstate(over="ignore"):  # infinity is found later, and its row named
        return torch.from_numpy(np.require(array, dtype, ["C", "W"]))


def _usual(tensor: Tensor, leading: int) -> Tensor:
    """Return numbers as float32, integers as int64, pixels as bytes with channels."""
    if tensor.dtype == torch.uint8 and tensor.dim() - leading > 1:
        return tensor.unsqueeze(-3) if tensor.dim() - leading == 2 else tensor
    is_integer = not tensor.is_floating_point() and tensor.dtype not in (torch.bool, torch.uint8)
    return tensor.to(torch.int64 if is_integer else torch.float32)
