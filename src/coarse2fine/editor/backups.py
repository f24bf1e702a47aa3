"""Keep a file under a numbered name, `FILE.~1~` and so on, as GNU's tools do."""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path

from .._files import write_atomically


def keep_old(path: Path) -> Path:
    """Keep a file under the next free number beside it, and return that name.

    No other file is ever overwritten.

    Args:
        path: The file; it stays where it is.
    """
    for number in count(_highest(path) + 1):
        backup = path.with_name(f"{path.name}.~{number}~")
        try:
            _copy(path, backup)
        except FileExistsError:  # somebody took the number just now
            continue
        return backup
    raise AssertionError("unreachable")


def _highest(path: Path) -> int:
    """Return the highest number that is taken, or 0."""
    named = re.compile(re.escape(path.name) + r"\.~([0-9]+)~")
    found = (named.fullmatch(entry.name) for entry in path.parent.iterdir())
    return max((int(match[1]) for match in found if match), default=0)


def _copy(path: Path, backup: Path) -> None:
    """Give a file a second name, or copy it where the disk knows no second names."""
    try:
        os.link(path, backup)
    except FileExistsError:
        raise
    except OSError:
        _copy_bytes(path, backup)


def _copy_bytes(path: Path, backup: Path) -> None:
    """Copy a file to a new name; a kill leaves nothing there that could be taken for a copy."""
    data, mode = path.read_bytes(), path.stat().st_mode
    backup.touch(mode & 0o777, exist_ok=False)  # so that nobody else takes it
    try:
        os.chmod(backup, mode & 0o777)
        write_atomically(backup, data, named_after=path)
    except BaseException:
        backup.unlink()
        raise
