"""A small classifier of rows of numbers."""

from __future__ import annotations

from torch import Tensor, nn


class TableMLP(nn.Module):
    """Two hidden layers with ReLU and dropout, for columns of mean 0 and deviation 1.

    Args:
        num_classes: K.
        in_features: How many columns there are.
        width: The size of a hidden layer. Defaults to 256.
        dropout: The share of features left out in training. Defaults to 0.1.

    Examples:
        >>> TableMLP(num_classes=3, in_features=7).head
        Linear(in_features=256, out_features=3, bias=True)
    """

    def __init__(
        self, num_classes: int, in_features: int, width: int = 256, dropout: float = 0.1
    ) -> None:
        super().__init__()
        sizes = (in_features, width), (width, width)
        layers = [(nn.Linear(*size), nn.ReLU(), nn.Dropout(dropout)) for size in sizes]
        self.hidden = nn.Sequential(*(part for layer in layers for part in layer))
        self.head = nn.Linear(width, num_classes)

    def forward(self, columns: Tensor) -> Tensor:
        """Return the logits (N, K) of columns (N, F)."""
        logits: Tensor = self.head(self.hidden(columns))
        return logits
