"""The classes of a final layer, divided among the processes of torch.distributed.

Each process holds the rows of some classes, as torch divides a `DTensor`: K / processes of them,
rounded up, and the last ones what is left. The samples of all are gathered, so that each process
computes its part of everybody's logits. What is summed over the classes is then summed over the
processes. Where all classes are in one process, nothing is sent.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from ._util.peers import lost_peer
from .errors import RunError


@dataclass(frozen=True)
class Shards:
    """Where the classes of a layer are.

    Args:
        classes: K, of all processes together.
        group: The processes. Defaults to None: this one alone.
        device: What they send numbers from. Defaults to ``"cpu"``.
    """

    classes: int
    group: Any = None
    device: str = "cpu"

    @property
    def processes(self) -> int:
        """Among how many processes the classes are divided."""
        return 1 if self.group is None else dist.get_world_size(self.group)

    @property
    def largest(self) -> int:
        """The most classes that a process has."""
        return -(-self.classes // self.processes)

    @property
    def own(self) -> slice:
        """The classes of this process."""
        return self.parts[0 if self.group is None else dist.get_rank(self.group)]

    @property
    def parts(self) -> list[slice]:
        """The classes of each process."""
        edges = [min(at * self.largest, self.classes) for at in range(self.processes + 1)]
        return [slice(*pair) for pair in pairwise(edges)]

    def log_sums(self, parts: Tensor) -> Tensor:
        """Return the log-sum-exp over the processes of each entry."""
        if self.group is None:
            return parts
        largest = self.reduced(parts.clone(), dist.ReduceOp.MAX)
        largest.clamp_min_(torch.finfo(parts.dtype).min)  # as -inf - -inf is NaN
        return self.reduced((parts - largest).exp_(), dist.ReduceOp.SUM).log_().add_(largest)

    def reduced(self, parts: Tensor, how: dist.ReduceOp.RedOpType) -> Tensor:
        """Return the sum, or the like, over the processes of each entry, in the same memory."""
        if self.group is None:
            return parts
        with answering(self):
            dist.all_reduce(parts, how, self.group)
        return parts

    def agree(
        self, facts: dict[str, Any], number: int = 0, failure: Exception | None = None
    ) -> list[int]:
        """Return a number that each process gives.

        Args:
            facts: What must be the same in all, under the names that a message gives it.
            number: That of this process. Defaults to 0.
            failure: What this process would raise; all of them end by it. Defaults to None.

        Raises:
            ValueError: The facts differ, or another process has failed.
        """
        if failure is None and self.group is None:
            return [number]
        if self.group is None:
            raise failure  # type: ignore[misc]
        digest = zlib.crc32(repr(facts).encode())
        sent = torch.tensor([failure is not None, digest, number], device=self.device)
        found = [torch.empty_like(sent) for _ in range(self.processes)]
        with answering(self):
            dist.all_gather(found, sent, self.group)
        failed, digests, numbers = torch.stack(found).T.tolist()
        if any(failed) or len(set(digests)) > 1:
            said = self._say((None if failure is None else str(failure), facts))
            if failure is not None:
                raise failure
            _raise_first_difference(said)
        return list(numbers)

    def _say(self, own: Any) -> list[Any]:
        said: list[Any] = [None] * self.processes
        with answering(self):
            dist.all_gather_object(said, own, self.group)
        return said


def _raise_first_difference(said: list[tuple[str | None, dict[str, Any]]]) -> None:
    for process, (failure, _) in enumerate(said):
        if failure is not None:
            raise ValueError(f"process {process} cannot go on: {failure}")
    (_, first), *others = said
    for process, (_, facts) in enumerate(others, start=1):
        for name, value in facts.items():
            if value != first[name]:
                raise ValueError(
                    f"the classes are divided among {len(said)} processes, which must have the "
                    f"same {name}; process {process} has {value}, and process 0 {first[name]}."
                )


class Batch(NamedTuple):
    """The samples of all processes, one process after the other.

    Args:
        shards: Where the classes are.
        counts: How many samples each process has.
    """

    shards: Shards
    counts: list[int]

    @property
    def own(self) -> slice:
        """The samples of this process."""
        if self.shards.group is None:
            return slice(0, self.counts[0])
        rank = dist.get_rank(self.shards.group)
        start = sum(self.counts[:rank])
        return slice(start, start + self.counts[rank])

    def gather(self, own: Tensor) -> Tensor:
        """Return the rows of all samples from those of each process."""
        group = self.shards.group
        if group is None:
            return own
        # Of one length, as Gloo wants it.
        sent = own.new_zeros(max(self.counts), *own.shape[1:])
        sent[: len(own)] = own
        found = [torch.empty_like(sent) for _ in self.counts]
        with answering(self.shards):
            dist.all_gather(found, sent, group)
        return torch.cat([rows[:count] for rows, count in zip(found, self.counts, strict=True)])

    def hand_back(self, parts: Tensor) -> Tensor:
        """Return the sum over the processes of the gradients of this process's features.

        It is multiplied by the number of processes, by which DDP divides what follows from it.
        """
        group = self.shards.group
        if group is None:
            return parts
        own = self.counts[dist.get_rank(group)]
        found = parts.new_empty(len(self.counts) * own, *parts.shape[1:])
        with answering(self.shards):
            dist.all_to_all_single(
                found, parts.contiguous(), [own] * len(self.counts), self.counts, group
            )
        return found.view(len(self.counts), own, *parts.shape[1:]).sum(dim=0) * len(self.counts)

    def own_columns(self, rows: Tensor) -> Tensor:
        """Return the columns of this process's classes of all samples.

        Args:
            rows: All columns of this process's samples.
        """
        group = self.shards.group
        if group is None:
            return rows
        as_sent = rows.to(torch.uint8) if rows.dtype == torch.bool else rows
        parts = [as_sent[:, part].reshape(-1) for part in self.shards.parts]
        width = self.shards.own.stop - self.shards.own.start
        found = as_sent.new_empty(sum(self.counts), width)
        with answering(self.shards):
            dist.all_to_all_single(
                found.view(-1),
                torch.cat(parts),
                [count * width for count in self.counts],
                [len(part) for part in parts],
                group,
            )
        return found.to(rows.dtype)

    def all_columns(self, parts: Tensor) -> Tensor:
        """Return all classes' columns of this process's samples.

        Args:
            parts: The columns of this process's classes, of all samples.
        """
        group = self.shards.group
        if group is None:
            return parts
        own = self.counts[dist.get_rank(group)]
        widths = [part.stop - part.start for part in self.shards.parts]
        found = parts.new_empty(own * self.shards.classes)
        with answering(self.shards):
            dist.all_to_all_single(
                found,
                parts.contiguous().view(-1),
                [own * width for width in widths],
                [count * parts.shape[1] for count in self.counts],
                group,
            )
        blocks = torch.split(found, [own * width for width in widths])
        return torch.cat([it.view(own, width) for it, width in zip(blocks, widths, strict=True)], 1)


def shards_of(weight: Tensor) -> Shards:
    """Return where the classes of a layer's weight are."""
    found = sys.modules.get("torch.distributed.tensor")  # if not imported, there is none
    if found is None or not isinstance(weight, found.DTensor):
        return Shards(len(weight))
    mesh, placements = weight.device_mesh, weight.placements
    if mesh.ndim != 1 or placements != (found.Shard(0),):
        raise ValueError(
            f"a DTensor of a final layer must be divided by its classes, placements (Shard(0),), "
            f"over a mesh of one dimension. Got {placements} and {mesh.ndim} dimensions."
        )
    return Shards(len(weight), mesh.get_group(), mesh.device_type)


def local(tensor: Any) -> Any:
    """Return the part of a tensor that this process holds."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def checksum(tensor: Tensor) -> str:
    """Return a hexadecimal number that tells whether tensors differ."""
    entries = tensor.detach().cpu().contiguous().view(torch.uint8).numpy()
    return f"{zlib.crc32(entries.data):08x}"


@contextmanager
def answering(shards: Shards) -> Iterator[None]:
    """Say in one sentence that another process is gone.

    Raises:
        RunError: Another process does not answer.
    """
    try:
        yield
    except RuntimeError as error:
        reason = lost_peer(error)
        if reason is None:
            raise
        raise RunError(
            f"another of the {shards.processes} processes that the classes are divided among has "
            f"died, or has not answered in time ({reason}); see what became of it, then start "
            f"all of them again from the last checkpoint."
        ) from error
