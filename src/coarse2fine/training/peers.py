"""The other processes of a training: how long they are waited for, and what if they are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from lightning_fabric import Fabric

from ..errors import RunError

PEER_SECONDS = 600.0
# As gloo, NCCL and the store by which processes find each other put it.
_LOST = re.compile(
    r"timed? ?out|connection (was )?(closed|reset|refused)|broken pipe|socket|remote process",
    re.IGNORECASE,
)


def wait_at_most(fabric: Fabric, seconds: float) -> None:
    """Set how long the processes of a training wait for each other; called before they start."""
    if not 0 < seconds < float("inf"):
        raise ValueError(f"peer_seconds must be more than 0. Got {seconds}.")
    strategy: Any = fabric.strategy
    if hasattr(strategy, "_timeout"):  # those of one process have none
        strategy._timeout = timedelta(seconds=seconds)


@contextmanager
def minding_peers(fabric: Fabric, seconds: float) -> Iterator[None]:
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
        _end_children(fabric)
        if not isinstance(error, RuntimeError) or isinstance(error, RunError):
            raise
        if fabric.world_size < 2 or not _LOST.search(str(error)):
            raise
        reason = re.sub(r"^\[[^]]*\] ", "", str(error)).partition(". ")[0].rstrip(".")
        raise RunError(
            f"another of the {fabric.world_size} processes of this training has died, or has not "
            f"answered for {seconds:g} seconds ({reason}); see what became of it, then the same "
            f"command goes on from the last checkpoint."
        ) from error


def _end_children(fabric: Fabric) -> None:
    """End the processes that Lightning Fabric has started, even those that are stopped.

    Fabric looks after them by the same list, and would kill this process as soon as it sees
    that one has died.
    """
    children: Any = getattr(fabric.strategy.launcher, "procs", [])
    started = [child for child in children if hasattr(child, "wait")]
    for child in started:
        child.kill()
    children.clear()
    for child in started:
        child.wait()
