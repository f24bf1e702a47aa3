"""The final layer of a fused loss: pieces of its logits, and gradients added up piece by piece."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

Wanted = tuple[bool, bool, bool]  # the gradients of input, weight and bias that somebody needs
NOTHING: Wanted = (False, False, False)


class Layer(NamedTuple):
    """A linear layer and its inputs, which together are the logits.

    Args:
        input: Features of shape (N, E), in the type that all is computed in.
        weight: Of shape (K, E), in any type.
        bias: Of shape (K), in any type, or None.
    """

    input: Tensor
    weight: Tensor
    bias: Tensor | None

    def take(self, rows: Tensor) -> Layer:
        """Return the layer with some of its samples."""
        return self._replace(input=self.input[rows])

    def weights(self, classes: slice) -> Tensor:
        """Return the weights of some classes in the type that all is computed in."""
        return self.weight[classes].to(self.input.dtype)

    def logits(self, rows: slice, classes: slice, out: Tensor) -> Tensor:
        """Compute the logits of some samples for some classes into the memory of `out`."""
        transposed = self.weights(classes).T
        if self.bias is None:
            return torch.mm(self.input[rows], transposed, out=out)
        bias = self.bias[classes].to(self.input.dtype)
        return torch.addmm(bias, self.input[rows], transposed, out=out)


def layer_name(classes: int, features: int) -> str:
    """Return what a message calls a layer."""
    return f"a final layer of {classes:,} classes and {features:,} features"


class Gradients:
    """The gradients of a layer, to which each piece of its logits adds its part.

    Blocks of samples come one after the other, from the first on, each with all classes.

    Args:
        layer: Whose they are.
        wanted: Which of them are needed; the others are None.
    """

    def __init__(self, layer: Layer, wanted: Wanted) -> None:
        # The first piece that concerns an entry overwrites it, if there is any piece.
        make = torch.empty if len(layer.input) and len(layer.weight) else torch.zeros
        dtype, device = layer.input.dtype, layer.input.device
        shapes = layer.input.shape, layer.weight.shape, layer.weight.shape[:1]
        self.input, self.weight, self.bias = (
            make(shape, dtype=dtype, device=device) if is_wanted else None
            for shape, is_wanted in zip(shapes, wanted, strict=True)
        )
        self._layer = layer

    def begin(self, rows: slice, scale: Tensor) -> None:
        """Go on to a block of samples.

        Args:
            rows: The samples.
            scale: What the loss of each of them is multiplied by.
        """
        self._rows, self._scale = rows, scale
        self._scaled = self._layer.input[rows] * scale[:, None]
        self._keep = 0 if rows.start == 0 else 1  # what was there before

    def add(self, classes: slice, slope: Tensor) -> None:
        """Add the part of the block's logits for some classes.

        Args:
            classes: The classes.
            slope: The derivative of each sample's loss by each of these logits.
        """
        if self.input is not None:
            keep = 0 if classes.start == 0 else 1
            self.input[self._rows].addmm_(slope, self._layer.weights(classes), beta=keep)
        if self.weight is not None:
            self.weight[classes].addmm_(slope.T, self._scaled, beta=self._keep)
        if self.bias is not None:
            self.bias[classes].addmv_(slope.T, self._scale, beta=self._keep)

    def end(self) -> None:
        """End the block: all of its classes have been added."""
        if self.input is not None:
            self.input[self._rows].mul_(self._scale[:, None])

    def spread(self, rows: Tensor, count: int) -> None:
        """Put those of the input into the given rows of `count`; the others are 0."""
        if self.input is not None:
            spread = self.input.new_zeros(count, self.input.shape[1])
            self.input = spread.index_copy_(0, rows, self.input)

    def scale(self, factor: Tensor) -> None:
        """Multiply all gradients by a number."""
        # On a CPU it costs nothing to look, and most often it is 1.
        if factor.device.type == "cpu" and factor == 1:
            return
        for grad in (self.input, self.weight, self.bias):
            if grad is not None:
                grad.mul_(factor)
