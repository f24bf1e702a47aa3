"""The classes of a table's table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor

from ..._util.text import brief
from ...errors import require
from .parquet import declared_names
from .table_reader import Table

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")

TARGET_NAMES = (
    *("label", "labels", "target", "targets", "class", "category", "intent", "y"),
    *("fine_label", "label_name", "class_name"),
)
"""What the column of the classes is usually called."""

_FEW_ROWS = 10  # in so few, every row may well be of another class


def target_column(table: Table, target: str | None, others: Sequence[str | None]) -> str:
    """Return the column of the classes: the given one, one called so, or the last.

    Args:
        table: The table.
        target: The column, or None.
        others: Columns that hold something else.
    """
    if target is not None:
        table.column(target)
        return target
    names = [name for name in table.names if name not in others] or table.names
    by_name = {name.lower(): name for name in reversed(names)}
    known = [by_name[name] for name in TARGET_NAMES if name in by_name]
    return known[0] if known else names[-1]


def class_names_of(table: Table, target: str) -> tuple[str, ...]:
    """Return the names of the classes: integers in their order, other labels sorted.

    Args:
        table: The table to train on.
        target: The column of the classes.

    Raises:
        ValueError: There is one class alone, or the labels are numbers to be predicted.
    """
    declared = declared_names(table.arrow.schema, target)
    if declared:
        return declared
    names: list[str] = sorted(_labels(table, target).unique().to_pylist())
    if len(names) < 2:
        raise ValueError(
            f"{table.title} has one class alone, {short(names[0])}, in the column "
            f"{brief(target)!r}; there "
            f"must be two or more. Name another column by target=."
        )
    if len(names) == len(table) > _FEW_ROWS:
        raise _no_classes(table, target, "another label in every row", "labels must come again")
    if all(re.fullmatch(r"[+-]?[0-9]+", name) for name in names):
        return tuple(sorted(names, key=int))
    if all(re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", name) for name in names):
        fraction = next((name for name in names if float(name) % 1), None)
        if fraction is not None:
            raise _no_classes(table, target, f"fractions such as {fraction}")
    return tuple(names)


def targets_of(table: Table, target: str, class_names: Sequence[str]) -> Tensor:
    """Return the class of each row, as its place in `class_names`.

    Args:
        table: The table.
        target: The column of the classes.
        class_names: The names of the K classes.

    Raises:
        ValueError: A label is missing or not among the classes.
    """
    labels = _labels(table, target)
    found = pc.index_in(labels, value_set=pa.array(class_names, pa.string()))
    unknown = pc.index(found.is_null(), True).as_py()
    if unknown >= 0:
        raise ValueError(
            f"{table.place(unknown)}: the label {short(labels[unknown].as_py())} is none of the "
            f"{len(class_names)} classes, such as {', '.join(map(short, class_names[:3]))}; "
            f"correct it or remove the row."
        )
    return torch.from_numpy(found.to_numpy().astype("int64"))


def _labels(table: Table, target: str) -> Any:
    """Return the labels as strings, none of them missing."""
    values, types = table.column(target), pa.types
    if types.is_floating(values.type):
        values = _whole(table, target, pc.if_else(values.is_nan(), None, values))
    names = declared_names(table.arrow.schema, target)
    if names and types.is_integer(values.type):
        known = pc.and_(pc.greater_equal(values, 0), pc.less(values, len(names)))
        values = pa.array(names).take(pc.if_else(known, values, None))
    if types.is_nested(values.type) or types.is_binary(values.type):
        raise _no_classes(table, target, str(values.type))
    labels = pc.utf8_trim_whitespace(values.cast(pa.string()))
    missing = table.first_place(pc.or_(labels.is_null(), pc.equal(labels, "")).fill_null(True))
    if missing:
        raise ValueError(
            f"{missing}: the label, in the column {brief(target)!r}, is missing; fill it in "
            f"or remove the row."
        )
    return labels


def _whole(table: Table, target: str, values: Any) -> Any:
    """Return floats as integers, as libraries make floats of integers where one is missing."""
    fraction = pc.index(pc.not_equal(values, pc.trunc(values)), True).as_py()
    if fraction >= 0:
        raise _no_classes(table, target, f"fractions such as {values[fraction].as_py()}")
    return values.cast(pa.int64())


def _no_classes(
    table: Table, target: str, what: str, rule: str = "classes must be words or integers"
) -> ValueError:
    return ValueError(
        f"{table.title}: the column {brief(target)!r} holds {brief(what)}, but {rule}; name the "
        f"column of the classes by target=."
    )
