"""The marginalised loss of a linear layer at a level, without all of its logits at once.

The logits are there in the forward pass and not in the backward pass. So the forward pass
computes the gradients of features, weight and bias too, and the backward pass only scales them.
Where that cannot be, the backward pass computes them anew: if each sample's loss is returned, as
it is not known yet how much each counts; and when it is run a second time, as the first time
gave the gradients away. Second derivatives go through all logits, as without this module.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional as F

from ._candidates import Spans
from ._linear_layer import NOTHING, Gradients, Layer, Wanted
from ._linear_targets import Targets, targets_of
from ._loss_checks import Options, check_layer, check_options, to_target
from ._marginal import Partition


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
    input, weight, bias = layer
    target = to_target(target)
    check_layer(input, weight, bias, target, clusters, options.weight)
    check_options(target, options)
    dtype = _computing_type(input, weight)
    targets = targets_of(target, clusters, partition, options, spans, dtype)
    wanted = tuple(
        part is not None and part.requires_grad and torch.is_grad_enabled() for part in layer
    )
    features = input.reshape(-1, input.shape[-1]).to(dtype)
    loss: Tensor = LinearLoss.apply(features, weight, bias, targets, wanted)  # type: ignore[no-untyped-call]
    return loss.view(input.shape[:-1]) if options.reduction == "none" else loss


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
        return losses if share is None else losses.sum() * share

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), targets = grads, ctx.targets
        found, ctx.grads = ctx.grads, None
        # Gradients are on here only with create_graph=True: they need a history.
        if torch.is_grad_enabled():
            layer = Layer(*ctx.saved_tensors)
            return *_differentiable(layer, targets, grad, ctx.wanted), None, None
        if found is None:
            scale = grad if targets.share is None else grad * targets.share
            _, found = _losses(Layer(*ctx.saved_tensors), targets, scale, ctx.wanted)
        else:
            found.scale(grad)
        return found.input, found.weight, found.bias, None, None


def _losses(
    layer: Layer, targets: Targets, scale: Tensor | None, wanted: Wanted
) -> tuple[Tensor, Gradients]:
    """Return each sample's loss, and gradients if there is a `scale`."""
    with torch.autocast(layer.input.device.type, enabled=False):
        return targets.losses(layer, scale, wanted if scale is not None else NOTHING)


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
