"""Checking the settings of a run, with an error that says which is wrong."""

from __future__ import annotations

from reprlib import repr as short
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args

from ..clustering import Linkage
from ..distances import Metric
from ..methods import find_method
from ..methods.making import settings_of

if TYPE_CHECKING:
    from .config import Config

Rule = Literal["reach-90", "best-epoch", "search"]
RULES = get_args(Rule)
OPTIMISERS = ("adam", "adamw", "sgd")

_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("data", "metric", "linkage", "precision", "accelerator", "strategy"), (str,)),
    **dict.fromkeys(("target", "text", "model", "head"), (str, NoneType)),
    **dict.fromkeys(("hierarchy", "hierarchy_model", "optimiser"), (str, NoneType)),
    "methods": (tuple,),
    "seeds": (tuple,),
    "milestones": (tuple, NoneType),
    "method_settings": (dict, NoneType),
    "baseline": (bool,),
    **dict.fromkeys(("augment", "normalise", "track_test"), (bool, NoneType)),
    **dict.fromkeys(("accumulate", "workers"), (int,)),
    **dict.fromkeys(("devices", "curriculum_epochs"), (int, str)),
    "test_share": (int, float),
    "train_size": (int, float, NoneType),
}
_ENTRIES: dict[str, tuple[type, ...]] = {
    "methods": (str,),
    "seeds": (int,),
    "milestones": (int, float),
}
_WORDS = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "True or False",
    tuple: "a list",
    dict: "a dict",
    NoneType: "None",
}

# The least that a setting may be; whole numbers, then any.
_LEAST_WHOLE = {
    "epochs": 1,
    "batch_size": 1,
    "accumulate": 1,
    "stage_epochs": 1,
    "image_size": 1,
    "max_levels": 2,
    "patience": 0,
    "workers": 0,
}
_LEAST = {"weight_decay": 0, "momentum": 0}
_MORE_THAN_ZERO = ("learning_rate", "clip")
_MOST = 3e38  # what torch still takes for a number of single precision
_SHARES = ("val_share", "test_share")


def check_config(config: Config) -> None:
    """Raise a ValueError or TypeError that names the setting which is wrong.

    Args:
        config: What may hold anything, as when it comes from a file.
    """
    _check_types(config)
    _check_names(config)
    for name, least in _LEAST_WHOLE.items():
        _check_number(name, getattr(config, name), int)
        _check_at_least(name, getattr(config, name), least)
    for name in (*_LEAST, *_MORE_THAN_ZERO, *_SHARES):
        _check_number(name, getattr(config, name), (int, float))
    for name, least in _LEAST.items():
        _check_at_least(name, getattr(config, name), least)
    for name in _MORE_THAN_ZERO:
        value = getattr(config, name)
        if value is not None and not 0 < value < float("inf"):
            raise ValueError(f"{name} must be more than 0. Got {short(value)}.")
        if value is not None and value > _MOST:
            raise ValueError(f"{name} must be at most {_MOST:g}. Got {short(value)}.")
    for name in _SHARES:
        value = getattr(config, name)
        if value is not None and not 0 <= value < 1:
            raise ValueError(f"{name} must be at least 0 and less than 1. Got {short(value)}.")
    _check_lists(config)
    _check_baseline(config)


def _check_types(config: Config) -> None:
    for name, kinds in _KINDS.items():
        value = getattr(config, name)
        # A truth value is an integer to Python, and to nobody else.
        is_odd = isinstance(value, bool) and bool not in kinds
        if is_odd or not isinstance(value, kinds):
            wanted = " or ".join(_WORDS[kind] for kind in kinds)
            raise TypeError(f"{name} must be {wanted}. Got {short(value)}.")
    for name, kind in _ENTRIES.items():
        for value in getattr(config, name) or ():
            if isinstance(value, bool) or not isinstance(value, kind):
                raise TypeError(f"{name} must hold {_WORDS[kind[-1]]} each. Got {short(value)}.")


def _check_names(config: Config) -> None:
    _check_choice("metric", config.metric, get_args(Metric))
    _check_choice("linkage", config.linkage, get_args(Linkage))
    for method in config.methods:
        find_method(method)
    for name, value in (config.method_settings or {}).items():
        method = str(name).rpartition(".")[0]
        if not method:
            raise ValueError(f"method_settings must be named METHOD.NAME. Got {short(name)}.")
        settings_of(method, {name: value})
    if config.optimiser is not None:
        _check_choice("optimiser", config.optimiser, OPTIMISERS)
    length = config.curriculum_epochs
    if isinstance(length, str):
        _check_choice("curriculum_epochs", length, RULES, "a number of epochs, or ")
    else:
        _check_at_least("curriculum_epochs", length, 1)


def _check_lists(config: Config) -> None:
    if len(set(config.methods)) < len(config.methods):
        raise ValueError(f"methods must be different. Got {short(config.methods)}.")
    if not all(0 < share < 1 for share in config.milestones or ()):
        raise ValueError(
            f"milestones must be shares of the epochs. Got {short(config.milestones)}."
        )
    if not config.seeds or len(set(config.seeds)) < len(config.seeds) or min(config.seeds) < 0:
        raise ValueError(f"seeds must be different numbers from 0 on. Got {short(config.seeds)}.")


def _check_baseline(config: Config) -> None:
    if config.hierarchy is not None and config.hierarchy_model is not None:
        raise ValueError("give hierarchy or hierarchy_model, not both.")
    if config.baseline:
        return
    if config.is_needed("class_vectors"):
        raise ValueError("one of the methods needs a baseline, whose final layer it looks at.")
    is_given = config.hierarchy is not None or config.hierarchy_model is not None
    if not is_given and config.is_needed("hierarchy"):
        raise ValueError("without a baseline, a hierarchy or a hierarchy_model must be given.")
    if config.is_needed("length") and isinstance(config.curriculum_epochs, str):
        raise ValueError(
            f"without a baseline, curriculum_epochs must be a number, as the rule "
            f"{config.curriculum_epochs!r} looks at the baseline."
        )


def _check_choice(name: str, value: object, valid: tuple[str, ...], other: str = "") -> None:
    if value not in valid:
        raise ValueError(f"{name} must be {other}one of {', '.join(valid)}. Got {short(value)}.")


def _check_number(name: str, value: object, kind: type | tuple[type, ...]) -> None:
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        what = "an integer" if kind is int else "a number"
        raise TypeError(f"{name} must be {what}. Got {short(value)}.")


def _check_at_least(name: str, value: Any, least: int) -> None:
    if value is not None and not least <= value < float("inf"):
        raise ValueError(f"{name} must be at least {least}. Got {short(value)}.")
