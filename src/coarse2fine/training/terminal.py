"""What a person sees of trainings on a terminal: a live line each, redrawn a few times a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from .._util.text import duration, printable
from ..errors import require
from ..runs.directory import Metrics, Run
from ..runs.result import RunResult
from .progress import Watcher

_A_SECOND = 4  # how often a line is redrawn, by a thread, so that the training never waits for it


def plain_console(file: TextIO | None = None) -> Any:
    """Return a console of rich that takes no text for its markup.

    Args:
        file: Where it writes. Defaults to None: the standard error.
    """
    return require("rich.console", "train").Console(
        file=file, stderr=file is None, highlight=False, soft_wrap=True, markup=False, emoji=False
    )


def live(console: Any, renderable: Any) -> Any:
    """Return what keeps something up to date on a terminal, below what else is written there.

    Args:
        console: Of rich.
        renderable: Returns what is shown.
    """
    return require("rich.live", "train").Live(
        console=console,
        get_renderable=renderable,
        refresh_per_second=_A_SECOND,
        transient=True,
        # What is piped elsewhere must not end up on the terminal.
        redirect_stdout=sys.stdout.isatty(),
    )


def folded(text: str) -> Any:
    """Return lines for `live` to show, wrapped where the terminal is narrower."""
    text = printable(text, keep="\n")
    return require("rich.text", "train").Text(text, no_wrap=False, overflow="fold")


def standing(metrics: Sequence[Metrics], num_clusters: Sequence[int]) -> str:
    """Return at which level a training is, and how accurate on validation samples at that level.

    Args:
        metrics: Of its epochs so far.
        num_clusters: Of each level; empty without a hierarchy.

    Examples:
        >>> done = [{"level": 0, "level_accuracy": x} for x in (0.625, 0.5)]
        >>> standing(done, (4, 12))
        'level 0: 4 clusters  validation 50.0 (best 62.5)'
        >>> standing([*done, {"level": 1, "level_accuracy": 0.25}], (4, 12))
        'level 1: 12 classes  validation 25.0 (best 25.0)'
    """
    if not metrics:
        return ""
    last, parts = metrics[-1], []
    level = last.get("level")
    if level is not None and level < len(num_clusters):
        kind = "classes" if level == len(num_clusters) - 1 else "clusters"
        parts.append(f"level {level}: {num_clusters[level]} {kind}")
    accuracy = last.get("level_accuracy")
    if accuracy is not None:
        # Accuracies at other levels, and of other stages, are of other tasks.
        alike = [m for m in metrics if _task(m) == _task(last)]
        best = max(m.get("level_accuracy") or 0.0 for m in alike)
        parts.append(f"validation {100 * accuracy:.1f} (best {100 * best:.1f})")
    return "  ".join(parts)


def clusters_of(path: Path) -> tuple[int, ...]:
    """Return how many clusters each level of a run has; none without a hierarchy."""
    run = Run(path)
    return run.hierarchy().num_clusters if run.has_hierarchy else ()


def _task(metrics: Metrics) -> tuple[int | None, int | None]:
    return metrics.get("stage"), metrics.get("level")


class LiveLine:
    """The line of one training, as it is at any moment.

    Args:
        path: The run directory.
        name: What the line begins with.
        epochs: The most that it may take.
    """

    def __init__(self, path: Path, name: str, epochs: int) -> None:
        self.name, self.epochs = name, epochs
        self._num_clusters = clusters_of(path)
        self._path, self._metrics = path, list[Metrics]()
        self._done, self._standing, self._pace, self._since = 0, "", 0.0, time.monotonic()

    def epoch(self, metrics: Metrics) -> None:
        """Take note of an epoch."""
        if not self._done:  # of a training that was resumed, the file has earlier ones too
            self._metrics = Run(self._path).metrics()[:-1]
        self._metrics.append(metrics)
        self._standing = standing(self._metrics, self._num_clusters)
        self._done, self._since = metrics["epoch"], time.monotonic()
        self._pace = metrics.get("seconds", 0.0) / self._done

    def text(self) -> str:
        """Return the line."""
        if not self._done:
            return f"{self.name}  up to {self.epochs} epochs"
        epochs = f"epoch {self._done}/{self.epochs}"
        parts = [self.name, epochs, self._standing, self._left()]
        return "  ".join(part for part in parts if part)

    def _left(self) -> str:
        """Return how long it may take yet: all epochs that it is allowed, as it may stop before."""
        if not self._pace:
            return ""
        seconds = self._pace * (self.epochs - self._done) - (time.monotonic() - self._since)
        return f"up to {duration(max(seconds, 0.0))} left"


class TerminalProgress(Watcher):
    """Shows a live line for each training where there is a terminal, and a line when it is done."""

    def __init__(self) -> None:
        self._console = plain_console()
        self._line: LiveLine | None = None
        self._live = live(self._console, self._shown)  # last, as it asks what is shown at once

    def note(self, text: str) -> None:
        """Show it as a line."""
        self._console.print(printable(text))

    def begin(self, path: Path, method: str, seed: int, epochs: int) -> None:
        """Show a live line."""
        if self._console.is_interactive:
            self._line = LiveLine(path, f"seed {seed} {method}", epochs)
            self._live.start()

    def epoch(self, metrics: Metrics) -> None:
        """Bring it up to date."""
        if self._line is not None:
            self._line.epoch(metrics)

    def end(self, result: RunResult) -> None:
        """Replace it by a line that stays."""
        if self._line is not None:
            self._line = None
            self._live.refresh()  # or what is written would stand above the old line for a moment
        self._console.print(
            printable(
                f"seed {result.seed} {result.method}: test accuracy {100 * result.accuracy:.2f}, "
                f"best epoch {result.best_epoch}, {result.epochs} epochs, {result.seconds:.0f} s"
            )
        )

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._live.stop()

    def _shown(self) -> Any:
        line = self._line
        return folded("" if line is None else line.text())
