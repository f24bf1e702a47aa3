"""Reading the pickles of CIFAR, which Python 2 wrote, without running what is in them."""

from __future__ import annotations

import pickle
from io import BytesIO
from typing import Any

import numpy as np

from .._printable import brief


def plain_values(data: bytes, name: str) -> dict[str, Any]:
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
        values = _PlainUnpickler(BytesIO(data), encoding="bytes").load()
        plain = {key.decode(): _plain(value) for key, value in values.items()}
    except Exception as error:  # a broken pickle leads its reader to raise whatever
        raise ValueError(
            f"{name} is not a pickle of plain values ({brief(error)}); download it again."
        ) from error
    return plain


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


class _Instructions(dict[int, Any]):
    """What the instructions of a pickle do, of those that plain values need.

    The others make objects in further ways, or claim memory before there is anything to put
    into it.
    """

    def __missing__(self, code: int) -> Any:
        raise pickle.UnpicklingError(f"it has the instruction 0x{code:02x}")


_NEEDED = (
    pickle.MARK + pickle.STOP + pickle.PROTO
    + pickle.PUT + pickle.BINPUT + pickle.LONG_BINPUT
    + pickle.GET + pickle.BINGET + pickle.LONG_BINGET
    + pickle.NONE + pickle.NEWTRUE + pickle.NEWFALSE
    + pickle.INT + pickle.BININT + pickle.BININT1 + pickle.BININT2 + pickle.LONG + pickle.LONG1
    + pickle.FLOAT + pickle.BINFLOAT
    + pickle.STRING + pickle.BINSTRING + pickle.SHORT_BINSTRING
    + pickle.LIST + pickle.EMPTY_LIST + pickle.APPEND + pickle.APPENDS
    + pickle.DICT + pickle.EMPTY_DICT + pickle.SETITEM + pickle.SETITEMS
    + pickle.TUPLE + pickle.EMPTY_TUPLE + pickle.TUPLE1 + pickle.TUPLE2 + pickle.TUPLE3
    + pickle.GLOBAL + pickle.REDUCE + pickle.BUILD
)  # fmt: skip


# The one written in Python: the one in C makes room for as many memos as a pickle claims to have.
class _PlainUnpickler(pickle._Unpickler):
    dispatch = _Instructions({code: pickle._Unpickler.dispatch[code] for code in _NEEDED})
    _stand_ins = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
    }

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._stand_ins:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return self._stand_ins[module, name]
