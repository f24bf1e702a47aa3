"""Run directories: what a training leaves on disk, and how it is taken up again.

A run is a directory with `config.json`, `metrics.jsonl` (one line an epoch),
`hierarchy.json` where it has one, `checkpoint/`, and `result.json`, which is written last,
so that its presence means that the run is done.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from .._files import check_no_links, parse_json, replacing, write_atomically
from .._printable import brief
from .._writing import writing
from ..errors import RunError, require
from . import stored
from .checkpoint import (
    Checkpoint,
    Tensors,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
    save_tensors,
    signed,
)
from .config import Config

CONFIG, METRICS, HIERARCHY, RESULT = (
    "config.json",
    "metrics.jsonl",
    "hierarchy.json",
    stored.RESULT,
)
CHECKPOINT, MODEL, METHOD, PREDICTIONS = (
    "checkpoint",
    "model.safetensors",
    "method.safetensors",
    "predictions.safetensors",
)
COMPARISON = "coarse2fine comparison"
Metrics = dict[str, Any]


class Run:
    """One training's directory, written by one process of it.

    Args:
        path: The directory; made where it does not exist.
        is_writer: Whether this process writes; the others of a training only read. Defaults
            to True.
        checkpoint_seconds: The least time between two checkpoints. Defaults to 10.0.
        watch: Called with the metrics of every epoch. Defaults to None.
    """

    def __init__(
        self,
        path: Path,
        *,
        is_writer: bool = True,
        checkpoint_seconds: float = 10.0,
        watch: Callable[[Metrics], None] | None = None,
    ) -> None:
        self.path, self.is_writer, self.watch = path, is_writer, watch
        self.checkpoint_seconds = checkpoint_seconds
        self._last_save = time.monotonic()
        self._digest = hashlib.sha256()  # of all lines of the metrics
        if is_writer:
            check_no_links(path.parent, path, *path.glob("*"))
            with writing(path):
                path.mkdir(parents=True, exist_ok=True)

    # ------------------------------------------------------------------- while it trains

    def resume(self) -> Checkpoint | None:
        """Return the checkpoint to go on from, and cut the metrics back to it.

        Raises:
            RunError: The metrics before the checkpoint are not what they were then.
        """
        found = load_checkpoint(self.path / CHECKPOINT)
        lines = self.path / METRICS
        self._digest, length = _first_lines(lines, found.number if found else 0)
        if found and found.state.get(METRICS, self._digest.hexdigest()) != self._digest.hexdigest():
            raise stored.changed(self.path, METRICS)
        if self.is_writer:
            with writing(lines), lines.open("ab") as file:
                file.truncate(length)
        return found

    def log(self, metrics: Metrics) -> None:
        """Note an epoch; it is on the disk with the next checkpoint."""
        if not self.is_writer:
            return
        metrics = {name: _as_json(value) for name, value in metrics.items()}
        line = f"{json.dumps(metrics)}\n".encode()
        with writing(self.path / METRICS), (self.path / METRICS).open("ab") as file:
            file.write(line)
        self._digest.update(line)
        if self.watch:
            self.watch(metrics)

    def wants_checkpoint(self, *, is_last: bool) -> bool:
        """Whether it is time for a checkpoint, as it always is after a stage's last epoch."""
        return is_last or time.monotonic() - self._last_save >= self.checkpoint_seconds

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint, after the metrics up to it."""
        if not self.is_writer:
            return
        with writing(self.path / METRICS), (self.path / METRICS).open("r+b") as file:
            os.fsync(file.fileno())
        state = {**checkpoint.state, METRICS: self._digest.hexdigest()}
        save_checkpoint(self.path / CHECKPOINT, replace(checkpoint, state=state))
        self._last_save = time.monotonic()

    def finish(
        self, model: Tensors, method: Tensors, predictions: Tensors, result: dict[str, Any]
    ) -> None:
        """Store what came out, the result last, with the checksums of all that is kept."""
        files = {f"{CHECKPOINT}/{MODEL}": model, PREDICTIONS: predictions}
        if method:
            files[f"{CHECKPOINT}/{METHOD}"] = method
        for name, tensors in files.items():
            with replacing(self.path / name) as unfinished:
                save_tensors(unfinished, tensors)
        kept = [*files, *(name for name in (METRICS, HIERARCHY) if (self.path / name).is_file())]
        checksums = stored.checksums(self.path, kept, parse_json(self.path / CONFIG)["data"])
        content = {"result": result, "versions": versions(), **checksums}
        write_json(self.path / RESULT, signed(content))

    def tidy(self) -> None:
        """Remove what was needed to go on, once the run is done."""
        if self.is_writer:
            remove_checkpoints(self.path / CHECKPOINT)

    # -------------------------------------------------------------------- before and after

    @property
    def is_done(self) -> bool:
        """Whether the run has its result."""
        return (self.path / RESULT).is_file()

    def metrics(self) -> list[Metrics]:
        """Return the metrics of each epoch so far.

        Raises:
            RunError: They are damaged.
        """
        path = stored.unchanged(self.path, METRICS)
        lines = enumerate(read_lines(path), 1)
        return [_parsed_line(path, number, line) for number, line in lines]

    def begin(self, content: dict[str, Any], but: tuple[str, ...] = ()) -> None:
        """Store what the run is set by, or check that it is the same as before.

        Args:
            content: The settings and what else must be the same.
            but: Names of settings that may differ, as they have no say. Defaults to none.
        """
        path = self.path / CONFIG
        if path.is_file():
            check_same(path, content, but=("workers", *but))
        elif self.is_writer:
            write_json(path, content)


def read_lines(path: Path) -> list[str]:
    """Return the whole lines of a file, none where it does not exist.

    A line that a kill cut short is left out.
    """
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8", errors="replace")
    return [f"{line}\n" for line in text.split("\n")[:-1]]


def count_lines(path: Path) -> int:
    """Return how many whole lines a file has, none where it does not exist."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, 1 << 20), b""))


