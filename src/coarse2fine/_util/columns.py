"""Rows of cells as plain text, among which some may be better or worse than others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

Rows = Sequence[Sequence[str]]  # of cells, the headings first
Parts = Iterable[str | Rows]  # lines of text and tables, from top to bottom


class Better(str):
    """A cell that tells of something better beyond chance; terminals show it in green."""

    __slots__ = ()


class Worse(str):
    """A cell that tells of something worse beyond chance; terminals show it in orange."""

    __slots__ = ()


def marked(text: str, direction: int) -> str:
    """Return a cell that is marked as better or worse.

    Args:
        text: Of the cell.
        direction: 1 for better, -1 for worse, 0 where chance may have it so.

    Examples:
        >>> marked("+1.00", 1), type(marked("+1.00", 1)).__name__
        ('+1.00', 'Better')
    """
    kinds: dict[int, type[str]] = {1: Better, -1: Worse}
    return kinds.get(direction, str)(text)


def aligned(rows: Rows) -> str:
    """Return rows of cells as lines with aligned columns.

    Examples:
        >>> print(aligned([["seed", "accuracy"], ["0", "31.5"]]))
        seed  accuracy
           0      31.5
    """
    full = filled(rows)
    widths = [max(map(len, column)) for column in zip(*full, strict=True)]
    lines = ("  ".join(f"{cell:>{w}}" for cell, w in zip(row, widths, strict=True)) for row in full)
    return "\n".join(line.rstrip() for line in lines)


def filled(rows: Rows) -> list[list[str]]:
    """Return rows of the same length, the shorter ones with empty cells at their ends."""
    width = max(map(len, rows))
    return [[*row, *[""] * (width - len(row))] for row in rows]


def as_text(parts: Parts, write: Callable[[Rows], str] = aligned) -> str:
    """Return lines of text and tables as one text.

    Args:
        parts: From top to bottom.
        write: Turns a table into text. Defaults to `aligned`.
    """
    return "\n".join(part if isinstance(part, str) else write(part) for part in parts)
