"""Whether a run's directory may be written: not by links, other settings or two at a time."""

from __future__ import annotations

import errno
import importlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._util.files import Json, parse_json, writing
from .._util.text import brief
from ..errors import RunError, require
from .config import HIERARCHY_WORDS
from .directory import COMPARISON, CONFIG, OLD_VERSION, check_known

LOCK = ".lock"
# Of the system, where it has locks of this kind.
_fcntl: Any = importlib.import_module("fcntl") if os.name == "posix" else None
_PATHS = ("data", "hierarchy")  # settings that may be written in more than one way


def check_no_links(*places: Path) -> None:
    """Raise a `RunError` for a link, a pipe or a device where files are to be written.

    A run directory may come from anyone, and by a link in it they could have any file of the
    user's overwritten.

    Args:
        places: Files and folders, which need not exist.
    """
    for place in places:
        if place.is_symlink() or (place.exists() and not (place.is_file() or place.is_dir())):
            raise RunError(
                f"{place} is a link or a device, so what is written would end up elsewhere; "
                f"remove it, or choose another folder."
            )


def check_same(path: Path, content: Json, but: tuple[str, ...] = ()) -> None:
    """Raise a `RunError` where a run was begun with something else.

    Args:
        path: The directory; its config's ``"config"`` and ``"data"`` are compared.
        content: What is wanted now.
        but: Names of settings that may differ. Defaults to none.
    """
    try:
        found = parse_json(path / CONFIG)
        check_known(path / CONFIG, found)
        if found.get("version") == OLD_VERSION:
            raise _of_an_older_version(path)
        parts = [
            (dict(found[part]), content[part]) for part in ("config", "data") if part in content
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        # A comparison has nothing in its config that is not written anew.
        damaged = path / CONFIG if content.get("format") == COMPARISON else path
        raise RunError(
            f"{path / CONFIG} is not a run's config ({brief(error)}); remove {damaged} to have it "
            f"made anew, or choose another folder."
        ) from None
    for old, new in parts:
        new = json.loads(json.dumps(new))
        for name in sorted((old.keys() | new.keys()) - set(but)):
            if not _is_same(name, old.get(name), new.get(name)):
                raise RunError(
                    f"{path} was begun with {brief(name)} = {_short(old.get(name))}, now "
                    f"it is {_short(new.get(name))}; give the same settings to resume, or choose "
                    f"another folder."
                )


def _is_same(name: str, old: Any, new: Any) -> bool:
    """Whether two values of a setting mean the same: photos, photos/ and ./photos do."""
    is_word = name == "hierarchy" and (old in HIERARCHY_WORDS or new in HIERARCHY_WORDS)
    if name in _PATHS and not is_word and isinstance(old, str) and isinstance(new, str):
        one, other = (os.path.normpath(Path(given).absolute()) for given in (old, new))
        return one == other
    return bool(old == new)


def check_writable(path: Path) -> None:
    """Raise an `OSError` that says why a folder cannot be made or written, before it is needed.

    Args:
        path: The folder, which need not exist.
    """
    place = next(each for each in (path, *path.parents) if each.exists())
    if not place.is_dir():
        raise NotADirectoryError(
            errno.ENOTDIR, "a file is where a folder should be; choose another", str(place)
        )
    with writing(path), tempfile.TemporaryFile(dir=place):
        pass


def _of_an_older_version(path: Path) -> RunError:
    return RunError(
        f"{path} was made by coarse2fine 0.1, which drew other random numbers, so it cannot be "
        f"resumed; what is finished in it can still be evaluated, exported and reported on. To "
        f"train, choose another folder."
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep a run directory for this process; the system lets it go when the process ends."""
    filelock = require("filelock", "train")
    check_no_links(*path.glob("*"))
    lock = filelock.FileLock(path / LOCK)
    try:
        with writing(path):
            path.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
    except filelock.Timeout:
        raise RunError(
            f"{path} is in use by another process; wait for it, or choose another folder."
        ) from None
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Whether a process of this machine keeps a run directory for itself."""
    lock = path / LOCK
    if not lock.is_file():
        return False
    if _fcntl is None:  # a try for a moment, as Windows tells in no other way
        try:
            with require("filelock", "train").FileLock(lock, timeout=0):
                return False
        except TimeoutError:
            return True
    # Shared, so that several may ask at a time, and on a handle that cannot write.
    with lock.open("rb") as file:
        try:
            _fcntl.flock(file, _fcntl.LOCK_SH | _fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def _short(value: Any) -> str:
    return brief(json.dumps(value, ensure_ascii=False), 60)
