"""Files whose checksums are known, and what is inside archives, read without unpacking."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath

from ..._util.text import brief

MOST_BYTES = 1 << 29
"""No file of the known archives is as large; one that claims to be is not read."""


def checked_bytes(path: Path, checksums: Mapping[str, str]) -> bytes:
    """Return what a file holds, if its md5 is right, or not known.

    Args:
        path: The file.
        checksums: The md5 of files by their names.
    """
    data = path.read_bytes()
    found = hashlib.md5(data, usedforsecurity=False).hexdigest()
    expected = checksums.get(path.name, found)
    if found != expected:
        what = "archive" if path.suffix in (".gz", ".zip") else "file"
        raise ValueError(
            f"{path} is not the official {what}: md5 {found}, expected {expected}; download it "
            f"again."
        )
    return data


def tar_members(archive: bytes, names: Collection[str], where: Path) -> dict[str, bytes]:
    """Return what the files of a tar.gz hold, by their names without folders.

    Args:
        archive: The bytes of the archive.
        names: The files to read.
        where: What to call the archive in an error.

    Raises:
        ValueError: It is broken, or a file in it is far too large.
    """
    members = {}
    try:
        with tarfile.open(fileobj=BytesIO(archive), mode="r:gz") as tar:
            for member in tar:
                check_size(member.size, member.name)
                name = PurePosixPath(member.name).name
                content = tar.extractfile(member) if name in names and member.isfile() else None
                if content is not None:
                    members[name] = content.read()
    except Exception as error:  # a broken archive leads its reader to raise whatever
        raise broken(where, error) from error
    return members


def check_size(size: int, name: str) -> None:
    """Raise a ValueError where a file in an archive claims to be larger than any should be."""
    if not 0 <= size <= MOST_BYTES:
        raise ValueError(f"{name} would have {size} bytes")


def broken(where: Path, error: Exception) -> ValueError:
    """Return what to raise where an archive, or a file of it, cannot be read."""
    return ValueError(f"{where} cannot be read ({brief(error)}); download it again.")


def decoded(data: bytes, where: Path) -> str:
    """Return UTF-8 as text, or say in one sentence that a file holds something else."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise broken(where, error) from None
