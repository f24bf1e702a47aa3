"""Batches as training methods see them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from coarse2fine.data.batches import Batch


def batch_of(
    targets: Any, rows: Any = None, *, logits: Tensor | None = None, share: float = 1.0
) -> Batch:
    """A whole batch, of the first samples unless rows are given; its inputs may be logits."""
    targets = torch.as_tensor(targets)
    rows = torch.arange(len(targets)) if rows is None else torch.as_tensor(rows)
    inputs = torch.zeros(len(targets), 1) if logits is None else logits
    return Batch(inputs, targets, rows, len(targets), share)


def no_losses() -> Tensor:
    """Stands for a pass over the data that a method has no need of."""
    raise AssertionError("a pass over the data for nothing")


def alone(tensor: Tensor) -> Tensor:
    """The sum over all processes, where there is one."""
    return tensor
