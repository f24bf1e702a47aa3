"""Errors in writing that say which file it was, and what to do."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_FULL = "free some, then do the same again"
_FORBIDDEN = "choose a place that can be written to, or make this one so"
_UNLOCKABLE = "choose a place on a disk that has locks, such as one of this machine"
_REMEDIES = {
    errno.ENOSPC: _FULL,
    getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,  # Windows has none
    errno.EFBIG: "allow larger ones (ulimit -f), then do the same again",
    errno.EROFS: _FORBIDDEN,
    errno.EACCES: _FORBIDDEN,
    errno.EPERM: _FORBIDDEN,
    errno.ENOSYS: _UNLOCKABLE,
    errno.ENOLCK: _UNLOCKABLE,
    errno.EOPNOTSUPP: _UNLOCKABLE,
}
# How libraries written in Rust tell of errors of the system.
_IN_TEXT = re.compile(r"([^:]+) \(os error (\d+)\)")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Have errors of the system say which file or folder could not be written, and what to do.

    Args:
        path: What is written, under whatever name meanwhile.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence already
            raise
        raise _telling(error.errno, error.strerror or str(error), path) from error
    except Exception as error:
        found = _IN_TEXT.search(str(error))
        if found is None:
            raise
        raise _telling(int(found[2]), found[1].strip(), path) from error


def _telling(number: int, what: str, path: Path) -> OSError:
    remedy = _REMEDIES.get(number)
    is_told = remedy is None or what.endswith(remedy)
    return OSError(number, what if is_told else f"{what}; {remedy}", str(path))
