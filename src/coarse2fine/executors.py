"""Where trainings and the blocks of clusterings run: processes of this machine, or Dask."""

from __future__ import annotations

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from ._util.parallel import cores
from .errors import RunError, require

CONNECT_SECONDS = 10
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PROCESSES = re.compile(r"processes(?::([1-9]\d*))?")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """What carries out trainings, or whatever else is to be done.

    Args:
        executor: Any `concurrent.futures.Executor`.
        count: How many tasks it runs at a time.
        threads: How many threads each of them has; None where the workers decide.
        lost: What a task's future raises when its worker has died, and another may take
            it up.
        check: Raises a `RunError` where there is nobody any more to carry out anything.
            Defaults to one that does nothing.
        share: Returns what stands for a value among the arguments of several tasks, so that it
            is sent once. Defaults to the value itself.
    """

    executor: Executor
    count: int
    threads: int | None
    lost: type[BaseException]
    check: Callable[[], None] = lambda: None
    share: Callable[[Any], Any] = lambda value: value


def check_executor(name: str) -> None:
    """Raise a `ValueError` where a name is not one of an executor."""
    if not _PROCESSES.fullmatch(name) and "://" not in name:
        raise ValueError(
            f"executor must be processes, processes:N, or the address of a Dask cluster such as "
            f"tcp://127.0.0.1:8786. Got {name!r}."
        )


@contextmanager
def workers(name: str) -> Iterator[Workers]:
    """Provide workers, and let them go in the end.

    Args:
        name: ``"processes"``, one for each GPU, or for each core where there is none;
            ``"processes:N"``, which share the GPUs; or the address of a Dask cluster.
    """
    check_executor(name)
    match = _PROCESSES.fullmatch(name)
    with _processes(_process_count(match)) if match else _dask(name) as found:
        yield found


class Processes(Executor):
    """Processes of this machine, each a pool of its own, so that one dies alone.

    In a common pool the death of one ends them all, and nobody could tell whose fault it was.
    No more may be submitted at a time than there are processes.

    Args:
        count: How many.
    """

    def __init__(self, count: int) -> None:
        self._others = multiprocessing.active_children()
        self._pools = [_one_process() for _ in range(count)]
        self._futures: list[Future[Any] | None] = [None] * count

    def submit(
        self, function: Callable[..., Result], /, *args: Any, **kwargs: Any
    ) -> Future[Result]:
        """Have an idle process call a function; one that has died is replaced."""
        idle = next(i for i, last in enumerate(self._futures) if last is None or last.done())
        with _interrupts_for_the_parent_alone(), _seeing_one_gpu(idle):
            try:
                future = self._pools[idle].submit(function, *args, **kwargs)
            except BrokenProcessPool:
                self._pools[idle] = _one_process()
                future = self._pools[idle].submit(function, *args, **kwargs)
        self._futures[idle] = future
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes end, or end them, if they are not to be waited for."""
        if not wait:
            for child in multiprocessing.active_children():
                if child not in self._others:
                    child.kill()
        for pool in self._pools:
            pool.shutdown(cancel_futures=cancel_futures)


def _one_process() -> ProcessPoolExecutor:
    # A fork would share torch's threads and locks.
    context = multiprocessing.get_context("spawn")
    try:
        return ProcessPoolExecutor(1, context, initializer=_begin_worker)
    except OSError as error:
        raise ChildProcessError(
            f"the executor's processes cannot be started ({error.strerror}); make room in memory "
            f"and in /dev/shm, or have fewer: --executor processes:1."
        ) from error


@contextmanager
def _interrupts_for_the_parent_alone() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even before they can say so themselves."""
    if not hasattr(signal, "pthread_sigmask"):  # as on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _seeing_one_gpu(index: int) -> Iterator[None]:
    """Start processes that see one of the GPUs each, where there are several."""
    before = os.environ.get(_VISIBLE)
    gpus = before.split(",") if before else [str(gpu) for gpu in range(_gpus())]
    if len(gpus) < 2:
        yield
        return
    os.environ[_VISIBLE] = gpus[index % len(gpus)]
    try:
        yield
    finally:
        if before is None:
            del os.environ[_VISIBLE]
        else:
            os.environ[_VISIBLE] = before


def _begin_worker() -> None:
    """Leave Ctrl-C to the parent, and end when it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent: Any = multiprocessing.parent_process()

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _processes(count: int) -> Iterator[Workers]:
    executor = Processes(count)
    is_over = False
    try:
        yield Workers(executor, count, max(1, cores() // count), BrokenProcessPool)
        is_over = True
    finally:
        # What they were at when something went wrong is resumed by the next call.
        executor.shutdown(wait=is_over, cancel_futures=True)


@contextmanager
def _dask(address: str) -> Iterator[Workers]:
    distributed = require("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(
            f"there is no Dask cluster at {address} ({error}); start one by dask scheduler and "
            f"dask worker, or leave --executor out."
        ) from None

    def check() -> None:
        if client.status in ("closing", "closed"):
            raise RunError(
                f"the Dask cluster at {address} has gone; start it again, and the same command "
                f"resumes."
            )

    with client:
        count = len(client.nthreads())
        if not count:
            raise ValueError(f"the Dask cluster at {address} has no workers; start one at least.")
        # The scheduler itself retries what its workers die of; what it gives up is given up.
        executor = client.get_executor(pure=False)
        # Of a list, as the parts of a tuple would be scattered one by one.
        yield Workers(
            executor, count, None, CancelledError, check, lambda value: client.scatter([value])[0]
        )


def _process_count(match: re.Match[str]) -> int:
    if match[1]:
        return int(match[1])
    return _gpus() or cores()


def _gpus() -> int:
    import torch

    return torch.cuda.device_count()
