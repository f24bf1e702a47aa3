"""What all torchmetrics here have in common."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._hierarchy.levels import to_class_indices
from ..errors import require
from ..hierarchy import Hierarchy

require("torchmetrics", "torchmetrics")  # says how to install it where it is missing
# ruff: noqa: E402
from torchmetrics import Metric


class Counts(Metric):
    """What all have in common: sums over samples, which processes add up.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    is_differentiable = False
    full_state_update = False
    levels: Tensor

    def __init__(self, hierarchy: Hierarchy, **options: Any) -> None:
        super().__init__(**options)
        levels = torch.stack([torch.from_numpy(level.copy()) for level in hierarchy.levels])
        self.register_buffer("levels", levels, persistent=False)

    def _count(self, name: str, *shape: int, dtype: torch.dtype = torch.int64) -> None:
        self.add_state(name, torch.zeros(shape, dtype=dtype), dist_reduce_fx="sum")


def checked(
    preds: Tensor, target: Tensor, count: int, targets: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return predictions and targets as indices of the same shape, all in range.

    Args:
        preds: Indices, or scores of which the largest counts.
        target: Indices.
        count: How many indices there are.
        targets: The same of `target`. Defaults to None: as many.
    """
    if preds.is_floating_point():
        preds = preds.argmax(dim=1)
    if preds.shape != target.shape:
        raise ValueError(
            f"preds and target must have the same shape. Got {tuple(preds.shape)} and "
            f"{tuple(target.shape)}."
        )
    preds = to_class_indices(preds, count, "preds")
    return preds, to_class_indices(target, count if targets is None else targets, "target")
