"""Find, read and replace a model's final layer."""

from __future__ import annotations

from typing import Any, TypeAlias, TypeGuard

from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin
from torch.nn.utils import parametrizations, parametrize

# What libraries call the final layer, or the part of the model that holds it.
NAMES = ("fc", "classifier", "head", "heads", "score", "linear", "logits", "output", "out")
_PREFIXES = ("head", "heads", "classifier")  # of several heads: head_coarse, head_fine
_WRAPPERS = ("_orig_mod", "_fsdp_wrapped_module", "module")  # torch.compile, FSDP, DDP
# They take note of all parameters when they wrap a model. By name, since FSDP is not imported
# with torch, nor a part of every build of it.
_DISTRIBUTED = {"DistributedDataParallel", "FullyShardedDataParallel", "FSDPModule"}
_SHAPE = ("kernel_size", "stride", "padding", "padding_mode")  # of a convolution
_KINDS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
Layer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def find_head(model: nn.Module, head: str | None = None) -> tuple[str, Layer]:
    """Return the name and the module of the layer that makes a classifier's logits.

    That is, in this order: the layer of the given name; what timm's ``get_classifier()``
    returns; the last linear layer in the one attribute named like a head (one of `NAMES`,
    else ending in one of them); the last linear layer of all. A 1×1 convolution counts as a
    linear layer. Wrappers (torch.compile, DataParallel, DDP and FSDP) are looked through.

    Args:
        model: The classifier.
        head: The layer's name, as in ``model.named_modules()``. Defaults to None.

    Raises:
        ValueError: There is no such layer, or several could be meant.

    Examples:
        >>> find_head(nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3)))
        ('2', Linear(in_features=4, out_features=3, bias=True))
    """
    inside = unwrap(model)
    # A layer may be given by its name within the wrapper or within the model; and a layer that
    # the model has under two names by either.
    modules = dict(model.named_modules(remove_duplicate=False))
    modules |= dict(inside.named_modules(remove_duplicate=False))
    _check_sizes_known(modules)
    if head is not None and head not in modules:
        raise _not_found(f"the model has no layer {head!r}", inside)
    found = _candidates(modules[head or ""], head or "")
    # By layer, as one that is found under several names is still one.
    layers = {layer: path for path, layer in found.items() if _is_linear(layer)}
    if not layers:
        where = "".join(f" in {path!r} ({type(x).__name__})" for path, x in found.items() if path)
        raise _not_found(f"no linear layer or 1×1 convolution{where} to be the final one", inside)
    layer, path = next(iter(layers.items()))
    if len(layers) > 1:
        listed = ", ".join(f"{path!r} ({_shape(layer)})" for layer, path in layers.items())
        raise ValueError(f"the final layer could be any of {listed}; say which: head={path!r}.")
    return path, layer


def class_vectors(model: nn.Module, head: str | None = None) -> Tensor:
    """Return the class embeddings of a classifier: its final layer's weight, one row per class.

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
    # The layer's attributes give its full size even where its weight is sharded or packed.
    if weight.shape[:2] != (classes, inputs):
        raise ValueError(
            f"the weight of the final layer {name!r} has the shape {tuple(weight.shape)}, not "
            f"{classes} × {inputs}; gather it first if it is sharded or packed."
        )
    return weight.flatten(start_dim=1)


def replace_head(model: nn.Module, num_classes: int, head: str | None = None) -> Layer:
    """Replace the final layer by a new one for another number of classes.

    The layer is of the same kind, on the same device, and initialised by torch's default;
    weight norm is applied if the old one had it. The model's own record of the number of
    classes, such as a Hugging Face config, stays as it is.

    Args:
        model: The classifier, changed in place. Not wrapped by DDP or FSDP, which would not
            know the new layer: replace first, then wrap.
        num_classes: The new number of classes.
        head: The name of its final layer. Defaults to None: found by `find_head`.

    Returns:
        The new layer.
    """
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1. Got {num_classes}.")
    inside = unwrap(model)
    kinds = {kind.__name__ for part in model.modules() for kind in type(part).__mro__}
    for wrapper in kinds & _DISTRIBUTED:
        raise ValueError(
            f"the model is wrapped by {wrapper}, which would not see a new final layer; "
            f"replace the layer first, then wrap the model."
        )
    name, old = find_head(model, head)
    if old is inside:
        raise ValueError(
            f"the model is itself the final layer ({_shape(old)}), so there is nothing to "
            f"replace it in; make a new layer, or put it in an nn.Sequential."
        )
    new = _new_layer(old, num_classes, name)
    # Everywhere it stands: a layer with two names would else be kept under the other one.
    for path, module in list(inside.named_modules(remove_duplicate=False)):
        if module is old:
            parent, _, attribute = path.rpartition(".")
            setattr(inside.get_submodule(parent), attribute, new)
    return new


def unwrap(model: nn.Module) -> nn.Module:
    """Return the model within torch.compile, DataParallel, DDP or FSDP."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module. Got {type(model).__name__}.")
    # A wrapper has one child, of a particular name. Models may call a child "module" too, but
    # hardly as their only one.
    while len(children := list(model.named_children())) == 1 and children[0][0] in _WRAPPERS:
        model = children[0][1]
    return model


