"""Inputs that do not fit in memory, read batch by batch, by other processes if need be."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.queues import Queue
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .._util.seeds import seed_of
from .split import LazyInputs

Packed = tuple[torch.dtype, NDArray[np.uint8]]  # the bytes of a tensor


def loaded(
    inputs: LazyInputs, parts: list[list[int]], key: tuple[int, ...] | None, workers: int
) -> Iterator[Tensor]:
    """Yield the inputs of each batch.

    Args:
        inputs: What is read.
        parts: The rows of each batch.
        key: Settles what is random in reading; None for nothing.
        workers: How many processes read; 0 for this one.

    Raises:
        ChildProcessError: The processes cannot be started, or one of them has died.
    """
    # The loader draws a base seed even where none is used; from its own generator, so that
    # the global one is left alone.
    generator = torch.Generator().manual_seed(0)
    loader: DataLoader[Any] = DataLoader(
        _LazyDataset(inputs, key),
        batch_sampler=parts,
        num_workers=min(workers, len(parts)),
        collate_fn=_packed,
        worker_init_fn=_begin_worker,
        generator=generator,
    )
    for packed in _batches(loader):
        if isinstance(packed, Exception):
            raise packed
        dtype, data = packed
        yield torch.from_numpy(data).view(dtype)


class _LazyDataset(Dataset[Any]):
    """Lazy inputs as a data loader's workers read them."""

    def __init__(self, inputs: LazyInputs, key: tuple[int, ...] | None) -> None:
        self.inputs, self.key = inputs, key

    def __getitem__(self, row: int) -> Tensor | Exception:
        # A stream a row, not one a worker: which worker reads it must make no difference.
        rng = None if self.key is None else np.random.default_rng(seed_of("files", *self.key, row))
        try:
            return self.inputs.read(row, rng)
        except Exception as error:  # a worker would bury it in a text of its own
            return error


def _packed(samples: list[Tensor | Exception]) -> Packed | Exception:
    """Return a batch as bytes, or the first error as it is.

    Tensors would be handed over in /dev/shm, which is often kept small in containers, and a
    worker that finds it full leaves the others waiting for ever.
    """
    try:
        for sample in samples:
            if isinstance(sample, Exception):
                raise sample
        batch = torch.stack(samples)  # type: ignore[arg-type]
        return batch.dtype, batch.view(torch.uint8).numpy()
    except Exception as error:
        return _portable(error)


def _portable(error: Exception) -> Exception:
    """Return an error that another process can be told."""
    try:
        pickle.dumps(copy.copy(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _begin_worker(_: int) -> None:
    """Have a worker that cannot hand something over end, rather than let others wait for it.

    The attribute is private, but there is no other way: the loader makes its queues itself,
    and a queue whose thread fails to send a batch, for lack of memory, tells no one but the
    terminal. A timeout would not do, as it cannot tell a lost batch from a slow disk, nor
    would a pool of processes of our own, as those outlive a parent that is killed.
    """
    Queue._on_queue_feeder_error = staticmethod(lambda *_: os._exit(1))  # type: ignore[attr-defined]


def _batches(loader: DataLoader[Any]) -> Iterator[Packed | Exception]:
    """Yield what a loader gives; what befalls its processes is told in one sentence."""
    try:
        if loader.num_workers:
            _check_room(loader.num_workers + 1)
        batches = iter(loader)
    except OSError as error:
        raise ChildProcessError(
            f"the processes that read data cannot be started ({error.strerror}); make room "
            f"in memory and in /dev/shm, or do without them: --workers 0."
        ) from error
    try:
        yield from batches
    except RuntimeError as error:
        _shut_down(batches)
        raise ChildProcessError(
            f"a process that reads data has died, perhaps for lack of memory ({error}); the same "
            f"command resumes, with fewer workers if need be."
        ) from error


def _shut_down(batches: Any) -> None:
    """End the processes that are left, now.

    The iterator's destructor would do it, by the same private method. But a process whose death
    is noticed only then makes it raise once more, where nothing can catch it.
    """
    with suppress(RuntimeError):
        getattr(batches, "_shutdown_workers", lambda: None)()  # only those with processes have it


def _check_room(queues: int) -> None:
    """Raise an `OSError` where so many queues cannot be had.

    A loader that fails to make its own ones complains once more when it is thrown away.
    """
    made: list[Queue[Any]] = [multiprocessing.Queue() for _ in range(queues)]
    for queue in made:
        queue.close()
