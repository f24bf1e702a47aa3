"""Find, read and replace a model's final layer."""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

# What libraries call the final layer, or the part of the model that holds it.
NAMES = ("fc", "classifier", "head", "heads", "score", "linear", "logits", "output", "out")
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "module")  # torch.compile, FSDP, DDP
_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def find_head(model: nn.Module, name: str | None = None) -> tuple[str, nn.Module]:
    """Return the name and the module of the layer that makes a classifier's logits.

    That is, in this order: the layer of the given name; what timm's ``get_classifier()``
    says; the last linear layer in the one attribute called like a head (`NAMES`, or
    ending in one of them); the last linear layer of all. A 1×1 convolution counts as a
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
    model = unwrap(model)
    modules = dict(model.named_modules())
    if name is not None:
        if name not in modules:
            raise ValueError(f"the model has no layer {name!r}. {_known(model)}")
        candidates = [name]
    else:
        candidates = _candidates(model)
    heads = {found: _last_linear(modules[found], found) for found in candidates}
    named = {found: head for found, head in heads.items() if head is not None}
    layers = list(dict.fromkeys(head for head in named.values()))
    if len(layers) == 1:
        return layers[0], modules[layers[0]]
    if not layers:
        raise ValueError(
            f"the model has no final linear layer or 1×1 convolution"
            f"{'' if name is None else f' in {name!r}'}. {_known(model)}"
        )
    listed = ", ".join(f"{layer!r} ({_shape(modules[layer])})" for layer in layers)
    raise ValueError(f"the final layer could be any of {listed}; say which: head={layers[0]!r}.")


def class_vectors(model: nn.Module, head: str | None = None) -> Tensor:
    """Return the class embeddings of a classifier: its final layer's weight, a row a class.

    Args:
        model: The classifier.
        head: The name of its final layer. Defaults to None: found by `find_head`.
    """
    layer = find_head(model, head)[1]
    for hook in layer._forward_pre_hooks.values():
        # The older torch.nn.utils.weight_norm brings the weight up to date in a hook.
        if hasattr(hook, "compute_weight") and hasattr(hook, "name"):
            return _rows(hook.compute_weight(layer))
    weight = layer.weight
    if not isinstance(weight, Tensor):
        raise TypeError(f"the final layer's weight must be a tensor. Got {type(weight).__name__}.")
    return _rows(weight)


def replace_head(model: nn.Module, num_classes: int, head: str | None = None) -> nn.Module:
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
    if isinstance(model, nn.parallel.DistributedDataParallel):
        raise ValueError(
            "the model is wrapped in DDP, which would not see a new layer; replace first."
        )
    name, old = find_head(model, head)
    if not name:
        raise ValueError(
            "the model is itself the layer, so it cannot be replaced within; make a new one."
        )
    new = _fresh(old, num_classes)
    parent, _, attribute = name.rpartition(".")
    setattr(unwrap(model).get_submodule(parent), attribute, new)
    return new


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model within torch.compile, DataParallel, DDP or FSDP."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__}.")
    while True:
        children = dict(model.named_children())
        inside = next((children[name] for name in _WRAPPERS if children.keys() == {name}), None)
        if inside is None:
            return model
        model = inside


def _candidates(model: nn.Module) -> list[str]:
    """Return the names of the modules in which the final layer may lie."""
    if callable(getattr(model, "get_classifier", None)):
        said = model.get_classifier()  # type: ignore[operator]
        layers = said if isinstance(said, tuple | list) else [said]
        names = {id(module): name for name, module in model.named_modules()}
        return [names[id(layer)] for layer in layers if id(layer) in names]
    children = {
        name: child
        for name, child in model.named_children()
        if _is_head_name(name) and _last_linear(child, name) is not None
    }
    if children:
        return list(children)
    everything = [name for name, module in model.named_modules() if _is_linear(module)]
    if not everything:
        return []
    last = everything[-1]
    return [*_rivals(model, last, everything), last]


def _is_head_name(name: str) -> bool:
    return name.lower().split("_")[-1] in NAMES or name.lower() in NAMES


def _rivals(model: nn.Module, last: str, names: list[str]) -> Iterator[str]:
    """Yield siblings of the last layer that read what it reads and that nothing reads."""
    modules = dict(model.named_modules())
    parent = last.rpartition(".")[0]
    if isinstance(modules[parent], nn.Sequential):
        return
    inputs = {_in_features(modules[name]) for name in names}
    for name in names[:-1]:
        layer = modules[name]
        is_sibling = name.rpartition(".")[0] == parent
        reads_the_same = _in_features(layer) == _in_features(modules[last])
        if is_sibling and reads_the_same and _out_features(layer) not in inputs:
            yield name


def _last_linear(module: nn.Module, name: str) -> str | None:
    found = None
    for path, child in module.named_modules(prefix=name):
        if _is_linear(child):
            found = path
    return found


def _is_linear(module: nn.Module) -> bool:
    if isinstance(module, _CONVOLUTIONS):
        return set(module.kernel_size) == {1} and module.groups == 1
    return isinstance(module, nn.Linear)


def _in_features(layer: nn.Module) -> int:
    return int(layer.in_channels if isinstance(layer, _CONVOLUTIONS) else layer.in_features)  # type: ignore[arg-type]


def _out_features(layer: nn.Module) -> int:
    return int(layer.out_channels if isinstance(layer, _CONVOLUTIONS) else layer.out_features)  # type: ignore[arg-type]


def _shape(layer: nn.Module) -> str:
    return f"{type(layer).__name__} {_in_features(layer)} → {_out_features(layer)}"


def _known(model: nn.Module) -> str:
    names = [name for name, module in model.named_modules() if _is_linear(module)]
    shown = ", ".join(map(repr, names[-5:])) if names else "none"
    return f"Its last linear layers: {shown}. Name the final one by head=..."


def _rows(weight: Tensor) -> Tensor:
    return weight.detach().flatten(start_dim=1)


def _fresh(old: nn.Module, num_classes: int) -> nn.Module:
    weight = old.weight
    if not isinstance(weight, Tensor):
        raise TypeError(f"the final layer's weight must be a tensor. Got {type(weight).__name__}.")
    common = {"bias": old.bias is not None, "device": weight.device, "dtype": weight.dtype}
    if isinstance(old, _CONVOLUTIONS):
        kind = next(kind for kind in _CONVOLUTIONS if isinstance(old, kind))
        new: nn.Module = kind(_in_features(old), num_classes, kernel_size=1, **common)  # type: ignore[arg-type]
    else:
        new = nn.Linear(_in_features(old), num_classes, **common)  # type: ignore[arg-type]
    has_new_style = parametrize.is_parametrized(old, "weight")
    has_old_style = any(hasattr(h, "compute_weight") for h in old._forward_pre_hooks.values())
    if has_new_style:
        kinds = [type(p).__name__ for p in old.parametrizations["weight"]]  # type: ignore[index]
        if kinds != ["_WeightNorm"]:
            raise ValueError(
                f"the final layer's weight is parametrised by {', '.join(kinds)}, which cannot "
                f"be set up for another size; remove it first."
            )
    if has_new_style or has_old_style:
        parametrizations.weight_norm(new)
    return new.train(old.training)
