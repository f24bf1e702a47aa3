"""Which tensor of anyone's checkpoint is the weight of the final layer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from torch import nn

from .._printable import brief
from ..heads import NAMES, find_head

# Weight norm and spectral norm only scale these, and distances look at directions alone.
_UNSCALED = re.compile(r"\.(weight_v|weight_orig|parametrizations\.weight\.original1?)$")
Shapes = Mapping[str, tuple[int, ...]]


def head_weight(path: Path, shapes: Shapes, head: str | None, *, is_ordered: bool) -> str:
    """Return which tensor of a state dict is the weight of the final layer.

    Args:
        path: The file, for errors.
        shapes: Of the tensors, by name.
        head: The name of the final layer, or None.
        is_ordered: Whether the tensors are in the order of the model's layers.
    """
    weights = {_UNSCALED.sub(".weight", name): name for name in shapes}
    layers = {
        name.removesuffix("weight").removesuffix("."): shapes[key]
        for name, key in weights.items()
        if name.rpartition(".")[2] == "weight" and _is_linear(shapes[key])
    }
    if not is_ordered:
        layers = dict(sorted(layers.items(), key=lambda item: _by_number(item[0])))
    model, names = _skeleton(layers)
    try:
        _, layer = find_head(model, head and head.removesuffix(".weight"))
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None
    found = names[layer]
    if head is None:
        _check_is_last(path, found, layers, shapes, is_ordered)
    return weights[f"{found}.weight" if found else "weight"]


def _skeleton(layers: Shapes) -> tuple[nn.Module, dict[nn.Module, str]]:
    """Return empty modules called as the layers are, and the layers' names."""
    names: dict[nn.Module, str] = {}
    root = nn.Module()
    for name, (outputs, inputs, *_) in layers.items():
        layer = nn.Linear(inputs, outputs, device="meta")
        names[layer] = name
        if not name:  # the state dict of a linear layer by itself
            return layer, names
        *above, last = name.split(".")
        module = root
        for part in above:
            module = module._modules.setdefault(part, nn.Module()) or module
        module._modules[last] = layer
    return root, names


def _check_is_last(
    path: Path, found: str, layers: Shapes, shapes: Shapes, is_ordered: bool
) -> None:
    """Refuse to guess which layer is the final one where neither names nor an order tell."""
    read = {inputs for _, inputs, *_ in layers.values()}
    unread = [name for name, (outputs, *_) in layers.items() if outputs not in read]
    likely = [name for name in unread if f"{name}.bias" in shapes] or unread or list(layers)
    # A layer that nobody reads may read this one, whatever this one is called.
    is_named = bool(set(found.split(".")) & set(NAMES)) and (
        is_ordered or all(layers[name][1] != layers[found][0] for name in unread)
    )
    is_numbered = all(part.isdecimal() for name in layers for part in name.split("."))
    is_alone = found in likely and (is_ordered or len(likely) == 1)
    if not (is_named or is_numbered or is_alone):
        listed = ", ".join(map(repr, dict.fromkeys([*likely, found])))
        raise ValueError(
            f"{path}: the final layer could be any of {brief(listed)}; say which: "
            f"head={brief(likely[-1])!r}."
        )


def _is_linear(shape: tuple[int, ...]) -> bool:
    """Whether a weight is that of a linear layer or a 1×1 convolution."""
    return 2 <= len(shape) <= 5 and set(shape[2:]) <= {1}


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts layers by number, so that 10 comes after 2."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in name.split(".")]
