"""The optimiser of a run, its learning rate, and its state as named tensors."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from ..runs.config import Config


def make_optimiser(config: Config, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser that the settings name."""
    rate, decay = config.learning_rate or 0.0, config.weight_decay or 0.0
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimiser == "sgd":
        momentum = config.momentum or 0.0
        return torch.optim.SGD(trained, lr=rate, momentum=momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(trained, lr=rate, weight_decay=decay)


def learning_rate(config: Config, epoch: int, epochs: int) -> float:
    """Return the learning rate of an epoch: divided by 10 after each milestone.

    Args:
        config: The settings.
        epoch: Counted from 0.
        epochs: How many there are.
    """
    passed = sum(epoch >= round(share * epochs) for share in config.milestones or ())
    return float(config.learning_rate or 0) * 0.1**passed
