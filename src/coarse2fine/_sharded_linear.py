"""A final layer whose classes are divided among the processes of torch.distributed."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ._linear_layer import layer_name
from ._shards import Shards, local, shards_of
from ._shared_batch import Batch
from ._util.seeds import seed_of

_BLOCK = 1024  # classes whose first weights are drawn together


class ShardedLinear(nn.Linear):
    """`torch.nn.Linear` with a share of its outputs in each process.

    Its parameters are `DTensor`s. Their first values are distributed as those of
    `torch.nn.Linear`, and do not depend on the number of processes: they follow from the
    random numbers of the first process.

    Args:
        in_features: E, the number of features.
        out_features: K, the number of classes.
        bias: Whether there is one.
        mesh: The processes, a `DeviceMesh` of one dimension.
        dtype: Of the parameters.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool, mesh: Any, dtype: torch.dtype | None
    ) -> None:
        super().__init__(in_features, out_features, bias, device="meta", dtype=dtype)
        shards = _shards_on(mesh, out_features)
        facts = {
            "number of features": in_features,
            "number of classes": out_features,
            "bias": bias,
            "type of parameters": self.weight.dtype,
        }
        seed = shards.agree(facts, int(torch.randint(2**62, ())))[0]
        needed = shards.largest * (in_features + bias) * self.weight.element_size()
        shards.check_memory(layer_name(out_features, in_features), needed)
        bound = 1 / math.sqrt(in_features) if in_features else 0.0
        self.weight = _divided(_uniform(self.weight, bound, shards, seed, 0), self.weight, mesh)
        if bias:
            self.bias = _divided(_uniform(self.bias, bound, shards, seed, 1), self.bias, mesh)

    def forward(self, input: Tensor) -> Tensor:
        """Return the logits of this process's samples for all classes, without gradients.

        All processes must call it, each with any number of samples of its own.
        """
        return sharded_logits(self, input)

    def extra_repr(self) -> str:
        """Return what `print` shows."""
        return f"{super().extra_repr()}, processes={shards_of(self.weight).processes}"


def sharded_logits(linear: nn.Linear, input: Tensor) -> Tensor:
    """Return the logits of this process's samples for all classes; see `ShardedLinear.forward`."""
    if torch.is_grad_enabled() and (input.requires_grad or linear.weight.requires_grad):
        raise ValueError(
            "the logits of a layer whose classes are divided among processes have no gradients; "
            "compute them under torch.no_grad(), and the loss by CoarseToFineLinearLoss."
        )
    features = input.reshape(-1, input.shape[-1])
    shards = shards_of(linear.weight)
    facts = {"number of features": features.shape[1], "type of features": features.dtype}
    batch = Batch(shards, shards.agree(facts, len(features)))
    logits = F.linear(batch.gather(features), local(linear.weight), local(linear.bias))
    return batch.all_columns(logits).view(*input.shape[:-1], shards.classes)


def _shards_on(mesh: Any, classes: int) -> Shards:
    """Return how classes are divided on a mesh that a user gave."""
    from torch.distributed.device_mesh import DeviceMesh

    if not isinstance(mesh, DeviceMesh):
        raise TypeError(
            f"mesh must be a DeviceMesh, such as "
            f"torch.distributed.device_mesh.init_device_mesh('cpu', (2,)). Got "
            f"{type(mesh).__name__}."
        )
    if mesh.ndim != 1:
        raise ValueError(f"mesh must have one dimension. Got {mesh.ndim}.")
    return Shards(classes, mesh.get_group(), mesh.device_type)


def _uniform(like: Tensor, bound: float, shards: Shards, seed: int, number: int) -> Tensor:
    """Return this process's rows of a parameter, uniform in -bound..bound.

    Args:
        like: Gives the type, and the shape of one row.
        bound: The largest value.
        shards: How the rows are divided.
        seed: Of all random numbers of the layer.
        number: Of the parameter in the layer.
    """
    device, own = _device(shards.device), shards.own
    rows = torch.empty(own.stop - own.start, *like.shape[1:], dtype=like.dtype, device=device)
    for block in range(own.start // _BLOCK, -(-own.stop // _BLOCK)):
        generator = torch.Generator(device).manual_seed(seed_of("head", seed, number, block))
        fresh = rows.new_empty(_BLOCK, *rows.shape[1:])
        fresh.uniform_(-bound, bound, generator=generator)
        first = block * _BLOCK
        start, stop = max(own.start, first), min(own.stop, first + _BLOCK)
        rows[start - own.start : stop - own.start] = fresh[start - first : stop - first]
    return rows


def _device(kind: str) -> torch.device:
    return torch.device(kind) if kind == "cpu" else torch.device(kind, torch.cuda.current_device())


def _divided(rows: Tensor, whole: Tensor, mesh: Any) -> nn.Parameter:
    """Return a parameter of which this process has the given rows."""
    from torch.distributed.tensor import DTensor, Shard

    shape, stride = whole.shape, whole.stride()
    return nn.Parameter(
        DTensor.from_local(rows, mesh, [Shard(0)], run_check=False, shape=shape, stride=stride)
    )
