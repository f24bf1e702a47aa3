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

from .._printable import brief
from ..errors import require
from .rows import Rows

MOST_CATEGORIES = 100
"""A column of more different words than this holds no categories."""

# What was meant as a number, whether or not Arrow can read it.
_NUMBER = r"^[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def layout_of(rows: Rows, names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of numbers that `features` makes of a table's columns.

    Args:
        rows: The table to train on.
        names: Its columns: numbers stay one column, words become one for each category,
            such as ``colour=red``, in sorted order.

    Raises:
        ValueError: A column holds neither numbers nor at most `MOST_CATEGORIES` words.
    """
    return tuple(item for name in names for item in _items(rows, name))


def features(rows: Rows, layout: Sequence[str]) -> Tensor:
    """Return the columns of a layout as float32 (N, F).

    A row of a category that the layout does not have is 0 in all columns of that kind.

    Args:
        rows: The table.
        layout: As `layout_of` gives it, for this table or another one.

    Raises:
        ValueError: A column is not there, or a number is missing, infinite or none.
    """
    made = np.empty((len(rows), len(layout)), dtype=np.float32)
    words = functools.cache(functools.partial(words_of, rows))
    equal = require("pyarrow.compute", "train").equal
    for place, item in enumerate(layout):
        column = _column_of_category(rows, item)
        if column is None:
            made[:, place] = _numbers(rows, item)
        else:
            made[:, place] = equal(words(column), item[len(column) + 1 :]).to_numpy()
    return torch.from_numpy(made)


def is_words(rows: Rows, name: str) -> bool:
    """Return whether a column holds strings."""
    return str(rows.column(name).type) in ("string", "large_string", "string_view")


def words_of(rows: Rows, name: str) -> Any:
    """Return a column's strings without space around them, a missing one being empty."""
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    return compute.utf8_trim_whitespace(rows.column(name).cast(arrow.string()).fill_null(""))


def is_numeric(rows: Rows, name: str) -> bool:
    """Return whether a column holds numbers or truth values, or most of its strings do.

    Where most do and some do not, those are more likely to be at fault than all to be
    categories.
    """
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    if not is_words(rows, name):
        return _has_numeric_type(rows, name)
    cells = words_of(rows, name)
    cells = cells.filter(compute.not_equal(cells, ""))
    try:
        _cast(cells)
    except arrow.ArrowInvalid:
        numbers = compute.match_substring_regex(cells, _NUMBER).to_numpy()
        return bool(2 * numbers.sum() > len(cells))
    return True


def _has_numeric_type(rows: Rows, name: str) -> bool:
    types, kind = require("pyarrow", "train").types, rows.column(name).type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
    return any(test(kind) for test in tests) or bool(types.is_null(kind))


def _items(rows: Rows, name: str) -> list[str]:
    if is_numeric(rows, name):
        return [name]
    if not is_words(rows, name):
        raise _unusable(rows, name, str(rows.column(name).type))
    categories = sorted(words_of(rows, name).unique().to_pylist())
    if len(categories) > MOST_CATEGORIES:
        raise _unusable(rows, name, f"{len(categories)} different words")
    return [f"{name}={category}" for category in categories]


def _column_of_category(rows: Rows, item: str) -> str | None:
    """Return the column that an item such as ``colour=red`` is of, None for no such item."""
    ends = [place for place, character in enumerate(item) if character == "="]
    columns = [item[:end] for end in ends if item[:end] in rows.names]
    return columns[0] if columns and item not in rows.names else None


def _numbers(rows: Rows, name: str) -> NDArray[np.float32]:
    values = rows.column(name)
    if is_words(rows, name):
        values = _parsed(rows, name)
    elif not _has_numeric_type(rows, name):
        raise _unusable(rows, name, str(values.type))
    doubles = values.cast(require("pyarrow", "train").float64(), safe=False).to_numpy()
    with np.errstate(over="ignore"):
        numbers: NDArray[np.float32] = doubles.astype(np.float32)
    for row in np.flatnonzero(~np.isfinite(numbers)):
        what = "missing" if np.isnan(numbers[row]) else "infinite or too large"
        raise ValueError(
            f"{rows.place(int(row))}: the number in the column {brief(name)!r} is {what}; fill it "
            f"in, or remove the row or the column."
        )
    return numbers


def _parsed(rows: Rows, name: str) -> Any:
    """Return strings as numbers, an empty one being null."""
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    cells = words_of(rows, name)
    cells = compute.if_else(compute.equal(cells, ""), arrow.scalar(None, arrow.string()), cells)
    try:
        return _cast(cells)
    except arrow.ArrowInvalid:
        row = next(row for row in range(len(cells)) if not _is_number(cells[row]))
        raise ValueError(
            f"{rows.place(row)}: {short(cells[row].as_py())}, in the column {brief(name)!r}, is no "
            f"number; "
            f"correct it, or remove the row or the column."
        ) from None


def _cast(cells: Any) -> Any:
    """Return strings as floats or, if they are no numbers, as truth values."""
    arrow = require("pyarrow", "train")
    try:
        return cells.cast(arrow.float64())
    except arrow.ArrowInvalid:
        return cells.cast(arrow.bool_())


def _is_number(cell: Any) -> bool:
    arrow = require("pyarrow", "train")
    try:
        cell.cast(arrow.float64())
    except arrow.ArrowInvalid:
        return False
    return True


def _unusable(rows: Rows, name: str, what: str) -> ValueError:
    return ValueError(
        f"{rows.title}: the column {brief(name)!r} holds {brief(what)}, neither numbers nor "
        f"at most {MOST_CATEGORIES} categories; name the text by text=, or the columns to use by "
        f"columns=."
    )
