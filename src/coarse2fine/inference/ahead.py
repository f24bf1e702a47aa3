"""Samples made ready for a model while it computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor, nn

from .chunks import FAULTS, Chunk, OnFault
from .preprocessing import Preprocessing

_AHEAD = 2  # batches that are prepared while the model computes

Prepared = tuple[Sequence[str], Tensor | None]


def _prepared(chunk: Chunk, preprocessing: Preprocessing, on_fault: OnFault | None) -> Prepared:
    """Return the samples that can be used as a tensor; None where there are none."""
    try:
        return chunk.names, preprocessing.tensor(chunk)
    except FAULTS:
        if on_fault is None:
            _raise_first(chunk, preprocessing)
            raise
    usable = [(single, _usable(single, preprocessing, on_fault)) for single in chunk.singles()]
    names = [single.names[0] for single, tensor in usable if tensor is not None]
    tensors = [tensor for _, tensor in usable if tensor is not None]
    return names, _padded(tensors) if tensors else None


def _raise_first(chunk: Chunk, preprocessing: Preprocessing) -> None:
    """Raise what is wrong with the first sample; of a table, a later one may be noticed first."""
    for single in chunk.singles():
        preprocessing.tensor(single)


def _usable(single: Chunk, preprocessing: Preprocessing, on_fault: OnFault) -> Tensor | None:
    try:
        return preprocessing.tensor(single)
    except FAULTS as error:
        on_fault(single.names[0], error)
        return None


def _padded(tensors: Sequence[Tensor]) -> Tensor:
    """Return samples as one tensor; sentences of different lengths are padded by 0."""
    if tensors[0].dim() != 2 or tensors[0].is_floating_point():
        return torch.cat(list(tensors))
    return nn.utils.rnn.pad_sequence([tensor[0] for tensor in tensors], batch_first=True)


def prepared_ahead(
    chunks: Iterator[Chunk], preprocessing: Preprocessing, on_fault: OnFault | None
) -> Iterator[Prepared]:
    """Yield prepared chunks in order, the next ones being prepared by a thread meanwhile.

    Args:
        chunks: Samples as they were given.
        preprocessing: What makes tensors of them.
        on_fault: See `Classifier.stream`.
    """
    waiting: deque[Callable[[], Prepared]] = deque()
    pool = ThreadPoolExecutor(1)
    try:
        for chunk in chunks:
            prepare = partial(_prepared, chunk, preprocessing, on_fault)
            # With nothing to decode, a thread would slow those of the model by more than it saves.
            is_ready = preprocessing.is_ready(chunk)
            waiting.append(prepare if is_ready else pool.submit(prepare).result)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()
    finally:
        pool.shutdown(cancel_futures=True)
