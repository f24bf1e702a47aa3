"""What the scikit-learn estimator is given: settings, samples, network, checked."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from numbers import Real
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._util.arrays import IntArray, check_whole
from ..clustering import Linkage
from ..data.sampling import stratified_rows
from ..data.split import Kind
from ..distances import Metric
from ..models import build_model
from ..runs.config import ADAPTIVE
from ._curriculum import REACH_90

_LEAST = {"width": 1, "max_epochs": 1, "patience": 0, "batch_size": 1, "curriculum_epochs": 0}
_RULES = (ADAPTIVE, REACH_90)  # for curriculum_epochs
_METHODS = ("best", "baseline", "continuous")
_RANGES: dict[str, tuple[Callable[[float], bool], str]] = {
    "lr": (lambda value: 0 < value < math.inf, "more than 0 and finite"),
    "label_smoothing": (lambda value: 0 <= value <= 1, "from 0 to 1"),
    "validation_fraction": (lambda value: 0 < value < 1, "more than 0 and less than 1"),
}


def check_settings(estimator: Any) -> None:
    """Refuse settings that would be noticed late or not clearly."""
    length = estimator.curriculum_epochs
    if isinstance(length, str) and length not in _RULES:
        raise TypeError(
            f"curriculum_epochs must be an integer, {' or '.join(map(repr, _RULES))}. Got "
            f"{length!r}."
        )
    for name, least in _LEAST.items():
        value = getattr(estimator, name)
        if name == "curriculum_epochs" and isinstance(value, str):
            continue
        if check_whole(value, name) < least:
            raise ValueError(f"{name} must be at least {least}. Got {value}.")
    for name, (is_valid, text) in _RANGES.items():
        _check_number(name, getattr(estimator, name), is_valid, text)
    _check_device(estimator.device)
    if estimator.method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}. Got {estimator.method!r}.")
    if not callable(estimator.optimizer):
        raise TypeError(
            f"optimizer must be a class such as torch.optim.SGD. Got {estimator.optimizer!r}."
        )
    for name, valid in (("metric", get_args(Metric)), ("linkage", get_args(Linkage))):
        value = getattr(estimator, name)
        if isinstance(value, str) and value not in valid:
            raise ValueError(f"{name} must be one of {', '.join(valid)}. Got {value!r}.")


def _check_number(name: str, value: Any, is_valid: Callable[[float], bool], text: str) -> None:
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number. Got {value!r}.")
    if not is_valid(float(value)):
        raise ValueError(f"{name} must be {text}. Got {value}.")


def _check_device(device: Any) -> None:
    """Refuse a device on which nothing can be computed here."""
    try:
        torch.zeros(1, device=torch.device(device)).item()
    except (AssertionError, ImportError, RuntimeError, TypeError) as error:
        there = ["cpu", *(f"cuda:{index}" for index in range(torch.cuda.device_count()))]
        there += ["mps"] * torch.backends.mps.is_available()
        raise ValueError(
            f"device must be one of those here: {', '.join(there)}. Got {device!r}."
        ) from error


def validation_mask(targets: IntArray, fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return which samples are for validation: at random, of every class alike.

    One sample of every class is always left to train on.

    Args:
        targets: The class or node of each sample, from 0.
        fraction: The share of all samples; one at least is taken.
        seed: Of the choice.

    Examples:
        >>> targets = np.repeat([0, 1, 2], [11, 21, 1])
        >>> np.bincount(targets[validation_mask(targets, 0.2, seed=0)])
        array([2, 5])
    """
    total, rng = max(1, round(fraction * len(targets))), np.random.RandomState(seed)
    rows = stratified_rows(targets, int(targets.max()) + 1, total, rng)
    if not len(rows):
        raise ValueError(
            "no class has two samples that differ, so none is left to validate on; give more."
        )
    mask = np.zeros(len(targets), bool)
    mask[rows] = True
    return mask


def check_can_validate(targets: IntArray, num_classes: int) -> None:
    """Refuse samples to validate on of which none is labelled with its class."""
    if not (targets < num_classes).any():
        raise ValueError(
            "of the samples that are held out to validate on, none is labelled with its class, so "
            "networks cannot be compared; label more of them, or raise validation_fraction."
        )


def fresh_module(
    module: str | nn.Module | Callable[..., nn.Module], num_classes: int, inputs: Tensor
) -> nn.Module:
    """Return a new network with its initial weights, of which no one else has a part.

    Args:
        module: See `build_model`; or an ``nn.Module``, which is copied.
        num_classes: K.
        inputs: Samples, whose shape it is made for.
    """
    if isinstance(module, nn.Module):
        made = copy.deepcopy(module).cpu()
    else:
        kind: Kind = "table" if inputs.dim() == 2 else "image"
        made = build_model(module, num_classes, inputs.shape[1:], kind)
    _check_outputs(made, inputs[:2], num_classes)
    return made


def _check_outputs(module: nn.Module, inputs: Tensor, num_classes: int) -> None:
    """Refuse a module that does not take the samples, or give one logit for each class."""
    module.eval()
    try:
        with torch.no_grad():  # which gives lazy layers their sizes too
            outputs = module(inputs)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"module must take the samples of X, but fails on {len(inputs)} of them, a float32 "
            f"tensor of the shape {tuple(inputs.shape)}: {error}"
        ) from error
    got = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if got != (len(inputs), num_classes):
        raise ValueError(
            f"module must give a tensor with a logit for each of the {num_classes} classes, of "
            f"the shape {(len(inputs), num_classes)} for {len(inputs)} samples. Got {got}."
        )
