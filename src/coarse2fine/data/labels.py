"""The classes of a table's rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor

from .._printable import brief
from ..errors import require
from .hub_schema import declared_names
from .rows import Rows

TARGET_NAMES = (
    *("label", "labels", "target", "targets", "class", "category", "intent", "y"),
    *("fine_label", "label_name", "class_name"),
)
"""What the column of the classes is usually called."""

_FEW_ROWS = 10  # in so few, every row may well be of another class


def target_column(rows: Rows, target: str | None, others: Sequence[str | None]) -> str:
    """Return the column of the classes: the given one, one called so, or the last.

    Args:
        rows: The table.
        target: The column, or None.
        others: Columns that hold something else.
    """
    if target is not None:
        rows.column(target)
        return target
    names = [name for name in rows.names if name not in others] or rows.names
    by_name = {name.lower(): name for name in reversed(names)}
    known = [by_name[name] for name in TARGET_NAMES if name in by_name]
    return known[0] if known else names[-1]


def class_names_of(rows: Rows, target: str) -> tuple[str, ...]:
    """Return the names of the classes: integers in their order, other labels sorted.

    Args:
        rows: The table to train on.
        target: The column of the classes.

    Raises:
        ValueError: There is one class alone, or the labels are numbers to be predicted.
    """
    declared = declared_names(rows.table.schema, target)
    if declared:
        return declared
    names: list[str] = sorted(_labels(rows, target).unique().to_pylist())
    if len(names) < 2:
        raise ValueError(
            f"{rows.title} has one class alone, {short(names[0])}, in the column "
            f"{brief(target)!r}; there "
            f"must be two or more. Name another column by target=."
        )
    if len(names) == len(rows) > _FEW_ROWS:
        raise _no_classes(rows, target, "another label in every row", "labels must come again")
    if all(re.fullmatch(r"[+-]?[0-9]+", name) for name in names):
        return tuple(sorted(names, key=int))
    if all(re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", name) for name in names):
        fraction = next((name for name in names if float(name) % 1), None)
        if fraction is not None:
            raise _no_classes(rows, target, f"fractions such as {fraction}")
    return tuple(names)


def targets_of(rows: Rows, target: str, class_names: Sequence[str]) -> Tensor:
    """Return the class of each row, as its place in `class_names`.

    Args:
        rows: The table.
        target: The column of the classes.
        class_names: The names of the K classes.

    Raises:
        ValueError: A label is missing or not among the classes.
    """
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    labels = _labels(rows, target)
    found = compute.index_in(labels, value_set=arrow.array(class_names, arrow.string()))
    unknown = compute.index(found.is_null(), True).as_py()
    if unknown >= 0:
        raise ValueError(
            f"{rows.place(unknown)}: the label {short(labels[unknown].as_py())} is none of the "
            f"{len(class_names)} classes, such as {', '.join(map(short, class_names[:3]))}; "
            f"correct it or remove the row."
        )
    return torch.from_numpy(found.to_numpy().astype("int64"))


def _labels(rows: Rows, target: str) -> Any:
    """Return the labels as strings, none of them missing."""
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    values, types = rows.column(target), arrow.types
    if types.is_floating(values.type):
        values = _whole(rows, target, compute.if_else(values.is_nan(), None, values))
    names = declared_names(rows.table.schema, target)
    if names and types.is_integer(values.type):
        known = compute.and_(compute.greater_equal(values, 0), compute.less(values, len(names)))
        values = arrow.array(names).take(compute.if_else(known, values, None))
    if types.is_nested(values.type) or types.is_binary(values.type):
        raise _no_classes(rows, target, str(values.type))
    labels = compute.utf8_trim_whitespace(values.cast(arrow.string()))
    missing = rows.first_place(
        compute.or_(labels.is_null(), compute.equal(labels, "")).fill_null(True)
    )
    if missing:
        raise ValueError(
            f"{missing}: the label, in the column {brief(target)!r}, is missing; fill it in "
            f"or remove the row."
        )
    return labels


def _whole(rows: Rows, target: str, values: Any) -> Any:
    """Return floats as integers, as libraries make floats of integers where one is missing."""
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    fraction = compute.index(compute.not_equal(values, compute.trunc(values)), True).as_py()
    if fraction >= 0:
        raise _no_classes(rows, target, f"fractions such as {values[fraction].as_py()}")
    return values.cast(arrow.int64())


def _no_classes(
    rows: Rows, target: str, what: str, rule: str = "classes must be words or integers"
) -> ValueError:
    return ValueError(
        f"{rows.title}: the column {brief(target)!r} holds {brief(what)}, but {rule}; name the "
        f"column of the classes by target=."
    )
