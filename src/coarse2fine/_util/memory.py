"""How much memory is free, to say beforehand that it does not suffice."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_MEMINFO, _GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Raise a `MemoryError` where less memory is free than is needed; only Linux tells.

    Args:
        needed: How many bytes.
        what: What needs them.
        remedy: What to do about it.
    """
    free = free_memory()
    if free is not None and needed > free:
        needs, has, lacks = (f"{size / 2**30:.1f} GB" for size in (needed, free, needed - free))
        raise MemoryError(
            f"{what} takes {needs} of memory, of which {lacks} are missing, as {has} are free; "
            f"{remedy}."
        )


def free_memory() -> int | None:
    """Return how many bytes this process can have, or None where the system does not tell."""
    free: list[int] = []
    with suppress(OSError):
        free.append(1024 * _entry(_MEMINFO, "MemAvailable:"))
    with suppress(OSError, ValueError):  # of a container, which may have no limit ("max")
        limit = int((_GROUP / "memory.max").read_text())
        used = int((_GROUP / "memory.current").read_text())
        # What is read from files is kept while nobody needs the memory.
        free.append(limit - used + _entry(_GROUP / "memory.stat", "inactive_file"))
    return max(0, min(free)) if free else None


def _entry(path: Path, name: str) -> int:
    lines = path.read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])
