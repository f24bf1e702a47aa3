"""The optimiser of a run, its learning rate, and its state as named tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from .config import Config


def make_optimiser(config: Config, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser that the settings name."""
    common: dict[str, Any] = {"lr": config.learning_rate, "weight_decay": config.weight_decay}
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimiser == "sgd":
        return torch.optim.SGD(trained, momentum=config.momentum or 0.0, **common)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(trained, **common)


def learning_rate(config: Config, epoch: int, epochs: int) -> float:
    """Return the learning rate of an epoch: divided by 10 after each milestone.

    Args:
        config: The settings.
        epoch: Counted from 0.
        epochs: How many there are.
    """
    passed = sum(epoch >= round(share * epochs) for share in config.milestones or ())
    return float(config.learning_rate or 0) * 0.1**passed


def flat_state(state: dict[str, dict[str, Any]]) -> dict[str, Tensor]:
    """Return an optimiser's state, parameter → name → value, as one flat dict of tensors."""
    return {
        f"{parameter}/{name}": torch.as_tensor(value)
        for parameter, values in state.items()
        for name, value in values.items()
        if value is not None  # as SGD without momentum has it
    }


def nested_state(tensors: dict[str, Tensor], groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an optimiser's state dict from what `flat_state` gave and its groups."""
    state: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, _, name = key.rpartition("/")
        state.setdefault(parameter, {})[name] = tensor
    return {"state": state, "param_groups": groups}
