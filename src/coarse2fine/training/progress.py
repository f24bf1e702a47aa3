"""Who is told what a training does: nobody, a terminal, a program, TensorBoard."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._util.files import Json, writing
from .._util.text import printable
from ..errors import require
from ..runs.config import Config
from ..runs.directory import Metrics
from ..runs.result import RunResult


def plain_console() -> Any:
    """Return a console of rich on the standard error that takes no text for its markup."""
    return require("rich.console", "train").Console(
        stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False
    )


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


class TerminalProgress(Watcher):
    """Shows a bar for each training where there is a terminal, and a line when it is done."""

    def __init__(self) -> None:
        progress = require("rich.progress", "train")
        console = plain_console()
        self._console = console
        self._bars = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TextColumn("{task.fields[shown]}", markup=False),
            progress.TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bars.start()
        self._task: Any = None

    def note(self, text: str) -> None:
        """Show it as a line."""
        self._console.print(printable(text))

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:  # noqa: ARG002
        """Show a bar."""
        name = printable(f"seed {seed} {method}")
        self._task = self._bars.add_task(name, total=epochs, shown="")

    def epoch(self, metrics: Metrics) -> None:
        """Move the bar on."""
        accuracy, level = metrics["accuracy"], metrics["level"]
        shown = "" if accuracy is None else f"accuracy {100 * accuracy:.1f}"
        shown += "" if level is None else f" level {level}"
        self._bars.update(self._task, completed=metrics["epoch"], shown=shown, refresh=True)

    def end(self, result: RunResult) -> None:
        """Replace the bar by a line."""
        if self._task is not None:
            self._bars.remove_task(self._task)
            self._task = None
        self._console.print(
            printable(
                f"seed {result.seed} {result.method}: test accuracy {100 * result.accuracy:.2f}, "
                f"best epoch {result.best_epoch}, {result.epochs} epochs, {result.seconds:.0f} s"
            )
        )

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._bars.stop()


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
