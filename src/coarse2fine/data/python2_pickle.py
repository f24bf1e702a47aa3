"""Reading the pickles of CIFAR, which Python 2 wrote, without running what is in them."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np


def plain_values(data: bytes, name: str) -> dict[str, Any]:
    """Return a pickled dict of numbers, bytes, lists and uint8 arrays.

    Nothing that a pickle names is called: arrays are put together here from their bytes.

    Args:
        data: The pickle.
        name: What to call it in an error.

    Raises:
        ValueError: It holds anything else, or is broken.
    """
    try:
        values = _PlainUnpickler(BytesIO(data), encoding="bytes").load()
        plain = {
            key.decode(): value.array if isinstance(value, _Array) else value
            for key, value in values.items()
        }
    except Exception as error:  # a broken pickle leads its reader to raise whatever
        raise ValueError(
            f"{name} is not a pickle of plain values ({error}); download it again."
        ) from error
    return plain


class _Array:
    """Stands for a numpy array, empty at first."""

    def __init__(self, *_: Any) -> None:
        self.array = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _version, shape, kind, by_columns, content = state
        if not isinstance(kind, _Type) or kind.name != b"u1":
            raise pickle.UnpicklingError("an array is not of uint8")
        array = np.frombuffer(content, np.uint8)
        self.array = array.reshape(shape[::-1]).T if by_columns else array.reshape(shape)


class _Type:
    """Stands for the type of an array's elements, known by its name."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name

    def __setstate__(self, _state: Any) -> None:
        """Take no state, as the name says it all."""


class _PlainUnpickler(pickle.Unpickler):
    _stand_ins = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._stand_ins:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self._stand_ins[module, name]
