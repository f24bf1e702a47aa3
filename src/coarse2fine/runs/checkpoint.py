"""Checkpoints that a kill at any moment cannot spoil.

A checkpoint is a folder of safetensors files and one JSON file with their checksums. It is
written under a temporary name, put on the disk, and renamed. The one before it stays until
the next, and is used where the newest turns out to be damaged.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from .._util.files import Json, check_is_file, make_readable, parse_json, writing
from .._util.text import brief
from ..checkpoints import Tensors, load_tensors
from ..errors import RunError

_STATE, _OWN = "state.json", "own"


@dataclass(frozen=True)
class Checkpoint:
    """What is needed to go on.

    Args:
        number: The number of epochs done in all; later ones are higher.
        state: Plain values.
        tensors: Groups of tensors by name, such as ``{"model": {"head.weight": ...}}``.
    """

    number: int
    state: Json
    tensors: dict[str, Tensors]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint into a folder of them, and remove all but the one before."""
    final = folder / f"{checkpoint.number:06d}"
    unfinished = folder / f".{final.name}"
    with writing(final):
        folder.mkdir(exist_ok=True)
        present = _numbered(folder)
        _remove_unfinished(folder)
        try:
            _write(unfinished, checkpoint)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)  # on a full disk it only takes room
            raise
        if final.exists():  # it was found damaged, and training came this far again
            shutil.rmtree(final)
        unfinished.rename(final)
        _sync(folder)  # the new name is in the folder, which is a file of its own to the disk
        # Only now, or a kill could leave none that is whole.
        older = [path for path in present if int(path.name) < checkpoint.number]
        for path in {*present} - {*older[-1:], final}:  # those with a higher number are damaged
            shutil.rmtree(path)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint's files into a new folder, and put them on the disk."""
    folder.mkdir()
    checksums = {}
    for group, tensors in checkpoint.tensors.items():
        path = folder / f"{group}.safetensors"
        save_tensors(path, tensors)
        checksums[path.name] = checksum(path)
    # Last, as it has the checksums of the others, and one of itself. A disk may tear what was on
    # its way when the power failed, even where fsync said that all is well.
    content = {"state": checkpoint.state, "checksums": checksums}
    (folder / _STATE).write_text(json.dumps(signed(content)))
    _sync(folder / _STATE)
    _sync(folder)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint that is whole, or None where there is none at all.

    Raises:
        RunError: Where there are some, but all are damaged.
    """
    damaged = []
    for path in reversed(_numbered(folder)):
        try:
            found = _load(path)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            damaged.append(f"{path} ({brief(error)})")
            continue
        if damaged:
            warnings.warn(
                f"The newest checkpoint is damaged: {damaged[0]}. Going on from the one before "
                f"it, {path}.",
                stacklevel=2,
            )
        return found
    if damaged:
        raise RunError(
            f"no checkpoint can be read: {'; '.join(damaged)}. Remove {folder} to start anew."
        )
    return None


def remove_checkpoints(folder: Path, *, keep_last: bool = False) -> None:
    """Remove the checkpoints of a folder, since the run is done.

    Several processes may find that out at a time.

    Args:
        folder: That holds them.
        keep_last: Whether to keep the newest. Defaults to False.
    """
    found = _numbered(folder)
    for path in found[:-1] if keep_last else found:
        shutil.rmtree(path, ignore_errors=True)
    _remove_unfinished(folder)


def has_checkpoints(folder: Path) -> bool:
    """Whether a folder holds any checkpoint."""
    return bool(_numbered(folder))


def last_checkpoint(folder: Path) -> int | None:
    """Return the number of a folder's newest checkpoint, None where it has none."""
    found = _numbered(folder)
    return int(found[-1].name) if found else None


def copy_last_checkpoint(source: Path, folder: Path) -> None:
    """Copy the newest checkpoint of one folder into another, as a whole or not at all.

    Args:
        source: Where it is; nothing is copied where there is none.
        folder: Where it goes; made where it does not exist.
    """
    found = _numbered(source)
    if not found:
        return
    final = folder / found[-1].name
    unfinished = folder / f".{final.name}"
    with writing(final):
        folder.mkdir(exist_ok=True)
        _remove_unfinished(folder)
        shutil.copytree(found[-1], unfinished)
        for path in (*unfinished.iterdir(), unfinished):
            _sync(path)
        unfinished.rename(final)
        _sync(folder)


def save_tensors(path: Path, tensors: Tensors) -> None:
    """Write tensors to a safetensors file, and put it on the disk.

    Tensors that share memory, as tied weights do, are written one by one.
    """
    # safetensors refuses tensors that share memory, and those that are not contiguous.
    copies = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()}
    save_file({name: tensor.contiguous() for name, tensor in copies.items()}, path)
    make_readable(path)
    _sync(path)


def _numbered(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    found = [path for path in folder.iterdir() if path.name.isdecimal()]
    return sorted(found, key=lambda path: int(path.name))


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while writing has left."""
    for path in folder.glob(".*"):
        if path.is_dir():
            shutil.rmtree(path)


def _load(path: Path) -> Checkpoint:
    content = parse_json(path / _STATE)
    check_signature(content, _STATE)
    for name, wanted in content["checksums"].items():
        if Path(name).name != name:  # it would lead out of the folder
            raise ValueError(f"{_STATE} names the file {name!r}")
        check_is_file(path / name)
        if checksum(path / name) != wanted:
            raise ValueError(f"{name} has changed since it was written")
    tensors = {Path(name).stem: load_tensors(path / name) for name in content["checksums"]}
    return Checkpoint(int(path.name), dict(content["state"]), tensors)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def signed(content: Json) -> Json:
    """Return plain values with a checksum of their own, see `check_signature`."""
    return {**content, _OWN: digest(content)}


def is_signed(content: Json) -> bool:
    """Whether values were given to `signed`."""
    return _OWN in content


def check_signature(content: Json, name: str) -> None:
    """Raise a `ValueError` where values are not those that `signed` was given.

    Args:
        content: What was read.
        name: Of the file.
    """
    if content[_OWN] != digest({key: value for key, value in content.items() if key != _OWN}):
        raise ValueError(f"{name} has changed since it was written")


def digest(content: Any) -> str:
    """Return the SHA-256 of plain values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    if os.name == "nt" and path.is_dir():  # Windows opens no folders
        return
    # A folder cannot be opened for writing, and Windows syncs only files that are.
    handle = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
