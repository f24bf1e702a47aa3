"""Reading and writing small files so that nothing is half-written or half-read."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any, NoReturn


def write_atomically(path: Path, text: str) -> None:
    """Write text under a temporary name and rename it once it is on the disk.

    A file that is replaced keeps its mode.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    try:
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name[:40]}.", suffix=".tmp"
        )
    except OSError as error:  # which names the temporary file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        # What UTF-8 cannot hold, as in names of files that are not UTF-8, becomes JSON's escapes.
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        else:
            make_readable(Path(name))
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def make_readable(path: Path) -> None:
    """Give a file the mode of any new file, where a library made it private."""
    os.chmod(path, 0o666 & ~_umask())


def parse_json(path: Path) -> Any:
    """Read a JSON file, with one sentence that names it where it cannot be read."""
    try:
        return decode_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


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
