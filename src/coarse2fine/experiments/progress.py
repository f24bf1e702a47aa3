"""Show how an experiment's trainings go, over all of them, with the time left."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from contextlib import suppress
from typing import Any

from .._util.text import printable, whole_minutes
from ..errors import RunError
from ..runs.directory import Run
from ..runs.result import RunResult
from ..training.terminal import clusters_of, folded, live, plain_console, standing
from .declaration import Setting
from .runner import Observer
from .tasks import Task


class Estimate:
    """How long the trainings that are left will take.

    A training takes as long as those of the same setting took on average; where none is done
    yet, as long as others did in proportion to images, pixels and epochs allowed.

    Args:
        tasks: All that is to be done.
        workers: How many are done at a time.
    """

    def __init__(self, tasks: list[Task], workers: int) -> None:
        self.left, self.workers = list(tasks), workers
        self._work = {task.setting.folder: _work(task.setting) for task in tasks}
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._rates: list[float] = []

    def done(self, task: Task, seconds: float | None = None) -> None:
        """Take note that a training is done, and how long it took if it was trained."""
        self.left = [other for other in self.left if other.path != task.path]
        if seconds is not None:
            self._seconds[task.setting.folder].append(seconds)
            self._rates.append(seconds / self._work[task.setting.folder])

    def seconds_left(self, spent: dict[Task, float]) -> float:
        """Return how long all that is left will take; NaN before anything is known.

        Args:
            spent: How long those that are at work have taken so far.
        """
        if not self._rates:
            return math.nan
        left = [max(self._expected(task) - spent.get(task, 0.0), 0.0) for task in self.left]
        return max(sum(left) / self.workers, max(left, default=0.0))

    def _expected(self, task: Task) -> float:
        same = self._seconds.get(task.setting.folder)
        if same:
            return sum(same) / len(same)
        return self._work[task.setting.folder] * sum(self._rates) / len(self._rates)


def _work(setting: Setting) -> float:
    """Return how much there is to do, in any unit."""
    config = setting.config(None, (0,))
    size = config.train_size or 50_000
    count = size * 1_281_167 if isinstance(size, float) else size
    return float(count) * float(config.image_size or 32) ** 2 * float(config.epochs or 1)


class Board(Observer):
    """A line for each training that ends; on a terminal, one for all and for each at work, too."""

    def __init__(self) -> None:
        self._console: Any = plain_console()
        self._now: tuple[str, ...] = ()
        self._num_clusters: dict[Task, tuple[int, ...]] = {}
        self._estimate = Estimate([], 1)
        self._begun: dict[Task, float] = {}
        self._total = 0
        self._live: Any = live(self._console, self._shown)  # last: it asks what is shown at once

    def begin(self, tasks: list[Task], workers: int) -> None:
        """Show how much there is to do."""
        self._estimate, self._total = Estimate(tasks, workers), len(tasks)
        self._console.print(f"{len(tasks)} runs to do, {workers} at a time")
        if self._console.is_interactive:
            self._live.start()

    def running(self, tasks: list[Task]) -> None:
        """Show what is at work."""
        for task in tasks:
            self._begun.setdefault(task, time.monotonic())
        if self._console.is_interactive:
            self._now = tuple(map(self._line, tasks))

    def done(self, task: Task, result: RunResult) -> None:
        """Write a line."""
        self._end(task, result.seconds)
        self._say(
            task,
            f"test accuracy {100 * result.accuracy:.2f}, {result.epochs} epochs, "
            f"{result.seconds:.0f} s",
        )

    def failed(self, task: Task, error: BaseException) -> None:
        """Write a line."""
        self._end(task, None)
        self._say(task, f"failed: {' '.join(str(error).split()) or type(error).__name__}")

    def retried(self, task: Task) -> None:
        """Write a line."""
        self._begun.pop(task, None)
        text = f"{task}: its process has died; it resumes from its last checkpoint"
        self._console.print(printable(text))

    def close(self) -> None:
        """Nothing more happens."""
        self._live.stop()

    def _end(self, task: Task, seconds: float | None) -> None:
        self._begun.pop(task, None)
        self._estimate.done(task, seconds)

    def _say(self, task: Task, what: str) -> None:
        text = f"{self._done} of {self._total}: {task}: {what}{self._time_left('; ')}"
        self._console.print(printable(text))

    def _shown(self) -> Any:
        """Return how far all is, and below it a line for each training at work."""
        first = f"{self._done} of {self._total} runs{self._time_left('; ')}"
        return folded("\n".join((first, *self._now)))

    def _line(self, task: Task) -> str:
        """Return where a training at work is, as far as its files tell from here."""
        told = ""
        # What is wrong, whoever trains it says.
        with suppress(RunError, ValueError, OSError):
            clusters = self._num_clusters.get(task) or clusters_of(task.path)
            self._num_clusters[task] = clusters
            told = standing(Run(task.path).metrics(), clusters)
        return f"  {task}  epoch {task.epochs_done}  {told}".rstrip()

    @property
    def _done(self) -> int:
        return self._total - len(self._estimate.left)

    def _time_left(self, before: str = "") -> str:
        now = time.monotonic()
        spent = {task: now - begun for task, begun in self._begun.items()}
        seconds = self._estimate.seconds_left(spent)
        if math.isnan(seconds) or not self._estimate.left:
            return ""
        return f"{before}{whole_minutes(seconds)} left"
