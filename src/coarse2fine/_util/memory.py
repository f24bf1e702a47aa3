"""How much memory a process can still have. Linux says so; elsewhere nobody knows."""

from __future__ import annotations

from pathlib import Path

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """Return how many bytes this process can still have; None where that is not known.

    They may be those of the machine, swap included, or those that a container or a job may have.
    """
    system = _numbers(_PROC / "meminfo")
    if "MemAvailable:" not in system:
        return None
    free = 1024 * (system["MemAvailable:"] + system.get("SwapFree:", 0))
    return min([free, *_left_by_limits()])


def check_memory(needed: int, what: str, remedy: str) -> None:
    """Raise a `MemoryError` where less memory is free than is needed.

    Args:
        needed: How many bytes.
        what: What needs them.
        remedy: What to do about it.
    """
    free = free_bytes()
    if free is not None and needed > free:
        raise MemoryError(
            f"{what} takes {gigabytes(needed)} of memory, of which {gigabytes(needed - free)} are "
            f"missing, as {gigabytes(free)} are free; {remedy}."
        )


def gigabytes(count: int) -> str:
    """Return a number of bytes as a text.

    Examples:
        >>> gigabytes(1_234_567_890)
        '1.23 GB'
    """
    return f"{count / 1e9:,.2f} GB"


def _left_by_limits() -> list[int]:
    """Return what each limit on this process leaves, from its cgroup up to the root."""
    found = []
    for line in _text(_PROC / "self" / "cgroup").splitlines():
        _, kinds, path = line.split(":", 2)
        # The first version has a tree for each kind of limit, the second one tree without a name.
        root = _CGROUPS / kinds
        if kinds in ("", "memory"):
            inside = root / path.strip("/")
            found += [it for it in (inside, *inside.parents) if it.is_relative_to(root)]
    return [left for left in map(_left, found) if left is not None]


def _left(folder: Path) -> int | None:
    """Return what a cgroup's limit leaves; None where it has none."""
    for limit, used, files in (
        ("memory.max", "memory.current", "inactive_file"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, taken = _text(folder / limit).strip(), _text(folder / used).strip()
        if most.isdigit() and taken.isdigit():
            # The system gives up what it keeps of files as soon as a process needs the memory.
            return int(most) - int(taken) + _numbers(folder / "memory.stat").get(files, 0)
    return None


def _numbers(path: Path) -> dict[str, int]:
    """Return the first number after the name on each line of a file."""
    rows = (line.split() for line in _text(path).splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _text(path: Path) -> str:
    """Return what a file of the system says; nothing where there is none."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return ""
