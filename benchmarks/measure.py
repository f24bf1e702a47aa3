"""Timing two things against each other, and rows of the table."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass
class Row:
    """One line of the table: what was measured, and whether it is as good as promised."""

    what: str
    measured: str
    value: float
    promised: str
    kept: bool | None

    @classmethod
    def at_least(cls, what: str, value: float, bound: float, unit: str, detail: str = "") -> Row:
        return cls(what, _text(value, unit, detail), value, f"≥ {bound:g}{unit}", value >= bound)

    @classmethod
    def at_most(cls, what: str, value: float, bound: float, unit: str, detail: str = "") -> Row:
        return cls(what, _text(value, unit, detail), value, f"≤ {bound:g}{unit}", value <= bound)

    @classmethod
    def plain(cls, what: str, value: float, unit: str, detail: str = "") -> Row:
        return cls(what, _text(value, unit, detail), value, "", None)


def _text(value: float, unit: str, detail: str) -> str:
    return f"{value:.3g}{unit}" + (f" ({detail})" if detail else "")


@dataclass
class Comparison:
    """The median times of two functions, and the median of the ratios of their turns."""

    ours: float
    peer: float
    ratio: float


def compare(
    ours: Callable[[], Any], peer: Callable[[], Any], *, repeats: int, warm_up: int = 1
) -> Comparison:
    """Time two functions in turns, so that noise hits both alike; ratio is ours to peer's."""
    pairs = []
    for repeat in range(-warm_up, repeats):
        # Who goes first changes, as the second finds caches as the first left them.
        order = (ours, peer) if repeat % 2 else (peer, ours)
        taken = {function: seconds(function) for function in order}
        if repeat >= 0:
            pairs.append((taken[ours], taken[peer]))
    mine, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    return Comparison(mine, theirs, statistics.median(a / b for a, b in pairs))


def seconds(function: Callable[[], Any]) -> float:
    """Return how long a call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def memory(entry: str) -> int:
    """Return a size in bytes from /proc/self/status: VmRSS is the memory now, VmHWM its peak.

    The peak of getrusage would not do: a process inherits it from the one that started it.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(entry)).split()[1])


def reset_peak() -> None:
    """Let VmHWM start anew from the memory in use now."""
    Path("/proc/self/clear_refs").write_text("5")


def in_a_fresh_process(code: str, *arguments: str) -> dict[str, Any]:
    """Run code that prints one line of JSON, by itself, so that its memory is its own."""
    command = [sys.executable, "-c", code, *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(printed.splitlines()[-1]))


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = ["| what | measured | promised | kept |", "|---|---|---|---|"]
    for row in rows:
        kept = "" if row.kept is None else ("yes" if row.kept else "**no**")
        lines.append(f"| {row.what} | {row.measured} | {row.promised} | {kept} |")
    return "\n".join(lines)


def as_json(rows: list[Row], **about: Any) -> str:
    """Return the rows, and what they were measured with, as JSON."""
    return json.dumps(
        {**about, "rows": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False
    )
