"""What the loss takes, and what it says of anything else."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ._marginal import Partition


class Options(NamedTuple):
    """What torch's cross-entropy takes beside logits and targets."""

    weight: Tensor | None
    ignore_index: int
    reduction: str
    label_smoothing: float


def prepared(clusters: Tensor) -> Partition:
    """Return the partition of a level that a user gave."""
    return Partition(checked_clusters(clusters))


def checked_clusters(clusters: Tensor) -> Tensor:
    """Return the clusters of a level that a user gave, as int64."""
    if clusters.dim() != 1 or clusters.is_floating_point() or clusters.dtype == torch.bool:
        raise ValueError(
            f"clusters must give an integer to each class. Got dtype {clusters.dtype} and shape "
            f"{tuple(clusters.shape)}."
        )
    if clusters.min() < 0:
        at = int(clusters.argmin())
        raise ValueError(f"clusters[{at}] is {int(clusters[at])}; clusters count from 0.")
    return clusters.long()


def to_target(target: Tensor) -> Tensor:
    """Return a target as the loss takes it: integers, of whatever size, as int64."""
    if not isinstance(target, Tensor):
        kind = type(target).__name__
        raise TypeError(f"target must be a tensor; make one by torch.as_tensor. Got {kind}.")
    return target if target.is_floating_point() or target.dtype == torch.bool else target.long()


def check_shapes(input: Tensor, target: Tensor, clusters: Tensor, weight: Tensor | None) -> None:
    """Raise a `ValueError` that names a shape which does not fit the logits or the level."""
    classes = len(clusters)
    dimension = min(1, input.dim() - 1)  # of the classes: 1, or 0 for a single prediction
    if input.dim() == 0 or input.shape[dimension] != classes:
        raise ValueError(
            f"the level has {classes} classes, so the logits need {classes} entries along "
            f"dimension {max(dimension, 0)}. Got shape {tuple(input.shape)}."
        )
    without_classes = input.shape[:dimension] + input.shape[dimension + 1 :]
    what = f"logits of shape {tuple(input.shape)}"
    _check_target(target, without_classes, input.shape, what)
    _check_weight(weight, classes)


def check_layer(
    input: Tensor,
    linear_weight: Tensor,
    linear_bias: Tensor | None,
    target: Tensor,
    clusters: Tensor,
    weight: Tensor | None,
) -> None:
    """Raise a `ValueError` that names a shape or type which does not fit the others."""
    classes = len(clusters)
    if linear_weight.dim() != 2 or len(linear_weight) != classes:
        raise ValueError(
            f"the level has {classes} classes, so linear_weight must have shape ({classes}, E). "
            f"Got {tuple(linear_weight.shape)}."
        )
    features = linear_weight.shape[1]
    if input.dim() == 0 or input.shape[-1] != features:
        raise ValueError(
            f"linear_weight takes {features} features, so input must have shape (..., "
            f"{features}). Got {tuple(input.shape)}."
        )
    if linear_bias is not None and linear_bias.shape != (classes,):
        raise ValueError(
            f"linear_bias must have shape ({classes},). Got {tuple(linear_bias.shape)}."
        )
    _check_types({"input": input, "linear_weight": linear_weight, "linear_bias": linear_bias})
    before = input.shape[:-1]
    what = f"features of shape {tuple(input.shape)}"
    _check_target(target, before, torch.Size((*before, classes)), what)
    _check_weight(weight, classes)


def _check_types(given: dict[str, Tensor | None]) -> None:
    tensors = {name: tensor for name, tensor in given.items() if tensor is not None}
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise ValueError(f"{name} must have a floating-point type. Got {tensor.dtype}.")
    is_mixed = len({tensor.dtype for tensor in tensors.values()}) > 1
    if is_mixed and not torch.is_autocast_enabled(tensors["input"].device.type):
        types = ", ".join(f"{name} is {tensor.dtype}" for name, tensor in tensors.items())
        raise ValueError(f"{types}; convert them to one type, or use torch.autocast.")


def _check_target(
    target: Tensor, without_classes: torch.Size, with_classes: torch.Size, what: str
) -> None:
    kind = _kind(target)
    expected = without_classes if kind == "class indices" else with_classes
    if target.shape != expected:
        is_mask = kind == "class indices" and target.shape == with_classes
        hint = " A mask of candidate classes must be boolean." if is_mask else ""
        raise ValueError(
            f"a target of {kind} for {what} must have shape {tuple(expected)}. "
            f"Got {tuple(target.shape)}.{hint}"
        )


def _check_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight.shape != (classes,):
        raise ValueError(f"weight must have shape ({classes},). Got {tuple(weight.shape)}.")


def check_options(target: Tensor, options: Options) -> None:
    """Raise a `ValueError` that names an option which does not exist or means nothing."""
    _, ignore_index, reduction, label_smoothing = options
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f"reduction {reduction!r} is not supported. Must be one of 'mean', 'sum', 'none'."
        )
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0 and 1. Got {label_smoothing}.")
    kind = _kind(target)
    if kind != "class indices" and ignore_index >= 0:
        instead = "zeros" if target.is_floating_point() else "all classes, whose loss is 0,"
        raise ValueError(
            f"ignore_index={ignore_index} means nothing for a target of {kind}; "
            f"give such a row a target of {instead} instead."
        )


def check_indices(target: Tensor, classes: int, nodes: int, ignore_index: int) -> None:
    """Raise a `ValueError` that names the first target that is nothing; see `target_error`."""
    if (((target < 0) | (target >= nodes)) & (target != ignore_index)).any():
        raise target_error(target, classes, nodes, ignore_index)


def target_error(target: Tensor, classes: int, nodes: int, ignore_index: int) -> ValueError:
    """Return an error that names the first target that is nothing.

    Args:
        target: At least one of them is out of range.
        classes: How many classes there are.
        nodes: How many nodes a target may be; `classes` where it must be a class.
        ignore_index: What is no error.
    """
    wrong = (target != ignore_index) & ((target < 0) | (target >= nodes))
    entry = tuple(wrong.nonzero()[0].tolist())
    place = f"[{', '.join(map(str, entry))}]" if entry else ""
    known = f"class indices must lie in 0..{classes - 1}"
    if nodes > classes:
        known += f", nodes of the hierarchy in 0..{nodes - 1},"
    return ValueError(
        f"target{place} is {int(target[entry])}; {known} or equal ignore_index ({ignore_index})."
    )


def without_hierarchy(error: IndexError) -> Exception:
    """Return torch's error or, if that is of a target that is no class, one that says more."""
    if not str(error).startswith("Target"):
        return error
    return ValueError(
        f"{str(error).rstrip('.')}: the loss has no hierarchy yet, so targets must be classes; "
        f"give it one, by criterion.hierarchy = hierarchy, for targets that are nodes."
    )


def _kind(target: Tensor) -> str:
    if target.is_floating_point():
        return "class probabilities"
    return "candidate classes (a mask)" if target.dtype == torch.bool else "class indices"