def _candidates(model: nn.Module, path: str) -> dict[str, nn.Module]:
    """Return by name what may be the final layer of `model`, which is itself named `path`.

    Modules say what they contain, not what reads whose output. Names and widths stand in for
    that: a layer whose output is as wide as a later layer's input probably feeds it.
    """
    if _is_linear(model) or not _linear_layers(model):
        return {path: model}
    if callable(getattr(model, "get_classifier", None)):
        return _declared(model, path)
    start = f"{path}." if path else ""
    # named_children() would name a layer that has two names only once, and perhaps by the other.
    parts = {start + name: part for name, part in model._modules.items() if part is not None}
    holders = {name: part for name, part in parts.items() if _linear_layers(part)}
    last, end = list(holders.items())[-1]
    if isinstance(model, nn.Sequential):  # here the order is known
        return _candidates(end, last)
    named = _named_like_heads(parts)
    if not named:
        # Parts that read as many features as the last one may be heads beside it.
        alike = {
            name: part for name, part in holders.items() if _input_width(part) == _input_width(end)
        }
        return _final_layers(alike, holders)
    finals = _final_layers(named, named)
    # Where the last part is not named like a head, the one that is may be a hidden layer before
    # it; if so, the last part reads as many features as that one puts out.
    if last not in named:
        given = {_widths(layer)[1] for layer in finals.values() if _is_linear(layer)}
        finals |= {n: x for n, x in _candidates(end, last).items() if _input_width(x) in given}
    return finals


def _declared(model: Any, path: str) -> dict[str, nn.Module]:
    """Return what timm's ``get_classifier()`` returns: a layer, or one for each of two heads."""
    declared = model.get_classifier()
    parts = declared if isinstance(declared, tuple | list) else [declared]
    return {
        name: layer
        for whole, module in model.named_modules(prefix=path)
        if any(module is part for part in parts)
        for name, layer in _candidates(module, whole).items()
    }


def _named_like_heads(parts: dict[str, nn.Module]) -> dict[str, nn.Module]:
    """Return the parts that are named exactly like a head or, if there are none, similarly."""
    names = {name: name.rpartition(".")[2].lower() for name in parts}
    exact = {name: part for name, part in parts.items() if names[name] in NAMES}
    # A norm or an activation may be called "out"; only what has a matrix can make logits.
    exact = {n: part for n, part in exact.items() if any(w.dim() > 1 for w in part.parameters())}
    # A head without a linear layer is still the head; to take some other layer instead would
    # be wrong without anybody noticing.
    if exact:
        return {name: part for name, part in exact.items() if _linear_layers(part)} or exact
    words = {name: names[name].split("_") for name in parts if _linear_layers(parts[name])}
    return {n: parts[n] for n, w in words.items() if w[-1] in NAMES or w[0] in _PREFIXES}


