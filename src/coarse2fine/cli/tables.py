"""Tables on a terminal, by rich; elsewhere they are plain text, see `as_text`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .._util.columns import Better, Parts, Rows, Worse, filled
from .._util.text import JOINERS, printable
from ..errors import require
from ..figures.theme import BETTER, WORSE
from ..training.terminal import plain_console

Column = Sequence[str]  # its heading first
_GAP = 2  # between columns, as in plain text
_NUMBER = re.compile(r"[+-]?\d")
_STYLES: dict[type, str] = {Better: BETTER, Worse: WORSE}  # as in the figures
# Where there are only 16 colours, of which rich would take cyan for the nearest.
_NAMED: dict[type, str] = {Better: "green", Worse: "yellow"}


def write_parts(parts: Parts) -> None:
    """Write lines of text and tables to the standard output, which is a terminal.

    Args:
        parts: From top to bottom.
    """
    console = plain_console(sys.stdout)
    for part in parts:
        if isinstance(part, str):
            console.print(printable(part, keep=f"\n\t{JOINERS}"))
        else:
            for columns in _blocks(filled(part), console.width):
                console.print(_table(columns, console), soft_wrap=False)


def _blocks(rows: Rows, width: int) -> Iterator[list[Column]]:
    """Yield the columns of a table in as many blocks as a terminal is too narrow for.

    Cells are folded between words first. Every further block begins with what its lines are
    called by: the first column, or the first two where a name is not repeated.
    """
    columns: list[Column] = list(zip(*rows, strict=True))
    least = [_GAP + _longest_word(column) for column in columns]
    keys = 1 if all(columns[0]) else 2
    begins, filled_up = keys, sum(least[:keys])
    for place in range(keys, len(columns)):
        filled_up += least[place]
        if filled_up - _GAP > width and place > begins:
            yield [*columns[:keys], *columns[begins:place]]
            begins, filled_up = place, sum(least[:keys]) + least[place]
    yield [*columns[:keys], *columns[begins:]]


def _longest_word(column: Column) -> int:
    return max((_width(word) for cell in column for word in cell.split()), default=1)


def _width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for a Chinese letter."""
    length: int = require("rich.cells", "train").cell_len(printable(text, keep=JOINERS))
    return length


def _widths(columns: Sequence[Column], width: int) -> list[int]:
    """Return how wide the columns are: where there is no room, less where most can be folded."""
    least = [_longest_word(column) for column in columns]
    found = [max(map(_width, column)) for column in columns]
    for _ in range(sum(found) + _GAP * (len(found) - 1) - width):
        widest = max(range(len(found)), key=lambda i: (found[i] > 1, found[i] - least[i]))
        found[widest] -= 1
    return found


def _table(columns: Sequence[Column], console: Any) -> Any:
    """Return columns as a table of rich: numbers to the right, names to the left."""
    styles = _NAMED if console.color_system in ("standard", "windows") else _STYLES
    table = require("rich.table", "train").Table(
        box=require("rich.box", "train").SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),  # one more is between any two
    )
    for (title, *cells), own in zip(columns, _widths(columns, console.width), strict=True):
        is_number = any(cells) and all(map(_NUMBER.match, filter(None, cells)))
        table.add_column(
            _text(title, styles),
            justify="right" if is_number else "left",
            width=max(own, 1),
            overflow="fold",
        )
    for row in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*(_text(cell, styles) for cell in row))
    return table


def _text(cell: str, styles: Mapping[type, str]) -> Any:
    text = printable(cell, keep=JOINERS)
    return require("rich.text", "train").Text(text, styles.get(type(cell), ""))
