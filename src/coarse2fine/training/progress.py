"""Who is told what a training does: nobody, a program, TensorBoard; a person by terminal.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._util.files import Json, writing
from ..errors import require
from ..runs.config import Config
from ..runs.directory import Metrics
from ..runs.result import RunResult


class Watcher:
    """Told what happens, and does nothing about it; the others do."""

    def compare(self, path: Path, config: Config) -> None:
        """A comparison begins or goes on, in a directory and by settings that are all filled in."""

    def note(self, text: str) -> None:
        """Something is to be said, such as what is taken over from an earlier call."""

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:
        """A training begins or goes on, for at most so many epochs."""

    def epoch(self, metrics: Metrics) -> None:
        """An epoch is done."""

    def end(self, result: RunResult) -> None:
        """A training is done, or was already."""

    def close(self) -> None:
        """Nothing more happens."""


class Watchers(Watcher):
    """Tells several.

    Args:
        watchers: Who is told, in this order.
    """

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self.watchers = watchers

    def compare(self, path: Path, config: Config) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.compare(path, config)

    def note(self, text: str) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.note(text)

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.begin(path, method, seed, epochs)

    def epoch(self, metrics: Metrics) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.epoch(metrics)

    def end(self, result: RunResult) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.end(result)

    def close(self) -> None:
        """Tell all."""
        for watcher in self.watchers:
            watcher.close()


class JsonLines(Watcher):
    """Writes a line of JSON for everything that happens, for programs to read."""

    def note(self, text: str) -> None:
        """Write it."""
        self._write("note", {"text": text})

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:
        """Write that a training begins."""
        self._write("begin", {"path": str(path), "method": method, "seed": seed, "epochs": epochs})

    def epoch(self, metrics: Metrics) -> None:
        """Write an epoch's metrics."""
        self._write("epoch", dict(metrics))

    def end(self, result: RunResult) -> None:
        """Write a training's result."""
        self._write("end", result.to_dict())

    @staticmethod
    def _write(event: str, content: Json) -> None:
        with writing(Path("the standard output")):
            sys.stdout.write(json.dumps({"event": event, **content}) + "\n")
            sys.stdout.flush()


class TensorBoard(Watcher):
    """Writes the metrics for TensorBoard, beside each run's own files."""

    def __init__(self) -> None:
        require("tensorboard", "train")
        self._path = Path()
        self._writer: Any = None

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:  # noqa: ARG002
        """Note where the run's log is."""
        self.close()
        self._path = path / "tensorboard"

    def epoch(self, metrics: Metrics) -> None:
        """Write an epoch's metrics; what the log holds beyond the last checkpoint is purged."""
        from torch.utils.tensorboard import SummaryWriter

        with writing(self._path):
            if self._writer is None:
                self._writer = SummaryWriter(str(self._path), purge_step=metrics["epoch"])
            for name, value in metrics.items():
                if name not in ("epoch", "stage") and value is not None:
                    self._writer.add_scalar(name, value, metrics["epoch"])

    def end(self, result: RunResult) -> None:
        """Write the test accuracy."""
        if self._writer is not None:
            self._writer.add_scalar("test_accuracy", result.accuracy, result.epochs)
        self.close()

    def close(self) -> None:
        """Close the log."""
        writer, self._writer = self._writer, None
        if writer is not None:
            with writing(self._path):
                writer.close()
