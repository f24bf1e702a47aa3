"""Reading and writing small files so that nothing is half-written or half-read."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from .text import brief

Json = dict[str, Any]  # an object of JSON, as it is read or to be written

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
# Libraries written in Rust, as safetensors is, report system errors only in their text.
_IN_TEXT = re.compile(r"([^:]+) \(os error (\d+)\)")
# A temporary file is locked while it is written. The system releases the lock when the process
# ends, however it ends: so a file without a lock is one that a killed process has left.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_SUFFIX = ".tmp"


def write_atomically(path: Path, content: str | bytes, named_after: Path | None = None) -> None:
    """Write a file under a temporary name and rename it once it is on the disk.

    Readers see the old file or the new one, never a part. A file that is replaced keeps its
    mode. Temporary files of processes that were killed while writing the same file are removed.

    Args:
        path: The file.
        content: Its new content.
        named_after: The file in the same folder that the temporary name is made from. For a
            file that is written only once, whose leftovers nobody would remove, this is one
            that is written again. Defaults to None: `path`.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    if isinstance(content, str):
        # Surrogates, as in names of files that are not UTF-8, become escapes that JSON can read.
        content = content.encode("utf-8", errors="backslashreplace")
    remove_abandoned(named_after or path)
    with writing(path), temporary_file(named_after or path) as (handle, name):
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            # Before the rename: a disk may carry it out first, and a power cut between the two
            # would leave an empty file under the final name.
            os.fsync(file.fileno())
        if path.exists():
            os.chmod(name, stat.S_IMODE(path.stat().st_mode))
        else:
            make_readable(Path(name))
        os.replace(name, path)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Provide a temporary name for a file, which is renamed once it is complete.

    For libraries that want a name to write to. It is in a folder of its own, since they may
    make temporary files beside it, which a kill would leave; the next attempt removes them.

    Args:
        path: The file, which stays as it is until then.
    """
    folder = path.with_name(f".{path.name[:200]}.c2f-unfinished")
    try:
        with writing(path):
            shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was killed
            folder.mkdir()
            yield folder / path.name
            make_readable(folder / path.name)
            os.replace(folder / path.name, path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """Provide a folder under a temporary name, which is renamed once it is complete.

    Args:
        path: The folder, which stays as it is until then, and is replaced as a whole.
    """
    unfinished, old = (
        path.with_name(f".{path.name[:200]}.c2f-{what}") for what in ("unfinished", "old")
    )
    try:
        with writing(path):
            for left in (unfinished, old):  # by an attempt that was killed
                shutil.rmtree(left, ignore_errors=True)
            unfinished.mkdir()
            yield unfinished
            for file in unfinished.iterdir():
                make_readable(file)
                _sync(file)
            if path.exists():
                path.rename(old)
            unfinished.rename(path)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Have a file on the disk, and not only with the system."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def make_readable(path: Path) -> None:
    """Give a file the mode of any new file; `tempfile` and some libraries make it private."""
    os.chmod(path, 0o666 & ~_umask())


def parse_json(path: Path) -> Any:
    """Read a JSON file; the error for one that cannot be read names it in one sentence."""
    check_is_file(path)
    try:
        return decode_json(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None


def check_is_file(path: Path) -> None:
    """Raise a ValueError for a folder, a pipe or a device, which could be read forever."""
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is not a regular file.")


def decode_json(data: bytes) -> Any:
    """Return the content of JSON in UTF-8, or raise a ValueError with the reason."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply to be read.") from None
    except ValueError as error:  # also bad JSON, bad UTF-8 and numbers of too many digits
        raise ValueError(f"not readable as JSON: {error}") from None


def _refuse(constant: str) -> NoReturn:
    # Python reads NaN and Infinity, which are no JSON and which no checks of ours expect.
    raise ValueError(f"{constant} is not a JSON number")


def _umask() -> int:
    # The only way to read it is to set it; this is not safe beside threads that make files.
    mask = os.umask(0)
    os.umask(mask)
    return mask


# ---------------------------------------------------------------------- errors that say what to do


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make system errors say which file or folder could not be written, and what to do.

    Args:
        path: What is written, whatever its temporary name.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # a sentence already
            raise
        raise _explained(error.errno, error.strerror or str(error), path) from error
    except Exception as error:
        found = _IN_TEXT.search(str(error))
        if found is None:
            raise
        raise _explained(int(found[2]), found[1].strip(), path) from error


def _explained(number: int, what: str, path: Path) -> OSError:
    remedy = _REMEDIES.get(number)
    # These contexts may be nested, and the inner one has added the remedy already.
    is_explained = remedy is None or what.endswith(remedy)
    return OSError(number, what if is_explained else f"{what}; {remedy}", str(path))


# --------------------------------------------------------------------------------- temporary files


@contextmanager
def temporary_file(path: Path) -> Iterator[tuple[int, str]]:
    """Provide a new file beside another, open and locked, and remove it unless it was renamed.

    Args:
        path: The other file.
    """
    handle, name = _new_file(path)
    # The caller closes its handle before renaming, and the lock lasts as long as any handle of
    # the same opening. Not on Windows, which renames no file that is open.
    keeper = os.dup(handle) if _fcntl else None
    try:
        yield handle, name
    finally:
        Path(name).unlink(missing_ok=True)
        if keeper is not None:
            os.close(keeper)


def remove_abandoned(path: Path) -> None:
    """Remove a file's temporary files that no living process is writing.

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
    # The name could be a link or, as a pipe has no end, something that opening would wait for.
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
        # Between making and locking it, another process may have taken it for abandoned and
        # removed it; then it has no name any more, and the next one is tried.
        if os.fstat(handle).st_nlink:
            return handle, name
        os.close(handle)


def _prefix(path: Path) -> str:
    return f".{path.name[:40]}.c2f-"