def _final_layers(
    parts: dict[str, nn.Module], readers: dict[str, nn.Module]
) -> dict[str, nn.Module]:
    """Return the parts' final layers, without those that a later reader seems to read."""
    order = list(readers)
    return {
        path: layer
        for name, part in parts.items()
        for later in [{_input_width(readers[n]) for n in order[order.index(name) + 1 :]}]
        for path, layer in _candidates(part, name).items()
        if not (_is_linear(layer) and _widths(layer)[1] in later)
    }


def _is_linear(module: nn.Module) -> TypeGuard[Layer]:
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d):
        return set(module.kernel_size) == {1} and module.groups == 1
    return isinstance(module, nn.Linear)


def _linear_layers(module: nn.Module) -> dict[str, Layer]:
    return {name: layer for name, layer in module.named_modules() if _is_linear(layer)}


def _input_width(module: nn.Module) -> int | None:
    """Return the input width of the first linear layer of a module."""
    return next((_widths(layer)[0] for layer in _linear_layers(module).values()), None)


def _widths(layer: Layer) -> tuple[int, int]:
    if isinstance(layer, nn.Linear):
        return layer.in_features, layer.out_features
    return layer.in_channels, layer.out_channels


def _shape(layer: Layer) -> str:
    inputs, outputs = _widths(layer)
    return f"{type(layer).__name__} {inputs} → {outputs}"


def _not_found(what: str, model: nn.Module) -> ValueError:
    names = ", ".join(map(repr, list(_linear_layers(model))[-5:]))
    needed = "a model needs a linear layer or 1×1 convolution to have class vectors"
    return ValueError(f"{what}; {f'name it by head=, such as {names}' if names else needed}.")


def _check_sizes_known(modules: dict[str, nn.Module]) -> None:
    for name, module in modules.items():
        if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
            raise ValueError(
                f"the layer {name!r} ({type(module).__name__}) has no size yet; run one batch "
                f"through the model first."
            )


def _weight(layer: Layer) -> Tensor:
    """Return the weight, as the next forward in evaluation would use it."""
    was_training = layer.training
    layer.eval()  # in training, spectral norm changes its estimate whenever it is read
    # Hooks compute the weight from its parts just before a forward; until then it may be that
    # of before the last optimiser step.
    try:
        for hook in _weight_hooks(layer):
            hook(layer, ())
        return layer.weight
    finally:
        layer.train(was_training)


def _weight_hooks(layer: Layer) -> list[Any]:
    """Return the hooks by which older torch utilities set the weight before each forward.

    They are only in a private attribute, and what they do to the weight is seen nowhere else.
    """
    hooks = layer._forward_pre_hooks.values()
    return [hook for hook in hooks if type(hook).__module__.startswith("torch.nn.utils.")]


def _new_layer(old: Layer, num_classes: int, name: str) -> Layer:
    norms = _weight_norms(old, name)
    weight = _weight(old)
    kind: Any = next(kind for kind in _KINDS if isinstance(old, kind))
    shape = {key: getattr(old, key) for key in _SHAPE if hasattr(old, key)}
    common = {"bias": old.bias is not None, "device": weight.device, "dtype": weight.dtype}
    new: Layer = kind(_widths(old)[0], num_classes, **shape, **common)
    for norm in norms:
        parametrizations.weight_norm(new, dim=norm.dim)
    return new.train(old.training)


def _weight_norms(old: Layer, name: str) -> list[Any]:
    """Return the weight norms of a layer; anything else that computes its weight is refused."""
    norms = _weight_hooks(old)
    if parametrize.is_parametrized(old):
        norms += [norm for norms in old.parametrizations.values() for norm in norms]  # type: ignore[operator]
    kinds = [type(norm).__name__ for norm in norms]
    # Other kinds (spectral norm, pruning masks) hold tensors of the old size.
    if kinds not in ([], ["WeightNorm"], ["_WeightNorm"]):
        raise ValueError(
            f"the final layer {name!r} is parametrised by {', '.join(kinds)}, which cannot be "
            f"set up for another size; remove it first."
        )
    return norms
