"""PyTorch data sets of (input, target) pairs, read when they are needed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Subset

from .arrays import as_sample, check_finite, check_shape


class DatasetInputs:
    """`LazyInputs` of a map-style data set.

    Args:
        dataset: Gives pairs (input, target); inputs may be tensors, arrays or PIL images.
        role: What to call it in an error.
    """

    def __init__(self, dataset: Any, role: str) -> None:
        self.dataset, self.role = dataset, role
        self.shape = self._sample(0, None).shape

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        """Return one sample; the data set's own randomness is a function of `rng` alone.

        Args:
            row: Which sample.
            rng: Seeds the global generators for this sample. Defaults to None: the row does.
        """
        sample = self._sample(row, rng)
        check_shape(sample, self.shape, self.role, row)
        check_finite(sample.unsqueeze(0), self.role, first=row)
        return sample

    def _sample(self, row: int, rng: np.random.Generator | None) -> Tensor:
        return as_sample(
            item_of(self.dataset, row, self.role, rng)[0], f"{self.role}: sample {row}"
        )


def item_of(
    dataset: Any, row: int, role: str, rng: np.random.Generator | None = None
) -> tuple[Any, Any]:
    """Return a pair (input, target) of a data set, leaving the global generators as they were.

    Args:
        dataset: The data set.
        row: Which sample.
        role: What to call the data set in an error.
        rng: Seeds the global generators for this call. Defaults to None: the row does.
    """
    with _seeded(row if rng is None else int(rng.integers(2**32))):
        item = dataset[row]
    if not isinstance(item, tuple | list) or len(item) != 2:
        what = f"{len(item)} values" if isinstance(item, tuple | list) else type(item).__name__
        raise TypeError(f"{role}: sample {row} must be a pair (input, target). Got {what}.")
    return item[0], item[1]


def dataset_targets(dataset: Any, role: str) -> Any:
    """Return the targets of a data set: those it tells, or else those of all its items.

    Args:
        dataset: The data set.
        role: What to call it in an error.
    """
    told = _told_targets(dataset)
    ends = {0, len(dataset) - 1}
    if told is not None and all(_same(told[row], item_of(dataset, row, role)[1]) for row in ends):
        return told
    return [_plain(item_of(dataset, row, role)[1]) for row in range(len(dataset))]


def declared_classes(dataset: Any) -> tuple[str, ...]:
    """Return the names of the classes that a data set tells, none if it does not."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    classes = getattr(dataset, "classes", ())
    return tuple(map(str, classes)) if isinstance(classes, list | tuple) else ()


def _told_targets(dataset: Any) -> list[Any] | None:
    """Return what the attributes of a data set say, which a transform of targets may belie."""
    if isinstance(dataset, Subset):
        inner = _told_targets(dataset.dataset)
        return None if inner is None else [inner[row] for row in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        parts = [_told_targets(part) for part in dataset.datasets]
        return None if None in parts else [one for part in parts for one in part or ()]
    if getattr(dataset, "target_transform", None) is not None:
        return None
    for name in ("targets", "labels"):
        told = getattr(dataset, name, None)
        if isinstance(told, list | tuple | np.ndarray | Tensor) and len(told) == len(dataset):
            return [_plain(value) for value in told]
    return None


def _plain(value: Any) -> Any:
    """Return a number that is wrapped by torch or numpy as Python's own."""
    is_wrapped = isinstance(value, Tensor | np.ndarray | np.generic)
    return value.item() if is_wrapped and not value.shape else value


def _same(told: Any, given: Any) -> bool:
    given = _plain(given)
    return type(told) is type(given) and isinstance(told, int | str) and told == given


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python, and put them back afterwards."""
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which reaches for GPUs
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        random.setstate(before[2])
