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

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from .._files import make_readable, parse_json
from ..errors import RunError

_STATE = "state.json"
Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    """What is needed to go on.

    Args:
        number: The number of epochs done in all; later ones are higher.
        state: Plain values.
        tensors: Groups of tensors by name, such as ``{"model": {"head.weight": ...}}``.
    """

    number: int
    state: dict[str, Any]
    tensors: dict[str, Tensors]


def save_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint into a folder of them, and remove all but the one before."""
    folder.mkdir(exist_ok=True)
    present = _numbered(folder)
    _remove_unfinished(folder)
    unfinished = folder / f".{checkpoint.number:06d}"
    unfinished.mkdir()
    checksums = {}
    for group, tensors in checkpoint.tensors.items():
        path = unfinished / f"{group}.safetensors"
        save_tensors(path, tensors)
        checksums[path.name] = _checksum(path)
    content = {"state": checkpoint.state, "checksums": checksums}
    (unfinished / _STATE).write_text(json.dumps({**content, "own": _digest(content)}))
    _sync(unfinished / _STATE)
    _sync(unfinished)
    final = folder / f"{checkpoint.number:06d}"
    if final.exists():  # it was found damaged, and training came this far again
        shutil.rmtree(final)
    unfinished.rename(final)
    _sync(folder)
    older = [path for path in present if int(path.name) < checkpoint.number]
    for path in {*present} - {*older[-1:], final}:  # those with a higher number are damaged
        shutil.rmtree(path)


def load_checkpoint(folder: Path) -> Checkpoint | None:
    """Return the newest checkpoint that is whole, or None where there is none at all.

    Raises:
        RunError: Where there are some, but all are damaged.
    """
    damaged = []
    for path in reversed(_numbered(folder)):
        try:
            found = _load(path)
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            damaged.append(f"{path} ({error})")
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


def remove_checkpoints(folder: Path) -> None:
    """Remove all checkpoints of a folder, since the run is done.

    Several processes may find that out at a time.
    """
    for path in _numbered(folder):
        shutil.rmtree(path, ignore_errors=True)
    _remove_unfinished(folder)


def save_tensors(path: Path, tensors: Tensors) -> None:
    """Write tensors to a safetensors file, and put it on the disk.

    Tensors that share memory, as tied weights do, are written one by one.
    """
    copies = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.items()}
    save_file({name: tensor.contiguous() for name, tensor in copies.items()}, path)
    make_readable(path)
    _sync(path)


def load_tensors(path: Path) -> Tensors:
    """Read a safetensors file, with one sentence that names it where it cannot be read."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path}: not readable as safetensors: {error}") from None


def _numbered(folder: Path) -> list[Path]:
    """Return the finished checkpoints of a folder, oldest first."""
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.name.isdigit())


def _remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while writing has left."""
    for path in folder.glob(".*"):
        if path.is_dir():
            shutil.rmtree(path)


def _load(path: Path) -> Checkpoint:
    content = parse_json(path / _STATE)
    own = content.pop("own")
    if own != _digest(content):
        raise ValueError(f"{_STATE} has changed since it was written")
    for name, checksum in content["checksums"].items():
        if _checksum(path / name) != checksum:
            raise ValueError(f"{name} has changed since it was written")
    tensors = {Path(name).stem: load_file(path / name) for name in content["checksums"]}
    return Checkpoint(int(path.name), content["state"], tensors)


def _checksum(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _digest(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sync(path: Path) -> None:
    """Put a file, or the names in a folder, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
