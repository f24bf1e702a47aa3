"""The classes of a final layer, divided among the processes of torch.distributed.

Each process holds the rows of some classes, as torch divides a `DTensor`: K / processes of them,
rounded up, and the last ones what is left. The samples of all are gathered, so that each process
computes its part of everybody's logits. What is summed over the classes is then summed over the
processes. Where all classes are in one process, nothing is sent.
"""

from __future__ import annotations

import socket
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._util.memory import free_bytes, gigabytes
from ._util.peers import lost_peer
from .errors import RunError

_LITTLE = 2**28  # bytes that are not worth asking for
_HAD: dict[str | None, int] = {}  # by group: the most bytes that there were at once


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
        own = failure is not None, zlib.crc32(repr(facts).encode()), number
        failed, digests, numbers = zip(*self.each(*own), strict=True)
        if any(failed) or len(set(digests)) > 1:
            said = self._say((None if failure is None else str(failure), facts))
            if failure is not None:
                raise failure
            _raise_first_difference(said)
        return list(numbers)

    def check_memory(self, what: str, needed: int) -> None:
        """Raise a `MemoryError` if every process takes so much memory, and that is not free.

        The system would otherwise end a process, without a word, when it uses what it was given.
        What could be had once is not asked for again: memory that is freed need not go back.

        Args:
            what: Takes the memory.
            needed: How many bytes, the same in all processes.
        """
        name = None if self.group is None else self.group.group_name
        if self.device != "cpu" or needed <= max(_HAD.get(name, 0), _LITTLE):
            return
        free = free_bytes()
        machine = zlib.crc32(socket.gethostname().encode())
        for count, least in _by_machine(self.each(machine, -1 if free is None else free)):
            if 0 <= least < count * needed:
                among = "" if self.group is None else f" in each of {count} processes of a machine"
                raise MemoryError(
                    f"{what} takes {gigabytes(needed)} of memory{among}, where {gigabytes(least)} "
                    f"are free: {gigabytes(count * needed - least)} are missing; divide the "
                    f"classes among processes of more machines (mesh), or free some."
                )
        _HAD[name] = needed

    def each(self, *own: int) -> list[list[int]]:
        """Return a row of numbers of each process."""
        sent = torch.tensor(own, device=self.device)
        if self.group is None:
            return [list(own)]
        found = [torch.empty_like(sent) for _ in range(self.processes)]
        with answering(self):
            dist.all_gather(found, sent, self.group)
        return [row.tolist() for row in found]

    def _say(self, own: Any) -> list[Any]:
        said: list[Any] = [None] * self.processes
        with answering(self):
            dist.all_gather_object(said, own, self.group)
        return said


def _by_machine(rows: list[list[int]]) -> Iterator[tuple[int, int]]:
    """Yield how many processes each machine has, and how many bytes are free; -1 for unknown."""
    for machine in sorted({row[0] for row in rows}):
        frees = [free for own, free in rows if own == machine]
        yield len(frees), min(frees)


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


def shards_of(weight: Tensor) -> Shards:
    """Return where the classes of a layer's weight are."""
    found = sys.modules.get("torch.distributed.tensor")  # if not imported, there is none
    if found is None or not isinstance(weight, found.DTensor):
        return Shards(len(weight), device=weight.device.type)
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
