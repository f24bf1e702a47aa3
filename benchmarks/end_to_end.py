"""Train a linear encoder and a head of a million classes, coarse to fine, in several processes.

    torchrun --standalone --nproc_per_node 2 benchmarks/end_to_end.py

The classes are the leaves of a known tree: a sample is the sum of a vector of its cluster at
each level, and noise. They are as frequent as words are: the k-th has a probability in
proportion to 1/k. The head is divided among the processes. A part of the steps is trained at
each level, the coarsest first. It prints a line of JSON after each, and nothing is promised.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator

import numpy as np
import torch
import torch.distributed as dist
from measure import memory
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from coarse2fine import CoarseToFineLinearLoss, Hierarchy

NOISE = 0.3


class Tree:
    """Classes that are leaves of a tree with as many children everywhere, and their samples.

    Args:
        branches: How many children a cluster has.
        size: How many numbers a sample has.
    """

    def __init__(self, branches: int, size: int) -> None:
        self.branches, self.classes = branches, branches**3
        classes = np.arange(self.classes)
        levels = [classes // branches**2, classes // branches, classes]
        self.hierarchy = Hierarchy.from_levels(levels)
        rng = torch.Generator().manual_seed(0)
        tables = [torch.randn(branches**depth, size, generator=rng) for depth in (1, 2, 3)]
        self._tables = [table / size**0.5 for table in tables]
        self._order = torch.randperm(self.classes, generator=rng)

    def samples(self, count: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return inputs and the classes that they are of."""
        rank = (torch.rand(count, generator=rng, dtype=torch.float64) * np.log(self.classes)).exp()
        target = self._order[(rank.long() - 1).clamp_(0, self.classes - 1)]
        places = target // self.branches**2, target // self.branches, target
        inputs = sum(table[at] for table, at in zip(self._tables, places, strict=True))
        size = inputs.shape[1]
        return inputs + NOISE * torch.randn(inputs.shape, generator=rng) / size**0.5, target


def accuracies(
    encoder: nn.Module, criterion: CoarseToFineLinearLoss, tree: Tree, count: int
) -> list[float]:
    """Return the share of fresh samples whose class is answered rightly at each level."""
    rng = torch.Generator().manual_seed(10_000 + dist.get_rank())
    hits = torch.zeros(len(tree.hierarchy.levels))
    levels = [torch.from_numpy(level.copy()) for level in tree.hierarchy.levels]
    with torch.no_grad():
        for _ in range(count // 32):  # the logits of 32 samples for a million classes are 128 MB
            inputs, target = tree.samples(32, rng)
            answer = criterion.linear(encoder(inputs)).argmax(dim=1)
            hits += torch.stack([(at[answer] == at[target]).sum() for at in levels])
    dist.all_reduce(hits)
    return [round(float(hit), 4) for hit in hits / (count // 32 * 32 * dist.get_world_size())]


def train(
    encoder: nn.Module,
    criterion: CoarseToFineLinearLoss,
    batches: Iterator[tuple[Tensor, Tensor]],
    optimiser: torch.optim.Optimizer,
    steps: int,
) -> tuple[float, float]:
    """Return how many steps a second there were, and the last loss."""
    criterion.train()
    start, loss = time.perf_counter(), torch.zeros(())
    for _, (inputs, target) in zip(range(steps), batches, strict=False):
        optimiser.zero_grad()
        loss = criterion(encoder(inputs), target)
        loss.backward()
        optimiser.step()
    return steps / (time.perf_counter() - start), float(loss.detach())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--branches", type=int, default=100, help="K is its third power")
    parser.add_argument("--size", type=int, default=64, help="numbers of a sample and a feature")
    parser.add_argument("--batch", type=int, default=256, help="samples of each process a step")
    parser.add_argument("--steps", type=int, default=100, help="at each of the three levels")
    parser.add_argument("--held-out", type=int, default=1024, help="samples of each process")
    parser.add_argument("--lr", type=float, default=0.01)
    asked = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // dist.get_world_size()))
    tree = Tree(asked.branches, asked.size)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    encoder = DistributedDataParallel(nn.Linear(asked.size, asked.size))
    criterion = CoarseToFineLinearLoss(asked.size, tree.classes, tree.hierarchy, mesh=mesh)
    optimiser = torch.optim.Adam([*encoder.parameters(), *criterion.parameters()], lr=asked.lr)
    rng = torch.Generator().manual_seed(1 + dist.get_rank())

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        while True:
            yield tree.samples(asked.batch, rng)

    def tell(**more: object) -> None:
        found = accuracies(encoder, criterion, tree, asked.held_out)
        peaks: list[float] = [0.0] * dist.get_world_size()
        dist.all_gather_object(peaks, round(memory("VmHWM") / 1e9, 2))
        if dist.get_rank() == 0:
            print(json.dumps({**more, "accuracy at each level": found, "GB": peaks}), flush=True)

    tell(**vars(asked), classes=tree.classes, processes=dist.get_world_size())
    stream = batches()
    for level in range(len(tree.hierarchy.levels)):
        criterion.level = level
        rate, loss = train(encoder, criterion, stream, optimiser, asked.steps)
        rounded = {"steps a second": round(rate, 3), "loss": round(loss, 4)}
        tell(level=level, clusters=tree.hierarchy.num_clusters[level], **rounded)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
