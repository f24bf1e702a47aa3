"""Models by name, and anyone's own by `package.module:callable`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._util.imports import imported
from .._util.plugins import brought, names

if TYPE_CHECKING:
    from torch import nn

    from ..data.split import Kind

__all__ = ["MODELS", "build_model", "default_model", "is_ours"]

# The kind of data that a model is for and its place, which is imported on first use: to list
# the models, as the command line does, need not import torch.
MODELS: dict[str, tuple[Kind, str]] = {
    "cnn": ("image", "coarse2fine.models.cnn:CNN"),
    "resnet20": ("image", "coarse2fine.models.small_resnet:resnet20"),
    "resnet18": ("image", "coarse2fine.models.resnet:resnet18"),
    "resnet50": ("image", "coarse2fine.models.resnet:resnet50"),
    "wrn-28-10": ("image", "coarse2fine.models.wide_resnet:wrn_28_10"),
    "bag": ("text", "coarse2fine.models.text:TextBag"),
    "transformer": ("text", "coarse2fine.models.text:TextTransformer"),
    "mlp": ("table", "coarse2fine.models.table:TableMLP"),
}

Arguments = dict[str, int | tuple[int, ...]]

_OWN = "package.module:callable"


def build_model(
    name: str | Callable[..., nn.Module],
    num_classes: int,
    input_shape: Sequence[int],
    kind: Kind = "image",
) -> nn.Module:
    """Return a new model for the given data.

    Args:
        name: One of `MODELS`, or one that an installed package brings; or
            ``package.module:callable``, which may also be in the current directory; or a
            callable. It is called with those of the following keyword
            arguments that its signature names: num_classes, which it must take; input_shape;
            for images in_channels and image_size, their side; for tables in_features.
        num_classes: How many classes there are.
        input_shape: The shape of one sample, such as (3, 32, 32).
        kind: What the data is. Defaults to ``"image"``.

    Examples:
        >>> build_model("cnn", 10, (3, 32, 32)).head
        Linear(in_features=1024, out_features=10, bias=True)
    """
    known = _known_arguments(num_classes, tuple(input_shape), kind)
    if isinstance(name, str):
        return _built(name, _factory(name, kind), known)
    return _built(getattr(name, "__qualname__", type(name).__name__), name, known)


def is_ours(model: object) -> bool:
    """Return whether a model is one of `MODELS`, given by its name or by its place.

    Args:
        model: As `build_model` takes it.

    Examples:
        >>> is_ours("cnn"), is_ours("coarse2fine.models.cnn:CNN"), is_ours("torch:load")
        (True, True, False)
    """
    ours = {*MODELS, *(place for _, place in MODELS.values())}
    return isinstance(model, str) and model in ours


def default_model(kind: Kind) -> str:
    """Return the name of the default model for a kind of data.

    Args:
        kind: What the data is.

    Examples:
        >>> default_model("text")
        'bag'
    """
    for name, (data, _) in MODELS.items():
        if data == kind:
            return name
    raise ValueError(f"data of kind {kind!r} has no default model: give one as {_OWN}.")


# ---------------------------------------------------------------------- finding a callable


def _factory(name: str, kind: Kind) -> Any:
    """Return what makes a model, if it suits the kind of data."""
    if ":" in name:
        return imported(name, "model")
    if name in MODELS:
        return imported(_location(name, kind), "model")
    found = brought(name, "models", "model")
    if found is None:
        raise ValueError(
            f"model {name!r} is unknown. Must be one of {names('models', MODELS)}, or one of your "
            f"own as {_OWN}."
        )
    return found


def _location(name: str, kind: Kind) -> str:
    """Return the place of a model of ours, if it suits the kind of data."""
    data, location = MODELS[name]
    if data != kind:
        suitable = [other for other, (for_kind, _) in MODELS.items() if for_kind == kind]
        raise ValueError(
            f"model {name!r} is for data of kind {data!r}, and this is of kind {kind!r}. "
            f"Must be {' or '.join([*suitable, f'one of your own as {_OWN}'])}."
        )
    return location


# ---------------------------------------------------------------------- calling it


def _known_arguments(num_classes: int, shape: tuple[int, ...], kind: Kind) -> Arguments:
    """Return everything about the data that a model can be called with."""
    known: Arguments = {"num_classes": num_classes, "input_shape": shape}
    # A sample of text also has one dimension, but it is a length, not a number of features.
    if kind != "text" and len(shape) == 3:
        known |= {"in_channels": shape[0], "image_size": shape[1]}
    elif kind != "text" and len(shape) == 1:
        known["in_features"] = shape[0]
    return known


def _built(name: str, factory: Any, known: Arguments) -> nn.Module:
    from torch import nn

    # A module is callable too, and would fail much later, at its first batch.
    if isinstance(factory, nn.Module) or not callable(factory):
        raise TypeError(
            f"model {name} must be a class or function that makes one, so that every run begins "
            f"anew. Got a {type(factory).__name__}."
        )
    model = factory(**_arguments(name, factory, known))
    if not isinstance(model, nn.Module):
        raise TypeError(f"model {name} must make an nn.Module. Got a {type(model).__name__}.")
    return model


def _arguments(name: str, factory: Callable[..., Any], known: Arguments) -> Arguments:
    """Return the keyword arguments for a callable: what is known and its signature names."""
    try:
        parameters = list(inspect.signature(factory).parameters.values())
    except ValueError as error:
        raise TypeError(f"model {name} does not say which arguments it takes.") from error
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    if "num_classes" not in named and not open_ended:
        takes = ", ".join(named) or "nothing by name"
        raise TypeError(f"model {name} must take num_classes. It takes {takes}.")
    missing = [p.name for p in named.values() if p.default is p.empty and p.name not in known]
    if missing:
        raise TypeError(
            f"model {name} must not need {', '.join(missing)}: all that can be given it for this "
            f"data is {', '.join(known)}."
        )
    if "image_size" in named:
        _check_square(name, known)
    # **kwargs get num_classes alone: they are often passed on to what knows no other.
    return {key: value for key, value in known.items() if key in named or key == "num_classes"}


def _check_square(name: str, known: Arguments) -> None:
    match known:
        case {"image_size": _, "input_shape": (_, height, width)} if height != width:
            raise ValueError(
                f"model {name} takes image_size, the side of square images, but these are "
                f"{height}×{width}; let it take input_shape instead."
            )
