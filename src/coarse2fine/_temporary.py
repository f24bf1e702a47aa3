"""Temporary files that can be told from those that killed processes have left."""

from __future__ import annotations

import importlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

# Who writes holds a lock, which the system lets go when the process ends, however it ends.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_SUFFIX = ".tmp"


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[int, str]]:
    """Provide a new file beside another, open and locked, and remove it unless it is renamed.

    Args:
        path: The other file.
    """
    handle, name = _new_file(path)
    keeper = os.dup(handle) if _fcntl else None  # Windows renames no file that is open
    try:
        yield handle, name
    finally:
        Path(name).unlink(missing_ok=True)
        if keeper is not None:
            os.close(keeper)


def remove_abandoned(path: Path) -> None:
    """Remove temporary files of a file that no living process is writing.

    Args:
        path: The file.
    """
    if _fcntl is None:
        return
    named = re.compile(re.escape(_prefix(path)) + r"[a-z0-9_]{8}" + re.escape(_SUFFIX))
    entries: list[Path] = []
    with suppress(PermissionError):  # a folder may be written to by more than may look into it
        entries += path.parent.iterdir()
    for entry in entries:
        if named.fullmatch(entry.name):
            with suppress(OSError):  # it is being written, another user's, or gone already
                _remove_unless_locked(entry)


def _remove_unless_locked(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            _fcntl.flock(handle, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(handle)


def _new_file(path: Path) -> tuple[int, str]:
    """Return the handle and the name of a new file, locked where the system can."""
    while True:
        try:
            handle, name = tempfile.mkstemp(_SUFFIX, _prefix(path), path.parent)
        except OSError as error:  # which names the temporary file
            raise OSError(error.errno, error.strerror, str(path)) from None
        if _fcntl is None:
            return handle, name
        with suppress(OSError):  # on disks without locks nothing is ever removed
            _fcntl.flock(handle, _fcntl.LOCK_EX)
        if os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)  # somebody took it for abandoned before it was locked


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}.c2f-"
