"""An array whose rows are made on every core."""

from __future__ import annotations

import math
import mmap
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Starting a process costs about as much as this many small images.
_ROWS_WORTH_A_PROCESS = 64

Failure = tuple[int, Exception]
Fill = Callable[[Sequence[int]], "Failure | None"]


def filled_rows(
    work: Callable[[int], Any],
    shape: tuple[int, ...],
    dtype: DTypeLike,
    workers: int | None = None,
) -> NDArray[Any]:
    """Return an array whose row i is `work(i)`.

    On Linux, forked processes share the work and the array, so that nothing is sent to or
    fro; elsewhere the rows are made in turn, as threads were measured to be no faster.

    Args:
        work: Makes a row. It must not use torch, whose threads do not survive a fork.
        shape: The shape of the array.
        dtype: The type of its elements.
        workers: How many processes. Defaults to None: one a core, fewer for few rows.

    Raises:
        Exception: What `work` raised for the first row at which it did.

    Examples:
        >>> filled_rows(lambda row: [row, row**2], (4, 2), "int64").tolist()
        [[0, 0], [1, 1], [2, 4], [3, 9]]
    """
    count = shape[0]
    if workers is None:
        workers = min(cores(), count // _ROWS_WORTH_A_PROCESS)
    if workers < 2 or not _can_fork():
        rows = np.empty(shape, dtype)
        failures = [_fill(rows, work, range(count))]
    else:
        rows = _shared_array(shape, dtype)
        # Every n-th row each, as neighbours are often alike in size.
        shares = [range(first, count, workers) for first in range(workers)]
        failures = _in_processes(lambda share: _fill(rows, work, share), shares)
    found = [failure for failure in failures if failure is not None]
    if found:
        raise min(found, key=lambda failure: failure[0])[1]
    return rows


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _can_fork() -> bool:
    return sys.platform == "linux" and not multiprocessing.current_process().daemon


def _shared_array(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    # Anonymous memory, as /dev/shm is often kept small in containers.
    memory = mmap.mmap(-1, max(1, math.prod(shape) * np.dtype(dtype).itemsize))
    return np.frombuffer(memory, dtype, math.prod(shape)).reshape(shape)


def _fill(rows: NDArray[Any], work: Callable[[int], Any], share: Sequence[int]) -> Failure | None:
    row = -1
    try:
        for row in share:
            rows[row] = work(row)
    except Exception as error:
        return row, error
    return None


def _in_processes(fill: Fill, shares: Sequence[Sequence[int]]) -> list[Failure | None]:
    # Not a pool of concurrent.futures: its queues need semaphores, which containers with a small
    # /dev/shm cannot make, it pickles `fill`, which is a closure over the shared array, and where
    # a process dies it does not know the exit code.
    context = multiprocessing.get_context("fork")
    started = []
    try:
        for share in shares:
            reader, writer = context.Pipe(duplex=False)
            process = context.Process(target=_report, args=(writer, fill, share), daemon=True)
            with warnings.catch_warnings():
                # Newer Pythons warn of forks beside threads; the child needs none of their locks.
                warnings.simplefilter("ignore", DeprecationWarning)
                process.start()
            # Else this end would stay open here, and a process that dies would never be noticed.
            writer.close()
            started.append((process, reader))
        return [_outcome(process, reader) for process, reader in started]
    finally:
        for process, reader in started:
            # Those that are done have ended; the others are not needed once one has died.
            process.terminate()
            process.join()
            reader.close()


def _report(writer: Connection, fill: Fill, share: Sequence[int]) -> None:
    writer.send(fill(share))


def _outcome(process: Any, reader: Connection) -> Failure | None:
    try:
        outcome: Failure | None = reader.recv()
    except EOFError:
        process.join()
        raise ChildProcessError(
            f"a process that read data ended with exit code {process.exitcode}; memory may "
            f"have run out."
        ) from None
    return outcome
