"""Timing two things in one run, and rows of the table."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
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


def medians(*functions: Callable[[], Any], repeats: int, warm_up: int = 1) -> list[float]:
    """Return the median time of each function, called in turns so that noise hits all alike."""
    for _ in range(warm_up):
        for function in functions:
            function()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


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
