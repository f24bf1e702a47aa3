"""The models of the runs that version 0.1.0 has left here."""

from torch import nn

from coarse2fine.models.text import TextBag


def make(num_classes: int, in_features: int) -> nn.Module:
    return nn.Sequential(nn.Linear(in_features, 8), nn.ReLU(), nn.Linear(8, num_classes))


def look(num_classes: int, in_channels: int) -> nn.Module:
    seeing = (nn.Conv2d(in_channels, 6, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    return nn.Sequential(*seeing, nn.Linear(24, num_classes))


def read(num_classes: int) -> nn.Module:
    return TextBag(num_classes, vocabulary_size=64, width=4, hidden=8, dropout=0.1)
