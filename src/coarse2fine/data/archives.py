"""Files whose checksums are known, and what is inside archives, read without unpacking."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Collection, Mapping
from io import BytesIO
from pathlib import Path, PurePosixPath


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


def tar_members(archive: bytes, names: Collection[str]) -> dict[str, bytes]:
    """Return what the files of a tar.gz hold, by their names without folders.

    Args:
        archive: The bytes of the archive.
        names: The files to read.
    """
    members = {}
    with tarfile.open(fileobj=BytesIO(archive), mode="r:gz") as tar:
        for member in tar:
            name = PurePosixPath(member.name).name
            content = tar.extractfile(member) if name in names and member.isfile() else None
            if content is not None:
                members[name] = content.read()
    return members
