"""How a run knows a model again that was given as a Python callable, and who may import it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from ..data import Kind
from ..data.load import SETS
from ..errors import RunError
from ..methods import METHODS
from ..models import build_model, is_ours
from .config import Config

Factory = str | Callable[..., nn.Module]

# What this process was given to train with, by what runs call it.
_TRUSTED: dict[str, Factory] = {}


def import_path(model: Any) -> str:
    """Return where a callable is defined, as ``package.module:callable``.

    That of a partial function is that of the whole one.
    """
    while isinstance(model, partial):
        model = model.func
    kind = model if hasattr(model, "__qualname__") else type(model)
    return f"{kind.__module__}:{kind.__qualname__}"


def structure(model: Factory, num_classes: int, shape: tuple[int, ...], kind: Kind) -> str:
    """Return a short text that differs for models of other layers or sizes.

    Two lambdas have one name, so a name alone would take one model for the other. What does
    not show in `repr`, such as a function that a model calls, is not seen here either.

    Args:
        model: What makes it.
        num_classes: How many classes there are.
        shape: Of one sample.
        kind: What the data is.
    """
    built = build_model(model, num_classes, shape, kind)
    sizes = {name: tuple(value.shape) for name, value in built.state_dict().items()}
    arguments = repr((model.args, model.keywords)) if isinstance(model, partial) else ""
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{built!r}{sizes}{arguments}")
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def path_or_name(data: str) -> str:
    """Return how a path is written without what changes nothing; any other name as it is.

    Examples:
        >>> path_or_name("./"), path_or_name("shapes:600")
        ('.', 'shapes:600')
    """
    path = os.path.normpath(data)
    return path if Path(data).exists() and path.partition(":")[0] not in SETS else data


# ------------------------------------------------------------ what a run directory may ask for


def trust(name: str, model: Factory) -> None:
    """Let a model be made for any run that names it, as this process was given it to train.

    Args:
        name: What runs call it.
        model: What makes it.
    """
    _TRUSTED[name] = model


def stored_model(path: Path, name: str) -> Factory:
    """Return what makes the model that a run names, if that is ours or was given here.

    A run directory may be anyone's. To import what it names would run the code there, so
    whoever uses the run has to name it too.

    Args:
        path: The run directory.
        name: As its config has it.

    Raises:
        RunError: It is neither ours nor was given to this process.
    """
    location = name.partition("#")[0]
    if ":" not in location or is_ours(location) or name in _TRUSTED:
        return _TRUSTED.get(name, location)
    is_named = re.fullmatch(r"[\w.]+:[\w.]+", location) and not location.startswith("__main__:")
    example = location if is_named else "package.module:callable"
    raise RunError(
        f"{path}: its model {location!r} is code from outside this package, which is imported only "
        f"if you say so; if you trust it, name it: --model {example}, in Python {example!r}."
    )


def stored_config(settings: Mapping[str, Any]) -> Config:
    """Return the settings of a run without the methods that are not ours.

    To check what those take would import them, and whoever uses a run needs none of it.

    Args:
        settings: As the run's config has them.
    """
    known = {"stratify": False, **settings}  # version 0.1 divided samples at random alone
    methods, own = known.get("methods", ()), known.get("method_settings")
    if isinstance(methods, list | tuple | str):
        names = [methods] if isinstance(methods, str) else methods
        known["methods"] = [name for name in names if name in METHODS]
    if isinstance(own, dict):
        ours = {name: value for name, value in own.items() if name.rpartition(".")[0] in METHODS}
        known["method_settings"] = ours
    return Config.from_dict(known)
