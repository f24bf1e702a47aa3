"""Where a training is: its progress, its optimiser, and the tensors of both from all processes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.optim.optimizer import StateDict

from ..checkpoints import Tensors
from ..methods.base import Stage
from ..runs.checkpoint import Checkpoint
from ..runs.config import Config

_WHOLE = StateDictOptions(full_state_dict=True)
# Weights that never had a gradient have no state.
_PARTIAL = StateDictOptions(full_state_dict=True, strict=False)


@dataclass
class Progress:
    """Where a run is; between epochs this and the tensors are all there is.

    Args:
        stage: The stage in training.
        epoch: How many of its epochs are done.
        total: How many epochs are done in all.
        best_epoch: The best of the stage's epochs, counted from 1; 0 for none yet.
        best_accuracy: Its validation accuracy, at the level of the stage.
        seconds: How long training took so far.
    """

    stage: int = 0
    epoch: int = 0
    total: int = 0
    best_epoch: int = 0
    best_accuracy: float = -1.0
    seconds: float = 0.0

    def is_over(self, stage: Stage) -> bool:
        """Whether the stage has had its epochs, or has not improved for too long."""
        if stage.exactly is not None:
            return self.epoch >= stage.exactly
        return self.epoch >= stage.epochs or self.has_stalled(stage)

    def has_stalled(self, stage: Stage) -> bool:
        """Whether the stage has not improved for as long as its patience."""
        since = self.epoch - max(self.best_epoch, stage.counts_from)
        return bool(stage.patience) and since >= stage.patience

    def next_stage(self) -> None:
        """Go to the beginning of the next stage."""
        self.stage, self.epoch, self.best_epoch, self.best_accuracy = self.stage + 1, 0, 0, -1.0


def make_optimiser(config: Config, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Return the optimiser that the settings name."""
    rate, decay = config.learning_rate or 0.0, config.weight_decay or 0.0
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    if config.optimiser == "sgd":
        momentum = config.momentum or 0.0
        return torch.optim.SGD(trained, lr=rate, momentum=momentum, weight_decay=decay)
    kind = torch.optim.AdamW if config.optimiser == "adamw" else torch.optim.Adam
    return kind(trained, lr=rate, weight_decay=decay, fused=_can_be_fused(trained) or None)


def _can_be_fused(parameters: Iterable[nn.Parameter]) -> bool:
    """Whether Adam may update all weights in one call, which takes a third of the time or less.

    On other devices torch's own choice is as fast. Nor is it for weights in another order of
    memory, such as the channels' last: a checkpoint's state comes back in the usual order, and the
    one call would take it as it lies there.
    """
    return all(
        parameter.device.type == "cpu" and parameter.is_contiguous() for parameter in parameters
    )


def learning_rate(config: Config, epoch: int, epochs: int) -> float:
    """Return the learning rate of an epoch: divided by 10 after each milestone.

    Args:
        config: The settings.
        epoch: Counted from 0.
        epochs: How many there are.
    """
    passed = sum(epoch >= round(share * epochs) for share in config.milestones or ())
    return float(config.learning_rate or 0) * 0.1**passed


def wrapped(model: Any) -> nn.Module:
    """Return a model as torch's strategies wrap it, within Fabric's own wrapper.

    Fabric's public `module` is the bare one, from which torch cannot gather what FSDP has
    spread over the processes; there is no public name for the one in between.
    """
    inner: nn.Module = model._forward_module
    return inner


def gathered_weights(model: nn.Module) -> Tensors:
    """Return a copy of the weights on the CPU."""
    whole: Any = get_model_state_dict(model, options=_WHOLE)
    return {name: value.to("cpu", copy=True) for name, value in whole.items()}


def gathered_state(
    model: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[Tensors, Tensors, Any]:
    """Return the state of model and optimiser as named tensors, and the optimiser's groups."""
    found: Any = get_state_dict(model, optimiser, options=_WHOLE)
    weights, state = found
    return weights, flat_state(state["state"]), state["param_groups"]


def restore_state(
    model: nn.Module, optimiser: torch.optim.Optimizer, checkpoint: Checkpoint
) -> None:
    """Set model and optimiser to what `gathered_state` gave for a checkpoint."""
    set_model_state_dict(model, dict(checkpoint.tensors["model"]), options=_WHOLE)
    if checkpoint.tensors["optimiser"]:  # SGD without momentum has no state
        state = nested_state(checkpoint.tensors["optimiser"], checkpoint.state["groups"])
        set_optimizer_state_dict(model, optimiser, state, options=_PARTIAL)


def flat_state(state: Mapping[str, Mapping[str, Tensor | float | None]]) -> Tensors:
    """Return an optimiser's state, parameter → name → value, as one flat dict of tensors."""
    return {
        f"{parameter}/{name}": torch.as_tensor(value)
        for parameter, values in state.items()
        for name, value in values.items()
        if value is not None  # as SGD without momentum has it
    }


def nested_state(tensors: Tensors, groups: list[StateDict]) -> StateDict:
    """Return an optimiser's state dict from what `flat_state` gave and its groups."""
    state: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        parameter, _, name = key.rpartition("/")
        state.setdefault(parameter, {})[name] = tensor
    return {"state": state, "param_groups": groups}
