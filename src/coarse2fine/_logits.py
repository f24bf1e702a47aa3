"""Logits of a model, checked against a hierarchy, as probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ._hierarchy.levels import to_class_indices
from ._util.arrays import Array, IntArray, check_entries_finite, to_floats, to_numpy

_MOST_NUMBERS = 1 << 22  # of a block, so that many classes do not need much memory


def check_logits(given: Any, count: int, what: str = "logits", outputs: str = "classes") -> Array:
    """Return logits as an array (N, count) of finite numbers.

    Args:
        given: The logits.
        count: How many columns there must be.
        what: What they are called in messages. Defaults to ``"logits"``.
        outputs: What the columns are. Defaults to ``"classes"``.
    """
    logits = to_floats(given, what)
    if logits.ndim != 2 or logits.shape[1] != count:
        raise ValueError(
            f"{what} must have shape (N, {count}), a column for each of the {count} {outputs} of "
            f"the hierarchy. Got {logits.shape}."
        )
    check_entries_finite(logits, what)
    return logits


def check_targets(given: Any, samples: int, classes: int) -> IntArray:
    """Return targets as an array of `samples` class indices."""
    targets: IntArray = to_numpy(to_class_indices(given, classes, "targets"))
    if targets.shape != (samples,):
        raise ValueError(
            f"targets must have shape ({samples},), one for each row of logits. Got "
            f"{targets.shape}."
        )
    return targets


def log_softmax(logits: Array) -> Array:
    """Return the logarithms of the probabilities, in double precision."""
    logits = logits.astype(np.float64)
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of rows that together are all of them; one, if empty, where there are none."""
    step = max(1, _MOST_NUMBERS // columns)
    for start in range(0, max(rows, 1), step):
        yield slice(start, start + step)
