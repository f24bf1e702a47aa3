"""Carry out all trainings of an experiment, wherever they run, whatever dies on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace

from ..errors import RunError
from ..executors import Workers, workers
from ..runs.result import RunResult
from .tasks import Task, carry_out

ATTEMPTS = 3
POLL_SECONDS = 0.5


class Observer:
    """Told how the trainings go, and does nothing about it; others do."""

    def begin(self, tasks: list[Task], workers: int) -> None:
        """These trainings are to be done, so many at a time."""

    def running(self, tasks: list[Task]) -> None:
        """These are at work; told again and again."""

    def done(self, task: Task, result: RunResult) -> None:
        """A training is done."""

    def failed(self, task: Task, error: BaseException) -> None:
        """A training could not be done, and is given up."""

    def retried(self, task: Task) -> None:
        """A training's worker has died; it goes on elsewhere from its last checkpoint."""


class Runner:
    """Carries out trainings, each after the baseline that it is compared with.

    What is done already is skipped. A training whose worker dies is taken up again by
    another, up to three times; one that fails by itself is given up, with those that need
    it, and the others go on.

    Args:
        executor: See `workers`.
        observer: Told how it goes. Defaults to one that does nothing.
    """

    def __init__(self, executor: str, observer: Observer | None = None) -> None:
        self.executor = executor
        self.observer = observer or Observer()
        self.errors: dict[Task, BaseException] = {}
        self._lost: Counter[Task] = Counter()
        self._waiting: list[Task] = []

    def run(self, tasks: list[Task]) -> dict[Task, BaseException]:
        """Carry out what is not done, and return what could not be done and why."""
        self._waiting = [task for task in tasks if not task.is_done]
        if self._waiting:
            with workers(self.executor) as found:
                self.observer.begin(list(self._waiting), found.count)
                self._run_on(found)
        return self.errors

    def _run_on(self, found: Workers) -> None:
        """Carry out trainings until none is left."""
        running: dict[Future[RunResult], Task] = {}
        while True:
            found.check()
            for task in self._ready(running.values())[: found.count - len(running)]:
                self._waiting.remove(task)
                submitted = replace(task, threads=found.threads)
                running[found.executor.submit(carry_out, submitted)] = task
            if not running:
                return
            self.observer.running(list(running.values()))
            finished, _ = wait(running, POLL_SECONDS, return_when=FIRST_COMPLETED)
            for future in finished:
                self._settle(running.pop(future), future, found.lost)

    def _ready(self, running: Iterable[Task]) -> list[Task]:
        """Return what need not wait for a baseline."""
        unfinished = {task.path for task in (*self._waiting, *running)}
        return [
            task
            for task in self._waiting
            if task.variant is None or task.baseline.path not in unfinished
        ]

    def _settle(self, task: Task, future: Future[RunResult], lost: type[BaseException]) -> None:
        """Take note of a training that has ended."""
        error = lost() if future.cancelled() else future.exception()
        if error is None:
            self.observer.done(task, future.result())
        elif isinstance(error, lost):
            self._take_up_again(task)
        else:
            self._give_up(task, error)

    def _take_up_again(self, task: Task) -> None:
        self._lost[task] += 1
        if self._lost[task] >= ATTEMPTS:
            why = f"its process died {ATTEMPTS} times; is there enough memory?"
            self._give_up(task, RunError(why))
        else:
            self._waiting.insert(0, task)
            self.observer.retried(task)

    def _give_up(self, task: Task, error: BaseException) -> None:
        self.errors[task] = error
        self.observer.failed(task, error)
        if task.variant is None:
            needing = [other for other in self._waiting if other.baseline.path == task.path]
            for other in needing:
                self._waiting.remove(other)
                self._give_up(other, RunError("its baseline could not be trained."))
