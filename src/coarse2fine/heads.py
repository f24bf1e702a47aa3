"""Find, read and replace a model's final layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeGuard

from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.weight_norm import WeightNorm

# What libraries call the final layer, or the part of the model that holds it.
NAMES = ("fc", "classifier", "head", "heads", "score", "linear", "logits", "output", "out")
_PREFIXES = ("head", "heads", "classifier")  # of several heads: head_coarse, head_fine
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "module")  # torch.compile, FSDP, DDP
_SHARDED = {"DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule"}
Layer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def find_head(model: nn.Module, name: str | None = None) -> tuple[str, Layer]:
    """Return the name and the module of the layer that makes a classifier's logits.

    That is, in this order: the layer of the given name; what timm's ``get_classifier()``
    says; the last linear layer in the one attribute called like a head (one of `NAMES`,
    else ending in one of them); the last linear layer of all. A 1×1 convolution counts as a
    linear layer. torch.compile, DataParallel, DDP and FSDP are looked through.

    Args:
        model: The classifier.
        name: The layer's name, as in ``model.named_modules()``. Defaults to None.

    Raises:
        ValueError: Where there is no such layer, or several could be meant.

    Example:
        >>> find_head(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
        ('2', Linear(in_features=4, out_features=3, bias=True))
    """
    inside = unwrap(model)
    modules = dict(model.named_modules(remove_duplicate=False))
    modules |= dict(inside.named_modules(remove_duplicate=False))
    _check_sizes_known(modules)
    if name is not None and name not in modules:
        raise _not_found(f"the model has no layer {name!r}", inside)
    found = _candidates(modules[name or ""], name or "")
    # A layer under several names goes by the first of them.
    layers = {id(modules[path]): path for path in reversed(found)}
    path, *others = reversed(layers.values()) if layers else [""]
    layer = modules[path]
    if others:
        raise _ambiguous({path: modules[path] for path in (path, *others)})
    if not _is_linear(layer):
        where = f"{path!r} ({type(layer).__name__})" if path else "the model"
        raise _not_found(f"{where} has no final linear layer or 1×1 convolution", inside)
    return path, layer


def class_vectors(model: nn.Module, head: str | None = None) -> Tensor:
    """Return the class embeddings of a classifier: its final layer's weight, a row a class.

    A weight that FSDP shards is gathered, so every process must call this.

    Args:
        model: The classifier.
        head: The name of its final layer. Defaults to None: found by `find_head`.
    """
    name, layer = find_head(model, head)
    weight = _weight(layer).detach()
    if hasattr(weight, "full_tensor"):
        weight = weight.full_tensor()
    inputs, classes = _widths(layer)
    if weight.shape[:2] != (classes, inputs):
        raise ValueError(
            f"the weight of the final layer {name!r} has the shape {tuple(weight.shape)}, not "
            f"{classes} × {inputs}; gather it first if it is sharded or packed."
        )
    return weight.flatten(start_dim=1)


def replace_head(model: nn.Module, num_classes: int, head: str | None = None) -> Layer:
    """Put a fresh final layer for another number of classes in the model's place of it.

    The layer is of the same kind, on the same device, freshly initialised by torch's
    default; weight norm is applied anew where the old one had it. The model's own notes of
    the number of classes, such as a Hugging Face config, stay as they are.

    Args:
        model: The classifier, changed in place. Not under DDP or FSDP, which would not know
            of the new layer: replace first, then wrap.
        num_classes: The new number of classes.
        head: The name of its final layer. Defaults to None: found by `find_head`.

    Returns:
        The new layer.
    """
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1. Got {num_classes}.")
    inside = unwrap(model)
    for kind in {kind.__name__ for part in model.modules() for kind in type(part).__mro__}:
        if kind in _SHARDED:
            raise ValueError(
                f"the model is wrapped by {kind}, which would not see a new final layer; "
                f"replace the layer first, then wrap the model."
            )
    name, old = find_head(model, head)
    if old is inside:
        raise ValueError(
            f"the model is itself the final layer ({_shape(old)}), so there is nothing to "
            f"replace it in; make a new layer, or put it in an nn.Sequential."
        )
    new = _fresh(old, num_classes, name)
    for path, module in list(inside.named_modules(remove_duplicate=False)):
        if module is old:
            parent, _, attribute = path.rpartition(".")
            setattr(inside.get_submodule(parent), attribute, new)
    return new


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model within torch.compile, DataParallel, DDP or FSDP."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__}.")
    while len(model._modules) == 1:
        ((name, inside),) = model._modules.items()
        if name not in _WRAPPERS or inside is None:
            break
        model = inside
    return model


def _candidates(model: nn.Module, path: str) -> list[str]:
    """Return the names of the layers in `model`, itself called `path`, that may be final."""
    if _is_linear(model) or not _linears(model):
        return [path]
    if callable(getattr(model, "get_classifier", None)):
        return _told(model, path)
    start = f"{path}." if path else ""
    parts = {start + name: part for name, part in model._modules.items() if part is not None}
    chosen = _chosen(parts, in_order=isinstance(model, nn.Sequential))
    finals = [name for part in chosen for name in _candidates(parts[part], part)]
    return finals


def _told(model: Any, path: str) -> list[str]:
    """Return the names of the layers that timm's ``get_classifier()`` gives."""
    told = model.get_classifier()
    names = {id(module): name for name, module in model.named_modules(prefix=path)}
    known = [part for part in (told if isinstance(told, tuple | list) else [told])]
    return [name for part in known if id(part) in names for name in _candidates(part, names[id(part)])]