def _first_lines(path: Path, count: int) -> tuple[Any, int]:
    """Return the digest of a file's first lines, and how many bytes they have.

    Line by line, as there may be millions.
    """
    digest, length = hashlib.sha256(), 0
    if path.is_file():
        with path.open("rb") as file:
            for line in islice(file, count):
                if line.endswith(b"\n"):  # else a kill cut it short
                    digest.update(line)
                    length += len(line)
    return digest, length


def _parsed_line(path: Path, number: int, line: str) -> Metrics:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: line {number}: {brief(error)}.") from None
    if not isinstance(found, dict):
        raise RunError(f"{path} is damaged: line {number} holds no metrics.")
    return found


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file at once or not at all."""
    write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def check_same(path: Path, content: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    """Raise a `RunError` where a run was begun with something else.

    Args:
        path: What is stored; its ``"config"`` and ``"data"`` are compared.
        content: What is wanted now.
        but: Names of settings that may differ. Defaults to none.
    """
    try:
        found = parse_json(path)
        parts = [
            (dict(found[part]), content[part]) for part in ("config", "data") if part in content
        ]
    except (ValueError, KeyError, TypeError) as error:
        # A comparison has nothing in its config that is not written anew.
        damaged = path if content.get("format") == COMPARISON else path.parent
        raise RunError(
            f"{path} is not a run's config ({brief(error)}); remove {damaged} to have it made "
            f"anew, or choose another folder."
        ) from None
    for old, new in parts:
        new = json.loads(json.dumps(new))
        for name in sorted((old.keys() | new.keys()) - set(but)):
            if old.get(name) != new.get(name):
                raise RunError(
                    f"{path.parent} was begun with {brief(name)} = {_short(old.get(name))}, now "
                    f"it is {_short(new.get(name))}; give the same settings to go on, or choose "
                    f"another folder."
                )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep a run directory for this process; the system lets it go when the process ends."""
    filelock = require("filelock", "train")
    check_no_links(*path.glob("*"))
    lock = filelock.FileLock(path / ".lock")
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


@cache
def versions() -> dict[str, str]:
    """Return the versions of what has a say in the numbers."""
    names = ("coarse2fine", "torch", "numpy", "scipy", "lightning-fabric")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def provenance(config: Config) -> dict[str, Any]:
    """Return the settings, and what made the run with them."""
    return {"config": config.to_dict(), "versions": versions(), "command": shlex.join(sys.argv)}


def _as_json(value: Any) -> Any:
    """Return a value that JSON can hold: it has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(value: Any) -> str:
    return brief(json.dumps(value, ensure_ascii=False), 60)
