"""Noticing the first NaN or infinity in training, and telling where it arose.

On the CPU every batch is checked before it reaches the optimiser. On other devices a check would
wait until their queue is empty, so every batch only sets a flag there, which is read once an epoch,
before anything is saved. If it is set, the epochs since the last checkpoint are trained again, with
the same numbers and a check of every batch. Then that batch goes through the model once more, with
a hook on every layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

REMEDY = "lower the learning rate, or clip the gradients."
SAVED = "What was saved before is still good."


def all_finite(*tensors: Tensor | None) -> bool:
    """Whether no tensor holds a NaN or an infinity; None is passed over.

    Examples:
        >>> all_finite(torch.ones(2), None), all_finite(torch.tensor([1.0, -torch.inf]))
        (True, False)
        >>> all_finite(torch.full((2,), 3e38))  # though their sum is too large for a float32
        True
    """
    given = [tensor.detach() for tensor in tensors if tensor is not None]
    # One sum is several times faster than a look at every number, and waits for a GPU once. A NaN
    # or an infinity always shows in it; finite numbers may overflow, so then each is looked at.
    total = sum(tensor.sum(dtype=torch.float32) for tensor in given)
    return math.isfinite(total) or all(bool(tensor.isfinite().all()) for tensor in given)


def looking_waits(device: torch.device) -> bool:
    """Whether a look at a number on a device has to wait until all work before it is done."""
    return device.type != "cpu"


class FirstSpoiled:
    """The first batch with a NaN or an infinity, noted on the device without waiting for it.

    A GPU works through a queue. To look at one number means to wait until the queue is empty,
    and then it has nothing to do until the next batch arrives. So every batch only sets this
    flag, which is read once an epoch.

    Args:
        device: Where the batches are.
    """

    def __init__(self, device: torch.device) -> None:
        self._first = torch.zeros((), dtype=torch.int64, device=device)

    def note(self, number: int, *tensors: Tensor) -> None:
        """Take note of a batch, whose number counts from 1."""
        for tensor in tensors:
            # Not an `if`, which would have to read the number, and so wait for it.
            is_first = ~tensor.detach().isfinite().all() & (self._first == 0)
            self._first = torch.where(is_first, number, self._first)

    def read(self) -> int:
        """Return the number of the first spoiled batch, 0 for none; this waits."""
        return int(self._first)


class SpoiledEpochError(Exception):
    """A NaN or an infinity, noticed only at the end of an epoch.

    Args:
        text: What became of it, in words.
        epoch: The epoch, counted from 1 over all stages.
    """

    def __init__(self, text: str, epoch: int) -> None:
        super().__init__(text)
        self.epoch = epoch


def non_finite_weights(module: nn.Module) -> str | None:
    """Return which layer's weights are not finite any more, in words; None where all are."""
    if all_finite(*module.parameters()):  # waits once, not once a layer
        return None
    for name, weight in module.named_parameters():
        if not all_finite(weight):
            return f"the weights of {_layer(module, name.rpartition('.')[0])} are not finite"
    return None


def complaint(
    logits: Tensor,
    loss: Tensor | None,
    where: str,
    module: nn.Module,
    inputs: Any,
    forward: Callable[[Any], Any],
) -> str:
    """Return the sentence that tells of logits or a loss which are not finite.

    Args:
        logits: What the model gave.
        loss: None where only the logits count.
        where: The epoch and the batch.
        module: See `diagnosis`, as all that follows.
        inputs: The batch.
        forward: Calls the model on the batch once more.
    """
    what, values = ("logits", logits) if loss is None or all_finite(loss) else ("loss", loss)
    why = diagnosis(module, inputs, forward)
    return f"the {what} became {_first_bad(values)} in {where}: {why}"


@torch.no_grad()
def diagnosis(module: nn.Module, inputs: Any, forward: Callable[[Any], Any]) -> str:
    """Return what made a model's outputs, or the loss on them, not finite, and what to do.

    Args:
        module: The model.
        inputs: The batch.
        forward: Calls the model on the batch once more.
    """
    if not all(map(all_finite, _tensors(inputs))):
        return "the inputs are not finite; mend the data."
    found = non_finite_weights(module) or _first_layer(module, inputs, forward)
    return f"{found}; {REMEDY}"


def _first_layer(module: nn.Module, inputs: Any, forward: Callable[[Any], Any]) -> str:
    """Return the first layer that makes finite inputs into something else."""
    found: list[str] = []

    def look(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(_module: nn.Module, _inputs: Any, outputs: Any) -> None:
            if not found and not all(map(all_finite, _tensors(outputs))):
                found.append(f"first in what {_layer(module, name)} gives")

        return hook

    # A layer's hook runs when the layer is done, so inner ones before those that contain them: the
    # first to complain is the layer itself.
    hooks = [layer.register_forward_hook(look(name)) for name, layer in module.named_modules()]
    try:
        forward(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return found[0] if found else "though every layer's outputs are finite, so it is the loss"


def _first_bad(tensor: Tensor) -> float:
    """Return the first number that is none."""
    values = tensor.detach()
    return float(values[~values.isfinite()][0])


def _layer(module: nn.Module, name: str) -> str:
    kind = type(module.get_submodule(name)).__name__
    return f"layer {name} ({kind})" if name else f"the model itself ({kind})"


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the floating tensors in a tensor, or a nest of lists, tuples and dicts of them."""
    if isinstance(value, Tensor) and value.is_floating_point():
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        yield from _tensors([*value.values()])
