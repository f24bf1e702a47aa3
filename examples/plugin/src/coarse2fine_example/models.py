"""A small network for tables."""

from __future__ import annotations

from torch import nn


def two_layers(num_classes: int, in_features: int, width: int = 16) -> nn.Module:
    """Return a network with one hidden layer.

    It is given num_classes, and of input_shape, in_channels, image_size and in_features those that
    it names; whatever else it takes needs a default.
    """
    hidden = nn.Sequential(nn.Linear(in_features, width), nn.ReLU())
    return nn.Sequential(hidden, nn.Linear(width, num_classes))
