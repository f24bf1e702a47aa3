"""Turning what users have (lists, numpy arrays, torch tensors) into numpy arrays."""

from __future__ import annotations

import sys
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
IntArray = NDArray[np.int64]


def is_tensor(value: object) -> bool:
    """Return whether `value` is a torch tensor, without importing torch.

    Whoever has a tensor has imported torch; importing it here would take a second for others.
    """
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_numpy(value: Any) -> Array:
    """Return `value` as a numpy array; a tensor is detached and moved to the CPU."""
    if is_tensor(value):
        # numpy has no bfloat16, nor float8; float32 holds all of them exactly.
        tensor = value.detach().cpu()
        return np.asarray(tensor.float().numpy() if _is_half(tensor) else tensor.numpy())
    return np.asarray(value)


def to_floats(value: Any, what: str) -> Array:
    """Return `value` as float32 or float64, without loss if one of them can hold it."""
    array = _to_rectangle(value, what)
    if not array.dtype.isnative:  # other byte order, as in files from other machines
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype in (np.float32, np.float64):
        return array
    if array.dtype == np.float16:
        return array.astype(np.float32)
    if not (np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_):
        raise TypeError(f"{what} must hold real numbers. Got dtype {array.dtype}.")
    return array.astype(np.float64)


def to_integers(value: Any, what: str) -> IntArray:
    """Return `value` as int64, refusing anything that is not a whole number."""
    array = _to_rectangle(value, what)
    if array.size == 0:  # an empty list is float64 to numpy
        return array.astype(np.int64)
    if np.issubdtype(array.dtype, np.integer):
        return array.astype(np.int64)
    raise TypeError(f"{what} must hold integers. Got dtype {array.dtype}.")


def check_stored(tensor: Any, what: str) -> None:
    """Raise a ValueError for a tensor with more entries than its storage holds.

    By a stride of 0, a file of a few bytes can describe a tensor that no memory could hold as
    soon as it is copied.
    """
    is_plain = str(tensor.layout) == "torch.strided" and tensor.device.type == "cpu"
    if not is_plain or tensor.untyped_storage().nbytes() < tensor.numel() * tensor.element_size():
        raise ValueError(f"{what} must be a plain tensor with all of its entries stored.")


def check_entries_finite(array: Array, what: str) -> None:
    """Raise a ValueError that names the first entry of `array` that is not finite."""
    finite = np.isfinite(array)
    if not finite.all():
        entry = np.argwhere(~finite)[0]
        place = ", ".join(str(int(index)) for index in entry)
        raise ValueError(
            f"{what}[{place}] is {array[tuple(entry)]}; every entry must be a finite number."
        )


def _to_rectangle(value: Any, what: str) -> Array:
    try:
        return to_numpy(value)
    except ValueError as error:
        raise ValueError(f"{what} must be a rectangular array of numbers: {error}") from error


def _is_half(tensor: Any) -> bool:
    return bool(tensor.is_floating_point() and tensor.element_size() < 4)


def check_whole(value: Any, what: str) -> int:
    """Return `value` as an int, refusing whatever is not a whole number."""
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} must be an integer. Got {short(value)}.")
    return int(value)
