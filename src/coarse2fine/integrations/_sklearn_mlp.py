"""The default network of the scikit-learn estimator."""

from __future__ import annotations

from typing import Any, cast

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..models.table import TableMLP


class StandardisedMLP(nn.Module):
    """`TableMLP` behind a layer that brings every column to mean 0 and deviation 1.

    The columns are scaled in their own precision, as some may have a large mean and a small
    deviation; the layers are in single precision, which trains faster.

    Args:
        num_classes: K.
        mean: Of each column.
        deviation: Of each column.
        width: See `TableMLP`.
        dropout: See `TableMLP`.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        num_classes: int,
        mean: NDArray[Any],
        deviation: NDArray[Any],
        width: int,
        dropout: float,
    ) -> None:
        super().__init__()
        self.register_buffer("mean", torch.as_tensor(mean))
        self.register_buffer("deviation", torch.as_tensor(deviation))
        self.mlp = TableMLP(num_classes, len(mean), width, dropout)

    def forward(self, columns: Tensor) -> Tensor:
        """Return the logits (N, K) of columns (N, F)."""
        if columns.is_sparse:
            return self._of_sparse(columns)
        scaled = (columns - self.mean) / self.deviation
        logits: Tensor = self.mlp(scaled.to(self.mlp.head.weight.dtype))
        return logits

    def _of_sparse(self, columns: Tensor) -> Tensor:
        """Scale the weights of the first layer instead, as scaled columns would not be sparse."""
        first, rest = cast(nn.Linear, self.mlp.hidden[0]), self.mlp.hidden[1:]
        dtype = first.weight.dtype
        weight = first.weight / self.deviation.to(dtype)
        bias = first.bias - first.weight @ (self.mean / self.deviation).to(dtype)
        hidden = torch.sparse.mm(columns.to(dtype), weight.t()) + bias
        logits: Tensor = self.mlp.head(rest(hidden))
        return logits
