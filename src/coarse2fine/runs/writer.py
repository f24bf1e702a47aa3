"""Writing a run's directory so that a kill at any moment loses nothing but time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from .._util.files import Json, parse_json, replacing, write_atomically, writing
from ..checkpoints import Tensors
from ..errors import RunError
from ..hierarchy import Hierarchy
from .begun import has_format, is_trained
from .checkpoint import (
    Checkpoint,
    checksum,
    copy_last_checkpoint,
    digest,
    has_checkpoints,
    last_checkpoint,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
    save_tensors,
    signed,
)
from .config import Config
from .directory import (
    CHECKPOINT,
    CHECKSUMS,
    CONFIG,
    DATA_CHECKSUM,
    HIERARCHY,
    METHOD,
    METRICS,
    PREDICTIONS,
    RESULT,
    RUN,
    VERSION,
    WEIGHTS,
    Metrics,
    Run,
)
from .find import LONGER
from .guards import check_no_links, check_same
from .result import BASELINE


class RunWriter(Run):
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
        super().__init__(path)
        self.is_writer, self.watch = is_writer, watch
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
            raise self.changed(METRICS)
        if self.is_writer:
            with writing(lines), lines.open("ab") as file:
                file.truncate(length)
        return found

    def log(self, metrics: Metrics) -> None:
        """Note an epoch; it is on the disk with the next checkpoint."""
        if not self.is_writer:
            return
        metrics = {name: _as_json(value) for name, value in metrics.items()}  # type: ignore[assignment]
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

    def finish(self, model: Tensors, method: Tensors, predictions: Tensors, result: Json) -> None:
        """Store what came out, the result last, with the checksums of all that is kept."""
        files = {WEIGHTS: model, PREDICTIONS: predictions}
        if method:
            files[f"{CHECKPOINT}/{METHOD}"] = method
        for name, tensors in files.items():
            with replacing(self.path / name) as unfinished:
                save_tensors(unfinished, tensors)
        kept = [*files, *(name for name in (METRICS, HIERARCHY) if (self.path / name).is_file())]
        content = {
            "result": result,
            "versions": versions(),
            CHECKSUMS: {name: checksum(self.path / name) for name in kept},
            DATA_CHECKSUM: digest(parse_json(self.path / CONFIG)["data"]),
        }
        write_json(self.path / RESULT, signed(content))

    def tidy(self, *, keep_last: bool = False) -> None:
        """Remove what was needed to go on, once the run is done.

        Args:
            keep_last: Keep the last checkpoint, from which a longer run can go on. Defaults
                to False.
        """
        if self.is_writer:
            remove_checkpoints(self.path / CHECKPOINT, keep_last=keep_last)

    def go_on_from(self, other: Path) -> None:
        """Begin where another, finished run ended, unless this one has begun already.

        A kill in between costs time but changes nothing: without the checkpoint this run
        begins at the first epoch, and comes to the same numbers.

        Args:
            other: The run directory, which kept its last checkpoint.
        """
        if not self.is_writer or has_checkpoints(self.path / CHECKPOINT):
            return
        write_atomically(self.path / METRICS, (other / METRICS).read_bytes())
        copy_last_checkpoint(other / CHECKPOINT, self.path / CHECKPOINT)

    def lengthen(self, epochs: int, *, is_over: bool) -> None:
        """Allow more epochs than the run was begun with.

        Args:
            epochs: The most from now on.
            is_over: Whether the run would not go on with more, so that its result stays.
        """
        if not is_over:  # first: with the fewer epochs it would only be finished once more
            (self.path / RESULT).unlink(missing_ok=True)
        stored = parse_json(self.path / CONFIG)
        stored["config"]["epochs"] = epochs
        write_json(self.path / CONFIG, stored)

    def clear(self) -> None:
        """Remove all that was trained, so that the run begins anew."""
        remove_trained(self.path)
        (self.path / CONFIG).unlink()  # last: until then it says what the rest was trained with

    # -------------------------------------------------------------------- before and after

    def begin(
        self,
        content: Json,
        but: tuple[str, ...] = (),
        hierarchy: Hierarchy | None = None,
    ) -> None:
        """Store what the run is set by, or check that it is the same as before.

        Args:
            content: The settings and what else must be the same.
            but: Names of settings that may differ, as they have no say. Defaults to none.
            hierarchy: What it trains with. Defaults to None.
        """
        path = self.path / CONFIG
        if path.is_file() and not self._is_only_begun:
            check_same(self.path, content, but=("workers", *but))
        elif self.is_writer:
            write_json(path, {"format": RUN, "version": VERSION, **content})
        if hierarchy is not None:
            self._begin_with(hierarchy)

    @property
    def _is_only_begun(self) -> bool:
        """Whether there are settings, and nothing that was trained with them."""
        return has_format(self.path, RUN) and not is_trained(self.path)

    def _begin_with(self, hierarchy: Hierarchy) -> None:
        """Store the hierarchy, or check that it is the same as before."""
        if not self.has_hierarchy or self._is_only_begun:
            if self.is_writer and not self.is_done:
                hierarchy.save(self.path / HIERARCHY)
            return
        if not self.is_of(hierarchy):
            raise RunError(
                f"{self.path} was begun with another hierarchy; give the same one to resume, or "
                f"choose another folder."
            )

    def is_of(self, hierarchy: Hierarchy) -> bool:
        """Whether it was begun with a hierarchy."""
        try:
            return self.has_hierarchy and Hierarchy.load(self.path / HIERARCHY) == hierarchy
        except ValueError as error:
            raise self.changed(HIERARCHY) from error

    @property
    def last_checkpoint(self) -> int | None:
        """After how many epochs the newest checkpoint was written, None where there is none."""
        return last_checkpoint(self.path / CHECKPOINT)


def remove_trained(path: Path) -> None:
    """Remove what a run was trained to, its result first, so that a kill leaves no half of it.

    Args:
        path: The run directory, whose settings stay.
    """
    with writing(path):
        (path / RESULT).unlink(missing_ok=True)
        if (path / CHECKPOINT).is_dir():
            shutil.rmtree(path / CHECKPOINT)
        for name in (METRICS, HIERARCHY, PREDICTIONS):
            (path / name).unlink(missing_ok=True)


def remove_other_baselines(path: Path) -> None:
    """Remove baselines of a seed that went on for another number of epochs.

    A comparison takes the longest for its baseline, which may be of an earlier, shorter one.

    Args:
        path: The baseline to keep.
    """
    for other in path.parent.glob(f"{BASELINE}-*"):
        if other != path and LONGER.fullmatch(other.name):
            remove_trained(other)
            shutil.rmtree(other)


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


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file at once or not at all."""
    write_atomically(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


@cache
def versions() -> dict[str, str]:
    """Return the versions of what has a say in the numbers."""
    names = ("coarse2fine", "torch", "numpy", "scipy", "lightning-fabric")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


def provenance(config: Config) -> Json:
    """Return the settings, and what made the run with them."""
    return {"config": config.to_dict(), "versions": versions(), "command": shlex.join(sys.argv)}


def _as_json(value: Any) -> Any:
    """Return a value that JSON can hold: it has no NaN and no infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
