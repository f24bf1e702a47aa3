"""Reading the pickles of CIFAR, which Python 2 wrote, without running what is in them."""

from __future__ import annotations

import pickle
import pickletools
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._util.text import brief

# The instructions that plain values need. The others make objects in further ways, or claim
# memory before there is anything to put into it.
_NEEDED = {
    "MARK", "STOP", "PROTO", "PUT", "BINPUT", "LONG_BINPUT", "GET", "BINGET", "LONG_BINGET",
    "NONE", "NEWTRUE", "NEWFALSE", "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1",
    "FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING",
    "LIST", "EMPTY_LIST", "APPEND", "APPENDS", "DICT", "EMPTY_DICT", "SETITEM", "SETITEMS",
    "TUPLE", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "GLOBAL", "REDUCE", "BUILD",
}  # fmt: skip


Plain = int | float | bytes
"""What a list in a pickle may hold."""


def plain_values(data: bytes, name: str) -> dict[str, Plain | list[Plain] | NDArray[np.uint8]]:
    """Return a pickled dict of numbers, bytes, lists and uint8 arrays.

    Nothing that a pickle names is called: arrays are put together here from their bytes. Nor
    does it take more memory than the pickle is long, whatever sizes it claims.

    Args:
        data: The pickle.
        name: What to call it in an error.

    Raises:
        ValueError: It holds anything else, or is broken.
    """
    try:
        _check_instructions(data)
        values = _PlainUnpickler(BytesIO(data), encoding="bytes").load()
        return {key.decode(): _plain(value) for key, value in values.items()}
    except Exception as error:  # a broken pickle leads its reader to raise whatever
        raise ValueError(
            f"{name} is not a pickle of plain values ({brief(error)}); download it again."
        ) from error


def _check_instructions(data: bytes) -> None:
    """Refuse what plain values do not need, before any of it is carried out.

    Memos must be numbered in turn: the unpickler makes room for as many as the highest number
    says, up to many GB.
    """
    argument: Any
    for count, (instruction, argument, _) in enumerate(pickletools.genops(data), 1):
        if instruction.name not in _NEEDED:
            raise pickle.UnpicklingError(f"it has the instruction {instruction.name}")
        if instruction.name == "GLOBAL":
            _stand_in(*argument.split(" ", 1))
        if instruction.name.endswith("PUT") and not 0 <= argument <= count:
            raise pickle.UnpicklingError(f"it has the memo {argument}")


def _plain(value: Any) -> Any:
    """Return an array, a number, bytes or a list of these; no lists within lists.

    Few bytes make lists of lists that are seen as more numbers than any memory holds.
    """
    if isinstance(value, _Array):
        return value.array
    items = value if isinstance(value, list) else [value]
    if not all(isinstance(item, int | float | bytes) for item in items):
        raise pickle.UnpicklingError("it holds other than numbers, bytes, arrays and lists of them")
    return value


class _Array:
    """Stands for a numpy array, empty at first; numpy's own takes the memory it is told to."""

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


_STAND_INS = {
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
}


def _stand_in(module: str, name: str) -> type[_Array] | type[_Type]:
    if (module, name) not in _STAND_INS:
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")
    return _STAND_INS[module, name]


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _stand_in(module, name)
