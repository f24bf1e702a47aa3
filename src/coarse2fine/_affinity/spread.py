"""Where the blocks of exact clustering are computed: here, by workers, or by several processes.

A block is a function of two parts of the classes, or of one part with itself. It is the same
function wherever it runs, so the result is the same to the last bit on processors of one kind.
"""

from __future__ import annotations

import math
import os
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from itertools import combinations_with_replacement
from typing import Any, Protocol

from .._util.arrays import Array
from ..errors import RunError
from ..executors import Workers, workers

# A part has so many tiles in a row at most: 32,768 classes. Each tile is some milliseconds of
# work; a part is sent to many workers, but a thousand tiles are computed with each two of them.
PART_TILES = 32
# The processes that torchrun has started, all of which cluster the same embeddings.
TORCHRUN = "torchrun"
ATTEMPTS = 3
POLL_SECONDS = 0.5

Work = Callable[[Any, Any], Any]
Found = Iterator[tuple[int, int, Any]]


class Spread(Protocol):
    """Whatever computes blocks.

    Attributes:
        count: How many blocks it computes at a time.
    """

    count: int

    def over_pairs(self, work: Work, parts: Sequence[tuple[Array, Any]]) -> Found:
        """Yield what `work` returns for every two parts, and their numbers, in any order.

        Args:
            work: Takes two parts, or a part and None for the same once more.
            parts: Each the rows of some classes, and what else `work` needs to know of them.
        """


def part_tiles(tiles: int, spread: Spread) -> int:
    """Return how many tiles in a row a part has, so that there is work for all."""
    return max(1, min(PART_TILES, tiles // math.ceil(math.sqrt(8 * spread.count))))


class Here:
    """This process."""

    count = 1

    def over_pairs(self, work: Work, parts: Sequence[tuple[Array, Any]]) -> Found:
        """See `Spread`."""
        for one, other in _pairs(parts):
            yield one, other, work(parts[one], None if one == other else parts[other])


class Pool:
    """Workers, of which any may die: its block is computed again by another.

    Args:
        found: They.
    """

    def __init__(self, found: Workers) -> None:
        self._found = found
        self.count = found.count

    def over_pairs(self, work: Work, parts: Sequence[tuple[Array, Any]]) -> Found:
        """See `Spread`."""
        shared = [self._found.share(part) for part in parts]
        waiting = deque(_pairs(parts))
        running: dict[Future[Any], tuple[int, int]] = {}
        lost: Counter[tuple[int, int]] = Counter()
        while waiting or running:
            self._found.check()
            while waiting and len(running) < self.count:
                one, other = waiting.popleft()
                given = shared[one], None if one == other else shared[other]
                running[self._found.executor.submit(work, *given)] = one, other
            for future in wait(running, POLL_SECONDS, return_when=FIRST_COMPLETED)[0]:
                pair = running.pop(future)
                if self._is_lost(future):
                    lost[pair] += 1
                    _check_attempts(lost[pair])
                    for at in pair:  # the only copy may have been that worker's
                        shared[at] = self._found.share(parts[at])
                    waiting.appendleft(pair)
                else:
                    yield *pair, future.result()

    def _is_lost(self, future: Future[Any]) -> bool:
        error = self._found.lost() if future.cancelled() else future.exception()
        if error is None or isinstance(error, self._found.lost):
            return error is not None
        raise RunError(f"a worker could not compute a block of distances: {error}.") from error


class Peers:
    """The processes of torchrun, all of which go through the same clustering, block by block.

    Args:
        group: Of torch.distributed, with a backend for the CPU.
    """

    def __init__(self, group: Any) -> None:
        import torch.distributed as dist

        self._dist, self._group = dist, group
        self.count, self._rank = dist.get_world_size(group), dist.get_rank(group)

    def over_pairs(self, work: Work, parts: Sequence[tuple[Array, Any]]) -> Found:
        """See `Spread`."""
        self._agree(parts)
        pairs = list(_pairs(parts))
        for start in range(0, len(pairs), self.count):
            some = pairs[start : start + self.count]
            own: Any = None
            if self._rank < len(some):
                own = self._attempt(work, parts, *some[self._rank])
            for pair, found in zip(some, self._gather(own), strict=False):
                if isinstance(found, Exception):
                    raise found
                yield *pair, found

    def _attempt(self, work: Work, parts: Sequence[Any], one: int, other: int) -> Any:
        try:
            return work(parts[one], None if one == other else parts[other])
        except Exception as error:  # raised in all processes, or the others would wait for ever
            return error

    def _agree(self, parts: Sequence[tuple[Array, Any]]) -> None:
        digest = 0
        for rows, _ in parts:
            digest = zlib.crc32(rows.data, digest)
        if len(set(self._gather((len(parts), digest)))) > 1:
            raise ValueError(
                f"the {self.count} processes of torchrun must cluster the same embeddings, on "
                f"processors of one kind; theirs differ."
            )

    def _gather(self, own: Any) -> list[Any]:
        from .._util.peers import lost_peer

        found: list[Any] = [None] * self.count
        try:
            self._dist.all_gather_object(found, own, self._group)
        except RuntimeError as error:
            reason = lost_peer(error)
            if reason is None:
                raise
            raise RunError(
                f"another of the {self.count} processes that cluster has died, or has not "
                f"answered in time ({reason}); see what became of it, then start all of them again."
            ) from error
        return found


@contextmanager
def spread(executor: str | None) -> Iterator[Spread]:
    """Provide what computes blocks.

    Args:
        executor: See `cluster_embeddings`.
    """
    if executor is None:
        yield Here()
    elif executor == TORCHRUN:
        yield from _peers()
    else:
        with workers(executor) as found:
            yield Pool(found)


def _peers() -> Iterator[Peers]:
    import torch.distributed as dist

    if not dist.is_available():
        raise ValueError(f"this build of torch has no processes for executor {TORCHRUN!r}.")
    if dist.is_initialized():
        group = dist.new_group(backend="gloo")
        yield Peers(group)
        dist.destroy_process_group(group)
    elif "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        dist.init_process_group("gloo")
        yield Peers(None)
        dist.destroy_process_group()
    else:
        raise ValueError(
            f"executor {TORCHRUN!r} means the processes that torchrun has started, and this is "
            f"none of them; start it by torchrun --nproc_per_node N."
        )


def _pairs(parts: Sequence[Any]) -> Iterator[tuple[int, int]]:
    return combinations_with_replacement(range(len(parts)), 2)


def _check_attempts(lost: int) -> None:
    if lost >= ATTEMPTS:
        raise RunError(
            f"the workers that computed a block of distances died {ATTEMPTS} times; is there "
            f"enough memory?"
        )
