"""Keep freed memory for the next step, and say so where there is not enough."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torch import OutOfMemoryError

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST = 1 << 30
# GPUs have an exception of their own; the CPU's is a plain RuntimeError, told by its words.
_SHORT_OF_MEMORY = re.compile(r"not enough memory|out of memory|allocate memory", re.IGNORECASE)


def keep_freed_memory() -> bool:
    """Tell the C library to keep freed memory, and return whether it could be told.

    The activations of a step on the CPU are allocated anew each time. By default glibc gives
    blocks of their size back to the system at once, and the page faults on the next ones
    cost up to 40% of a step. Only glibc on Linux is told; elsewhere this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _LARGEST) and mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST - 1)
    )


@contextmanager
def memory_errors_explained() -> Iterator[None]:
    """Say in one sentence that memory has run out, however a library puts it.

    Raises:
        MemoryError: It has.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_short = isinstance(error, MemoryError | OutOfMemoryError)
        if not is_short and not _SHORT_OF_MEMORY.search(str(error)):
            raise
        reason = (str(error) or "nothing more could be had").partition("\n")[0]
        raise MemoryError(
            f"memory has run out ({reason}); free some, and the same command goes on from the "
            f"last checkpoint; or take another folder and a smaller batch_size, a larger "
            f"accumulate, or fewer workers."
        ) from error
