"""The columns of a table as numbers; words become a column for each category."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from reprlib import repr as short
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._util.text import brief
from ...errors import require
from .table_reader import Table

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")

MOST_CATEGORIES = 100
"""A column of more different words than this holds no categories."""

# What was meant as a number, whether or not Arrow can read it.
_NUMBER = r"^[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def layout_of(table: Table, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of numbers that `features` makes of a table's columns.

    Args:
        table: The table to train on.
        names: Its columns: numbers stay one column, words become one for each category,
            such as ``colour=red``, in sorted order.

    Raises:
        ValueError: A column holds neither numbers nor at most `MOST_CATEGORIES` words.
    """
    return tuple(item for name in names for item in _items(table, name))


def features(table: Table, layout: Sequence[str]) -> Tensor:
    """Return the columns of a layout as float32 (N, F).

    A row of a category that the layout does not have is 0 in all columns of that kind.

    Args:
        table: The table.
        layout: As `layout_of` gives it, for this table or another one.

    Raises:
        ValueError: A column is not there, or a number is missing, infinite or none.
    """
    made = np.empty((len(table), len(layout)), dtype=np.float32)
    words = functools.cache(functools.partial(words_of, table))
    for place, item in enumerate(layout):
        column = _column_of_category(table, item)
        if column is None:
            made[:, place] = _numbers(table, item)
        else:
            made[:, place] = pc.equal(words(column), item[len(column) + 1 :]).to_numpy()
    return torch.from_numpy(made)


def is_words(table: Table, name: str) -> bool:
    """Return whether a column holds strings."""
    return str(table.column(name).type) in ("string", "large_string", "string_view")


def words_of(table: Table, name: str) -> Any:
    """Return a column's strings without space around them, a missing one being empty."""
    return pc.utf8_trim_whitespace(table.column(name).cast(pa.string()).fill_null(""))


def is_numeric(table: Table, name: str) -> bool:
    """Return whether a column holds numbers or truth values, or most of its strings do.

    Where most do and some do not, those are more likely to be at fault than all to be
    categories.
    """
    if not is_words(table, name):
        return _has_numeric_type(table, name)
    cells = words_of(table, name)
    cells = cells.filter(pc.not_equal(cells, ""))
    try:
        _cast(cells)
    except pa.ArrowInvalid:
        numbers = pc.match_substring_regex(cells, _NUMBER).to_numpy()
        return bool(2 * numbers.sum() > len(cells))
    return True


def _has_numeric_type(table: Table, name: str) -> bool:
    types, kind = pa.types, table.column(name).type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests) or bool(types.is_null(kind))


def _items(table: Table, name: str) -> list[str]:
    if is_numeric(table, name):
        return [name]
    if not is_words(table, name):
        raise _unusable(table, name, str(table.column(name).type))
    categories = sorted(words_of(table, name).unique().to_pylist())
    if len(categories) > MOST_CATEGORIES:
        raise _unusable(table, name, f"{len(categories)} different words")
    return [f"{name}={category}" for category in categories]


def _column_of_category(table: Table, item: str) -> str | None:
    """Return the column that an item such as ``colour=red`` is of, None for no such item."""
    ends = [place for place, character in enumerate(item) if character == "="]
    columns = [item[:end] for end in ends if item[:end] in table.names]
    return columns[0] if columns and item not in table.names else None


def _numbers(table: Table, name: str) -> NDArray[np.float32]:
    values = table.column(name)
    if is_words(table, name):
        values = _parsed(table, name)
    elif not _has_numeric_type(table, name):
        raise _unusable(table, name, str(values.type))
    doubles = values.cast(pa.float64(), safe=False).to_numpy()
    with np.errstate(over="ignore"):
        numbers: NDArray[np.float32] = doubles.astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(numbers)):
        what = "missing" if np.isnan(numbers[row]) else "infinite or too large"
        raise ValueError(
            f"{table.place(int(row))}: the number in the column {brief(name)!r} is {what}; fill it "
            f"in, or remove the row or the column."
        )
    return numbers


def _parsed(table: Table, name: str) -> Any:
    """Return strings as numbers, an empty one being null."""
    cells = words_of(table, name)
    cells = pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.string()), cells)
    try:
        return _cast(cells)
    except pa.ArrowInvalid:
        row = next(row for row in range(len(cells)) if not _is_number(cells[row]))
        raise ValueError(
            f"{table.place(row)}: {short(cells[row].as_py())}, in the column {brief(name)!r}, is "
            f"no number; correct it, or remove the row or the column."
        ) from None


def _cast(cells: Any) -> Any:
    """Return strings as floats or, if they are no numbers, as truth values."""
    try:
        return cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return cells.cast(pa.bool_())


def _is_number(cell: Any) -> bool:
    try:
        cell.cast(pa.float64())
    except pa.ArrowInvalid:
        return False
    return True


def _unusable(table: Table, name: str, what: str) -> ValueError:
    return ValueError(
        f"{table.title}: the column {brief(name)!r} holds {brief(what)}, neither numbers nor "
        f"at most {MOST_CATEGORIES} categories; name the text by text=, or the columns to use by "
        f"columns=."
    )
