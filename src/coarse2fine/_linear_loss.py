"""The marginalised loss of a linear layer at a level, without all of its logits at once.

The logits are there in the forward pass and not in the backward pass. So the forward pass
computes the gradients of features, weight and bias too, and the backward pass only scales them.
Where that cannot be, the backward pass computes them anew: if each sample's loss is returned, as
it is not known yet how much each counts; and when it is run a second time, as the first time
gave the gradients away. Second derivatives go through all logits, as without this module.

Where the classes are divided among processes, each has the samples of all, adds up the gradients
of its own classes, and hands each process the gradients of its features. The forward pass does
that too, so that the backward pass sends nothing, unless it computes the gradients anew.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from ._candidates import Spans
from ._linear_layer import NOTHING, Gradients, Layer, Wanted, layer_name
from ._linear_targets import Targets, flat_targets, targets_of
from ._loss_checks import Options, check_layer, check_options, to_target
from ._marginal import Partition
from ._shards import Shards, checksum, local, shards_of
from ._shared_batch import Batch


def level_linear_cross_entropy(
    layer: Layer,
    target: Tensor,
    clusters: Tensor,
    partition: Partition | None,
    options: Options,
    spans: Spans | None = None,
) -> Tensor:
    """Compute `coarse_linear_cross_entropy` at a level that has been prepared.

    With `spans`, targets may be nodes. A `partition` that is None is made where it is needed.
    """
    shards, flat, failure = shards_of(layer.weight), target, None
    try:
        target = flat = to_target(target)
        _check(layer, target, clusters, options)
        flat = flat_targets(target, clusters, options, spans)
    except (TypeError, ValueError) as error:
        failure = error
    input, (weight, bias) = layer.input, map(local, layer[1:])
    is_on = torch.is_grad_enabled()
    wanted: Wanted = (
        is_on and input.requires_grad,
        is_on and layer.weight.requires_grad,
        is_on and layer.bias is not None and layer.bias.requires_grad,
    )
    batch = _agreed(layer, flat, clusters, options, spans, wanted, shards, failure)
    dtype = _computing_type(input, weight)
    targets = targets_of(flat, clusters, partition, options, spans, dtype, batch)
    _check_memory(targets, input.shape[-1], wanted)
    features = input.reshape(-1, input.shape[-1]).to(dtype)
    loss: Tensor = LinearLoss.apply(features, weight, bias, targets, wanted)  # type: ignore[no-untyped-call]
    return loss.view(input.shape[:-1]) if options.reduction == "none" else loss


def _check(layer: Layer, target: Tensor, clusters: Tensor, options: Options) -> None:
    check_layer(*layer, target, clusters, options.weight)
    check_options(target, options)


def _agreed(
    layer: Layer,
    target: Tensor,
    clusters: Tensor,
    options: Options,
    spans: Spans | None,
    wanted: Wanted,
    shards: Shards,
    failure: Exception | None,
) -> Batch:
    """Return the samples of all processes, which must agree on all else."""
    facts: dict[str, Any] = {}
    if shards.group is not None and failure is None:
        weight, *others = options
        nodes = "" if spans is None else checksum(spans.level)
        facts = {
            "number of features": layer.input.shape[-1],
            "type of features": layer.input.dtype,
            "kind of targets": (target.dtype, target.dim()),
            "level (step the curriculum in all alike)": f"{int(clusters.max()) + 1} clusters",
            "hierarchy (read it in all, or broadcast it)": f"number {checksum(clusters)}{nodes}",
            "ignore_index, reduction and label_smoothing": tuple(others),
            "class weights": "none" if weight is None else f"number {checksum(weight)}",
            "gradients to compute (of features, weight and bias)": wanted,
        }
    samples = len(target) if failure is None else 0
    return Batch(shards, shards.agree(facts, samples, failure))


def _check_memory(targets: Targets, features: int, wanted: Wanted) -> None:
    """Raise a `MemoryError` where there is none for the gradients and for a block of logits."""
    shards, samples = targets.batch.shards, len(targets.counts)
    sizes = samples * features, shards.largest * features, shards.largest
    gradients = sum(size for size, is_wanted in zip(sizes, wanted, strict=True) if is_wanted)
    gathered = 0 if shards.group is None else samples * features
    found = gradients + gathered + targets.logits_at_once()
    what = f"the loss of {layer_name(shards.classes, features)}"
    shards.check_memory(what, found * targets.dtype.itemsize)


class LinearLoss(Function):
    """The loss of some targets from features, weight and bias."""

    @staticmethod
    def forward(
        ctx: Any,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Targets,
        wanted: Wanted,
    ) -> Tensor:
        ctx.targets, ctx.wanted = targets, wanted
        ctx.save_for_backward(input, weight, bias)
        layer, share = Layer(input, weight, bias), targets.share
        is_known = share is not None and any(wanted)
        losses, found = _losses(layer, targets, share if is_known else None, wanted)
        ctx.grads = found if is_known else None
        return losses[targets.batch.own] if share is None else losses.sum() * share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), targets = grads, ctx.targets
        found, ctx.grads = ctx.grads, None
        # Gradients are on here only with create_graph=True: they need a history.
        if torch.is_grad_enabled():
            if targets.batch.shards.group is not None:
                raise ValueError(
                    "a loss whose classes are divided among processes has no second derivatives; "
                    "leave out create_graph."
                )
            layer = Layer(*ctx.saved_tensors)
            return *_differentiable(layer, targets, grad, ctx.wanted), None, None
        if found is None:
            scale = _scale(targets, grad)
            _, found = _losses(Layer(*ctx.saved_tensors), targets, scale, ctx.wanted)
        else:
            found.scale(grad)
        return found.input, found.weight, found.bias, None, None


def _losses(
    layer: Layer, targets: Targets, scale: Tensor | None, wanted: Wanted
) -> tuple[Tensor, Gradients]:
    """Return each sample's loss, and gradients if there is a `scale`."""
    batch = targets.batch
    layer = layer._replace(input=batch.gather(layer.input))
    with torch.autocast(layer.input.device.type, enabled=False):
        losses, found = targets.losses(layer, scale, wanted if scale is not None else NOTHING)
    if found.input is not None:
        found.input = batch.hand_back(found.input)
    return losses, found


def _scale(targets: Targets, grad: Tensor) -> Tensor:
    """Return what each loss is multiplied by, in all processes."""
    if targets.share is not None:
        return grad * targets.share
    return targets.batch.gather(grad) / targets.batch.shards.processes


def _differentiable(
    layer: Layer, targets: Targets, grad: Tensor, wanted: Wanted
) -> list[Tensor | None]:
    """Return the gradients by operations that autograd can follow."""
    input, weight, bias = layer
    bias = None if bias is None else bias.to(input.dtype)
    with torch.autocast(input.device.type, enabled=False):
        loss = targets.plain_loss(F.linear(input, weight.to(input.dtype), bias))
    parts = [
        part
        for part, is_wanted in zip(layer, wanted, strict=True)
        if is_wanted and part is not None
    ]
    found = iter(torch.autograd.grad(loss, parts, grad, create_graph=True))
    return [next(found) if is_wanted else None for is_wanted in wanted]


def _computing_type(input: Tensor, weight: Tensor) -> torch.dtype:
    """Return the type that all is computed in: float32 for half precision."""
    found = torch.promote_types(input.dtype, weight.dtype)
    return torch.float32 if found in (torch.float16, torch.bfloat16) else found
