"""Numbered backups of a file, `FILE.~1~` and so on, as GNU's tools name them."""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path

from .._util.files import write_atomically


def back_up(path: Path) -> Path:
    """Back a file up under the next free number beside it, and return that name.

    No other file is ever overwritten.

    Args:
        path: The file; it stays where it is.
    """
    # After the highest, not in the first gap, so that the order of numbers is that of time.
    for number in count(_highest(path) + 1):
        backup = path.with_name(f"{path.name}.~{number}~")
        try:
            _copy(path, backup)
        except FileExistsError:  # another process has just taken the number
            continue
        return backup
    raise AssertionError("unreachable")


def _highest(path: Path) -> int:
    """Return the highest number that is taken, or 0."""
    named = re.compile(re.escape(path.name) + r"\.~([0-9]+)~")
    found = (named.fullmatch(entry.name) for entry in path.parent.iterdir())
    return max((int(match[1]) for match in found if match), default=0)


def _copy(path: Path, backup: Path) -> None:
    """Give a file a second name, or copy it if the file system has no hard links.

    A link is as good as a copy, since a file is never written to but replaced; it takes no
    space, fails if the name is taken, and cannot be half done.
    """
    try:
        os.link(path, backup)
    except FileExistsError:
        raise
    except OSError:
        _copy_bytes(path, backup)


def _copy_bytes(path: Path, backup: Path) -> None:
    """Copy a file to a new name; a kill leaves at most an empty file, never a part of one."""
    data, mode = path.read_bytes(), path.stat().st_mode
    # Reserves the name, which the atomic rename alone would not: it overwrites.
    backup.touch(mode & 0o777, exist_ok=False)
    try:
        os.chmod(backup, mode & 0o777)
        write_atomically(backup, data, named_after=path)
    except BaseException:
        backup.unlink()
        raise
