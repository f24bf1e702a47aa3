"""Reading and writing small files so that nothing is half-written or half-read."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from ._printable import brief
from ._temporary import remove_abandoned, temporary_file
from ._writing import writing
from .errors import RunError


def write_atomically(path: Path, content: str | bytes, named_after: Path | None = None) -> None:
    """Write a file under a temporary name and rename it once it is on the disk.

    A file that is replaced keeps its mode. What processes have left that were killed while
    they wrote the same file is removed.

    Args:
        path: The file.
        content: What it will hold.
        named_after: The file in the same folder that the temporary name is made from, if
            this one is not written again. Defaults to None: `path`.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    if isinstance(content, str):
        # What UTF-8 cannot hold, as in names of files that are not UTF-8, becomes JSON's escapes.
        content = content.encode("utf-8", errors="backslashreplace")
    remove_abandoned(named_after or path)
    with writing(path), temporary_file(named_after or path) as (handle, name):
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        else:
            make_readable(Path(name))
        os.replace(name, path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary name for a file, which gets its own once all of it is written.

    It is in a folder of its own, as libraries make temporary files too, which a kill leaves;
    the next attempt removes them.

    Args:
        path: The file, as it was until then.
    """
    folder = path.with_name(f".{path.name[:200]}.c2f-unfinished")
    try:
        with writing(path):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            yield folder / path.name
            make_readable(folder / path.name)
            os.replace(folder / path.name, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_readable(path: Path) -> None:
    """Give a file the mode of any new file, where a library made it private."""
    os.chmod(path, 0o666 & ~_umask())


def parse_json(path: Path) -> Any:
    """Read a JSON file, with one sentence that names it where it cannot be read."""
    check_is_file(path)
    try:
        return decode_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None


def check_is_file(path: Path) -> None:
    """Refuse a folder, a pipe or a device, which could be read for ever, by a ValueError."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file.")


def check_no_links(*places: Path) -> None:
    """Raise a `RunError` for a link, a pipe or a device where files are written.

    A run directory may have come from anyone, and what is written by such a name ends up
    elsewhere.

    Args:
        places: Files and folders, which need not exist.
    """
    for place in places:
        if place.is_symlink() or (place.exists() and not (place.is_file() or place.is_dir())):
            raise RunError(
                f"{place} is a link or a device, so what is written would end up elsewhere; "
                f"remove it, or choose another folder."
            )


def decode_json(data: bytes) -> Any:
    """Return what JSON in UTF-8 holds, or say in one sentence why it cannot be read."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply to be read.") from None
    except ValueError as error:  # also bad JSON, bad UTF-8 and numbers of too many digits
        raise ValueError(f"not readable as JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
