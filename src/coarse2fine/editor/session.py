"""One file that is being edited: what it holds, saving it, and keeping the old one."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import warnings
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from .._hierarchy.files import is_arrays
from .._util.files import decode_json, write_atomically, writing
from ..hierarchy import Hierarchy
from .backups import back_up


class Found(NamedTuple):
    """The content of a file, and the digest of its bytes: None where it is yet to be written."""

    hierarchy: Hierarchy
    digest: str | None


class Saved(NamedTuple):
    """The digest of what was written, and the backup of the old file if there is one."""

    digest: str
    backup: Path | None


class ChangedError(Exception):
    """The file has been changed by somebody else in the meantime.

    Args:
        message: One sentence.
        digest: Of the file as it is now, or None where it is gone.
    """

    def __init__(self, message: str, digest: str | None) -> None:
        super().__init__(message)
        self.digest = digest


class Session:
    """A hierarchy's file while it is edited; saving never loses what was there before.

    Links are followed once, at the start, so that it is always the same file that is written,
    and its backups are beside it; the rename of a save would replace a link by a file.

    Args:
        file: JSON that `Hierarchy.save` wrote; or a new file, with what it begins with.
        start: What a new file begins with; nothing is written before it is saved. Defaults to
            None: the file is there.
        command: That uses the saved file. Defaults to ``""``: none is known.

    Attributes:
        path: The file itself, links followed.
        command: That uses it.
        backups: The old files that were kept, in order.
        has_saved: Whether anything was saved.
    """

    def __init__(
        self, file: str | os.PathLike[str], start: Hierarchy | None = None, command: str = ""
    ) -> None:
        self.path = Path(os.path.realpath(file))
        if is_arrays(self.path):
            raise ValueError(f"{file}: the editor reads and writes JSON alone; name it .json.")
        self.command = command
        self.backups: list[Path] = []
        self._lock = Lock()
        self.has_saved = False
        self._own: str | None = None  # digest of what this session wrote last
        self._start = start
        hierarchy, _ = self._read()
        self._classes = (hierarchy.num_classes, hierarchy.class_names)

    @property
    def is_new(self) -> bool:
        """Whether the file is yet to be written for the first time."""
        return self._start is not None and not self.has_saved

    def read(self) -> Found:
        """Return what the file holds now, unless its classes are no longer the same."""
        found = self._read()
        self._check_classes(found.hierarchy)
        return found

    def save(self, content: Any, replaces: str | None) -> Saved:
        """Write a hierarchy with the same classes, whole or not at all.

        The old file is backed up before the first save, and whenever the file is not what this
        session wrote last. After a save was refused it is backed up in any case: that save may
        be of another page, which has not seen what this session wrote.

        Args:
            content: As `Hierarchy.to_dict` returns it.
            replaces: The digest of the file that may be replaced, None where it is gone.

        Raises:
            ValueError: It is no hierarchy of these classes.
            ChangedError: The file is not the one that may be replaced.
            OSError: It cannot be written; the file is as it was.
        """
        hierarchy = _hierarchy(content)
        self._check_classes(hierarchy)
        text = json.dumps(hierarchy.to_dict(), ensure_ascii=False) + "\n"
        # From looking at the file to writing it, no other request of this server may write.
        with self._lock:
            present = self._digest()
            if present != replaces:
                self._own = None  # another page may have written it
                state = "is gone" if present is None else "was changed by somebody else"
                raise ChangedError(f"{self.path.name} {state} meanwhile.", present)
            backup = self._replace(text, present)
            self.has_saved = True
            self._own = _digest(text.encode("utf-8", "backslashreplace"))
            return Saved(self._own, backup)

    def outcome(self) -> str:
        """Return in one sentence whether it was saved, and where the old file is."""
        with self._lock:  # waits for a save in progress
            if self.is_new:
                return f"nothing was saved; there is no {self.path}"
            if not self.has_saved:
                return f"nothing was saved; {self.path} is as it was"
            kept = ", ".join(str(path) for path in self.backups)
            return f"saved as {self.path}" + (f"; the old one is {kept}" if kept else "")

    def _replace(self, text: str, present: str | None) -> Path | None:
        """Write the file and return where the old one is, if it had to be kept."""
        if present is None:
            write_atomically(self.path, text)
            return None
        # A rename would replace a read-only file without asking.
        if not os.access(self.path, os.W_OK):
            raise PermissionError(errno.EACCES, "the file is read-only", str(self.path))
        with writing(self.path):
            backup = back_up(self.path) if present != self._own else None
        try:
            write_atomically(self.path, text)
        except BaseException:
            if backup is not None and self.path.exists():  # else it is all that is left
                backup.unlink()
            raise
        if backup is not None:
            self.backups.append(backup)
        return backup

    def _read(self) -> Found:
        if self._start is not None and self.is_new and not self.path.exists():
            return Found(self._start, None)
        data = self.path.read_bytes()
        try:
            return Found(_hierarchy(decode_json(data)), _digest(data))
        except ValueError as error:
            raise ValueError(f"{self.path}: {error}") from None

    def _digest(self) -> str | None:
        try:
            return _digest(self.path.read_bytes())
        except FileNotFoundError:
            return None

    def _check_classes(self, hierarchy: Hierarchy) -> None:
        if (hierarchy.num_classes, hierarchy.class_names) != self._classes:
            raise ValueError(
                f"the classes are not those that {self.path.name} had when the editor was "
                f"started; start it anew to edit others."
            )


# catch_warnings changes a setting of the whole process, and restores what it found: two threads
# at once could restore each other's.
_WARNINGS = Lock()


def _hierarchy(content: Any) -> Hierarchy:
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the page itself says when there is no coarse level
        try:
            return Hierarchy.from_dict(content)
        except TypeError as error:
            raise ValueError(str(error)) from None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
