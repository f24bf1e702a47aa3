"""The final layer and the loss in one, against torch's and against a layer and then a loss.

Each way is measured in processes of its own, in turns: forward and backward, with gradients for
features and weight, and the memory beside them.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from loss import middle_level
from measure import Row, in_a_fresh_process, memory, reset_peak, seconds
from torch import Tensor, nn

from coarse2fine import CoarseToFineLinearLoss, CoarseToFineLoss

SHAPES = ((4_096, 256, 10_000), (2_048, 256, 100_000), (512, 128, 1_000_000))
OURS, COARSE = "CoarseToFineLinearLoss", "the same at a coarse level"
CHUNKED = "F.linear_cross_entropy in chunks"
ROUNDS, MOST_REPEATS, ENOUGH_SECONDS = 2, 7, 10.0

Loss = Callable[[Tensor, Tensor], Tensor]
CODE = "import sys; sys.path.insert(0, sys.argv[1]); import linear_loss; linear_loss.measure()"


def torchs(layer: nn.Linear, *, is_chunked: bool) -> Loss:
    """Torch's own, with its defaults or with chunks."""
    options = nn.LinearCrossEntropyOptions() if is_chunked else None
    return lambda x, y: F.linear_cross_entropy(x, layer.weight, y, options=options)


def fused(layer: nn.Linear, level: int) -> Loss:
    """Ours, at a level."""
    criterion = CoarseToFineLinearLoss(1, 1, middle_level(layer.out_features))
    criterion.linear, criterion.level = layer, level
    return criterion


def after_the_layer(layer: nn.Linear, criterion: nn.Module) -> Loss:
    """A loss of logits."""
    return lambda x, y: criterion(layer(x), y)


WAYS: dict[str, Callable[[nn.Linear], Loss]] = {
    "F.linear_cross_entropy": lambda layer: torchs(layer, is_chunked=False),
    CHUNKED: lambda layer: torchs(layer, is_chunked=True),
    "nn.Linear, F.cross_entropy": lambda layer: after_the_layer(layer, nn.CrossEntropyLoss()),
    "nn.Linear, CoarseToFineLoss": lambda layer: after_the_layer(
        layer, CoarseToFineLoss(middle_level(layer.out_features))
    ),
    OURS: lambda layer: fused(layer, -1),
    COARSE: lambda layer: fused(layer, 0),
}
PEERS = ("F.linear_cross_entropy", CHUNKED, "nn.Linear, F.cross_entropy")


def measure() -> None:
    """Print the time and the memory of one way; the rest of the command line says of which."""
    samples, features, classes, way = *map(int, sys.argv[2:5]), sys.argv[5]
    layer = nn.Linear(features, classes, bias=False)
    loss = WAYS[way](layer)
    x, y = torch.randn(samples, features), torch.randint(0, classes, (samples,))

    def step(count: int = samples) -> None:
        layer.weight.grad = None
        loss(x[:count].requires_grad_(), y[:count]).backward()

    step(2)
    layer.weight.grad = None
    reset_peak()
    before = memory("VmRSS")
    times, begin = [seconds(step)], time.perf_counter()
    extra = memory("VmHWM") - before
    while len(times) < MOST_REPEATS and time.perf_counter() - begin < ENOUGH_SECONDS:
        times.append(seconds(step))
    print(json.dumps({"seconds": statistics.median(times), "extra": extra}))


@dataclass
class Cost:
    """What a way takes: seconds, and bytes beside features, weight and targets."""

    seconds: float
    extra: float

    def __str__(self) -> str:
        return f"{self.seconds:.3g} s and {self.extra / 1e6:,.0f} MB"


def costs(shape: tuple[int, int, int]) -> dict[str, Cost]:
    """Measure all ways, in turns, so that noise hits them alike."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(ROUNDS):
        for way, results in found.items():
            arguments = str(Path(__file__).parent), *map(str, shape), way
            results.append(in_a_fresh_process(CODE, *arguments))
    return {
        way: Cost(*(min(one[name] for one in results) for name in ("seconds", "extra")))
        for way, results in found.items()
    }


def rows() -> list[Row]:
    result = []
    for shape in SHAPES:
        cost = costs(shape)
        peers = {way: cost[way] for way in PEERS}
        fastest = min(peers, key=lambda way: peers[way].seconds)
        leanest = min(peers, key=lambda way: peers[way].extra)
        ours, coarse = cost[OURS], cost[COARSE]
        size = f"({', '.join(f'{count:,}' for count in shape)})"
        what = f"final layer and loss, forward and backward, {size}, "
        result += [
            Row.at_most(
                f"{what}time against the fastest peer",
                ours.seconds / peers[fastest].seconds, 0.85, "×",
                f"{ours} against {peers[fastest]} of {fastest}",
            ),
            Row.at_most(
                f"{what}memory against the leanest peer",
                ours.extra / peers[leanest].extra, 1, "×",
                f"{peers[leanest]} of {leanest}",
            ),
            Row.at_most(
                f"{what}time of a coarse level against the finest",
                coarse.seconds / ours.seconds, 1.15, "×",
                f"{coarse}; with a layer before it {cost['nn.Linear, CoarseToFineLoss']}",
            ),
        ]  # fmt: skip
    return result
