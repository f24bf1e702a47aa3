"""The loss of any other target, from features, in blocks of samples.

Whatever the loss does with its logits, it does it sample by sample. So a block of them is given
to it, and autograd gives their gradient.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from ._linear_layer import Gradients, Layer
from ._linear_tiles import slices

# Of a block's logits: 32 MiB in float32; the loss has several tensors of that size.
ROW_ENTRIES = 2**23


def row_losses(
    layer: Layer,
    loss_of: Callable[[Tensor, slice], Tensor],
    grads: Gradients,
    scale: Tensor | None,
) -> Tensor:
    """Return the loss of each sample, and add up the gradients.

    Args:
        layer: What gives the logits.
        loss_of: Returns losses from the logits of the samples in a slice.
        grads: Those to add to.
        scale: What each loss is multiplied by for the gradients; None if there are to be none.
    """
    samples, classes = len(layer.input), len(layer.weight)
    losses = [layer.input.new_empty(0)]
    for rows in slices(samples, max(1, ROW_ENTRIES // classes)):
        all_classes = slice(0, classes)
        logits = layer.input.new_empty(rows.stop - rows.start, classes)
        layer.logits(rows, all_classes, logits)
        with torch.set_grad_enabled(scale is not None):
            logits.requires_grad_(scale is not None)
            found = loss_of(logits, rows)
        losses.append(found.detach())
        if scale is not None:
            (slope,) = torch.autograd.grad(found, logits, torch.ones_like(found))
            grads.begin(rows, scale[rows])
            grads.add(all_classes, slope)
            grads.end()
    return torch.cat(losses)
