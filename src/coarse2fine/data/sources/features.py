"""The columns of a table as inputs: text as tokens, numbers as they are, categories one-hot."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..._util.text import brief
from ...errors import require
from .table_reader import Table, column_called

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")

MOST_CATEGORIES = 100
"""A column of more different strings than this holds no categories."""

TEXT_NAMES = (
    *("text", "sentence", "utterance", "query", "question", "review"),
    *("content", "message", "comment", "tweet", "headline", "document"),
)
"""What a column of text is usually called."""

# What was meant as a number, whether or not Arrow can read it.
_NUMBER = r"^[+-]?([0-9]+[.,]?[0-9]*|[.,][0-9]+)([eE][+-]?[0-9]+)?$"


def feature_names(table: Table, target: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of the features that `features` makes of all columns but the target.

    A column of numbers is one feature, one of strings a feature for each category, such as
    ``colour=red``, in sorted order.

    Args:
        table: The table to train on.
        target: The column of the classes, or several columns of labels.

    Raises:
        ValueError: A column holds neither numbers nor at most `MOST_CATEGORIES` categories.
    """
    targets = (target,) if isinstance(target, str) else target
    columns = [name for name in table.names if name not in targets]
    if not columns:
        named = brief(", ".join(map(repr, targets)))
        raise ValueError(f"{table.title} has no column but the target, {named}.")
    return tuple(name for column in columns for name in _names_of_column(table, column))


def features(table: Table, names: Sequence[str]) -> Tensor:
    """Return features as float32 (N, F).

    A row of a category that has no feature is 0 in all features of its column.

    Args:
        table: The table.
        names: As `feature_names` gives them, for this table or another one.

    Raises:
        ValueError: A column is not there, or a number is missing, infinite or none.
    """
    made = np.empty((len(table), len(names)), dtype=np.float32)
    strings = functools.cache(functools.partial(_strings, table))
    for place, name in enumerate(names):
        column = _column_of_category(table, name)
        if column is None:
            made[:, place] = _numbers(table, name)
        else:
            made[:, place] = pc.equal(strings(column), name[len(column) + 1 :]).to_numpy()
    return torch.from_numpy(made)


def text_column(table: Table, target: str | Sequence[str], text: str | None) -> str | None:
    """Return the column of the text, None where there is none.

    Args:
        table: The table to train on.
        target: The column of the classes, or several columns of labels.
        text: The column, or None to look for it.
    """
    targets = (target,) if isinstance(target, str) else target
    if text is not None:
        if text in targets:
            raise ValueError(f"{table.title}: the column {text!r} cannot be text and target both.")
        table.column(text)
        return text
    others = [name for name in table.names if name not in targets]
    strings = [name for name in others if _is_string(table, name) and not _is_numeric(table, name)]
    is_text = len(strings) == 1 and (len(others) == 1 or not _has_categories(table, strings[0]))
    return column_called(TEXT_NAMES, strings) or (strings[0] if is_text else None)


def sentences(table: Table, text: str) -> tuple[str, ...]:
    """Return a column of text, none of which is missing.

    Args:
        table: The table.
        text: The column.

    Raises:
        ValueError: The column holds no text, or not in every row.
    """
    values = table.column(text)
    if not _is_string(table, text):
        raise ValueError(
            f"{table.title}: the column {brief(text)!r} holds {brief(values.type)}, no text."
        )
    missing = table.first_place(values.is_null())
    if missing:
        raise ValueError(
            f"{missing}: the text, in the column {brief(text)!r}, is missing; fill it in or "
            f"remove the row."
        )
    return tuple(values.to_pylist())


# ----------------------------------------------------------------------------- categories


def _has_categories(table: Table, name: str) -> bool:
    """Return whether the strings of a column are few, and come again and again."""
    different = len(_strings(table, name).unique())
    return different <= min(MOST_CATEGORIES, len(table) // 2)


def _names_of_column(table: Table, name: str) -> list[str]:
    if _is_numeric(table, name):
        return [name]
    if not _is_string(table, name):
        raise _unusable(table, name, str(table.column(name).type))
    categories = sorted(_strings(table, name).unique().to_pylist())
    if len(categories) > MOST_CATEGORIES:
        raise _unusable(table, name, f"{len(categories)} different words")
    return [f"{name}={category}" for category in categories]


def _column_of_category(table: Table, feature: str) -> str | None:
    """Return the column that a feature such as ``colour=red`` is of, None for no such feature."""
    ends = [place for place, character in enumerate(feature) if character == "="]
    columns = [feature[:end] for end in ends if feature[:end] in table.names]
    return columns[0] if columns and feature not in table.names else None


def _is_string(table: Table, name: str) -> bool:
    """Return whether a column holds strings."""
    return str(table.column(name).type) in ("string", "large_string", "string_view")


def _strings(table: Table, name: str) -> Any:
    """Return a column's strings without space around them, a missing one being empty."""
    return pc.utf8_trim_whitespace(table.column(name).cast(pa.string()).fill_null(""))


# -------------------------------------------------------------------------------- numbers


def _is_numeric(table: Table, name: str) -> bool:
    """Return whether a column holds numbers or truth values, or most of its strings do.

    Where most do and some do not, those are more likely to be at fault than all to be
    categories.
    """
    if not _is_string(table, name):
        return _has_numeric_type(table, name)
    cells = _strings(table, name)
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


def _numbers(table: Table, name: str) -> NDArray[np.float32]:
    values = table.column(name)
    if _is_string(table, name):
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
    cells = _strings(table, name)
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
