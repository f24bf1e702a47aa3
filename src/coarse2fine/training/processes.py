"""The processes of a training: how they start and wait, and what if one or memory is gone."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, cast

from torch import OutOfMemoryError

from .._util.peers import lost_peer
from ..errors import RunError
from ..runs.config import Config
from .fabric import STRATEGY_REGISTRY, DDPStrategy, Fabric, FSDPStrategy

PEER_SECONDS = 600.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # as malloc.h of glibc numbers them
_LARGEST = 1 << 30  # bytes; blocks up to this size are kept
# GPUs have an exception of their own; the CPU's is a plain RuntimeError, told by its words.
_SHORT_OF_MEMORY = re.compile(r"not enough memory|out of memory|allocate memory", re.IGNORECASE)


def launch(config: Config, peer_seconds: float = PEER_SECONDS) -> Fabric:
    """Return Lightning Fabric for the settings, started; under torchrun with its processes.

    Args:
        config: Every setting filled in.
        peer_seconds: See `coarse2fine.fit`. Defaults to 600.0.
    """
    if not 0 < peer_seconds < float("inf"):
        raise ValueError(f"peer_seconds must be more than 0. Got {peer_seconds}.")
    devices, nodes, strategy = config.devices, 1, config.strategy
    # torchrun has started the processes already, and Fabric refuses settings that ask for another
    # number of them.
    if "LOCAL_WORLD_SIZE" in os.environ and "WORLD_SIZE" in os.environ:
        devices, world = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
        nodes = world // devices
        strategy = "ddp" if strategy == "auto" and world > 1 else strategy
    fabric = _fabric(config, devices, nodes, strategy)
    if isinstance(fabric.strategy, DDPStrategy | FSDPStrategy):
        waiting = _waiting_strategy(config.strategy, fabric.strategy, peer_seconds)
        fabric = _fabric(config, devices, nodes, waiting)
    with lost_peers_explained(fabric, peer_seconds):
        fabric.launch()
    if fabric.device.type == "cpu":  # a GPU's memory is kept by torch itself
        keep_freed_memory()
    return fabric


def _fabric(config: Config, devices: int | str, nodes: int, strategy: Any) -> Fabric:
    try:
        return Fabric(
            accelerator=config.accelerator,
            strategy=strategy,
            devices=devices,
            num_nodes=nodes,
            precision=cast(Any, config.precision),
        )
    except (RuntimeError, ValueError, ImportError) as error:
        raise ValueError(
            f"this machine cannot train with devices {devices!r}, strategy {strategy!r}, "
            f"accelerator {config.accelerator!r}, precision {config.precision!r}: {error}"
        ) from error


def _waiting_strategy(name: str, found: Any, seconds: float) -> Any:
    """Return a strategy of Fabric's whose processes wait so long for each other.

    Fabric takes the time only where a strategy is made, so the one that it has chosen is
    made once more.

    Args:
        name: As the settings have it; ``"auto"`` has no options of its own.
        found: What Fabric made of it.
        seconds: How long to wait.
    """
    options = STRATEGY_REGISTRY[name]["init_params"] if name in STRATEGY_REGISTRY else {}
    return type(found)(timeout=timedelta(seconds=seconds), **options)


@contextmanager
def lost_peers_explained(fabric: Fabric, seconds: float) -> Iterator[None]:
    """Say in one sentence that another process is gone, and leave none behind.

    Args:
        fabric: Lightning Fabric.
        seconds: How long the others are waited for.

    Raises:
        RunError: Another process does not answer.
    """
    try:
        yield
    except BaseException as error:
        # Whatever it was, Ctrl-C included, or children would stay for as long as they wait for
        # this process.
        _end_children(fabric)
        # One process has no peers to lose; a socket in its message is of something else.
        reason = None if isinstance(error, RunError) else lost_peer(error)
        if fabric.world_size < 2 or reason is None:
            raise
        raise RunError(
            f"another of the {fabric.world_size} processes of this training has died, or has not "
            f"answered for {seconds:g} seconds ({reason}); see what became of it, then the same "
            f"command resumes from the last checkpoint."
        ) from error


def _end_children(fabric: Fabric) -> None:
    """End the processes that Lightning Fabric has started, even those that are stopped.

    Fabric looks after them by the same list, and would kill this process as soon as it sees
    that one has died; so they are taken off it first. It has no other way to be told.
    """
    children: Any = getattr(fabric.strategy.launcher, "procs", [])
    started = [child for child in children if hasattr(child, "wait")]
    for child in started:
        child.kill()
    children.clear()
    for child in started:
        child.wait()


def keep_freed_memory() -> bool:
    """Tell the C library to keep freed memory, and return whether it could be told.

    The activations of a step on the CPU are allocated anew each time. By default glibc gives
    blocks of their size back to the system at once, and the page faults on the next ones
    cost up to 40% of a step. Only glibc on Linux is told; elsewhere this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    # The first keeps large blocks in the heap instead of in a mapping of their own; the second
    # keeps the heap from shrinking. mallopt takes an int, of which 2^31 - 1 is the largest.
    return bool(
        mallopt(_M_MMAP_THRESHOLD, _LARGEST) and mallopt(_M_TRIM_THRESHOLD, 2 * _LARGEST - 1)
    )


@contextmanager
def memory_errors_explained() -> Iterator[None]:
    """Say in one sentence that memory has run out, however a library puts it.

    Raises:
        MemoryError: It has.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        is_short = isinstance(error, MemoryError | OutOfMemoryError)
        if not is_short and not _SHORT_OF_MEMORY.search(str(error)):
            raise
        # Python's own may have no text, and torch's more lines than a person needs.
        reason = (str(error) or "nothing more could be had").partition("\n")[0]
        raise MemoryError(
            f"memory has run out ({reason}); free some, and the same command resumes from the "
            f"last checkpoint; or take another folder and a smaller batch_size, a larger "
            f"accumulate, or fewer workers."
        ) from error
