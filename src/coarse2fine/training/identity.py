"""How a run knows a model again that was given as a Python callable."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from ..data import Kind, Source, input_shape
from ..models import build_model


def import_path(model: Any) -> str:
    """Return where a callable is defined, as ``package.module:callable``.

    That of a partial function is that of the whole one.
    """
    while isinstance(model, partial):
        model = model.func
    kind = model if hasattr(model, "__qualname__") else type(model)
    return f"{kind.__module__}:{kind.__qualname__}"


def structure(model: str | Callable[..., nn.Module], source: Source) -> str:
    """Return a short text that differs for models of other layers or sizes.

    Two lambdas have one name, so a name alone would take one model for the other. What does
    not show in `repr`, such as a function that a model calls, is not seen here either.
    """
    train = source.train
    return structure_for(model, len(train.class_names), input_shape(train), source.kind)


def structure_for(
    model: str | Callable[..., nn.Module],
    num_classes: int,
    shape: tuple[int, ...],
    kind: Kind,
) -> str:
    """Return the same for a number of classes, the shape of one sample and a kind of data."""
    built = build_model(model, num_classes, shape, kind)
    sizes = {name: tuple(value.shape) for name, value in built.state_dict().items()}
    arguments = repr((model.args, model.keywords)) if isinstance(model, partial) else ""
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{built!r}{sizes}{arguments}")
    return hashlib.sha256(text.encode()).hexdigest()[:8]
