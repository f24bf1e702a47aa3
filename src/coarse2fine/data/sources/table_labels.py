"""The labels of a table: which columns they are in, the classes, and the target of each row."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from reprlib import repr as short
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..._util.text import brief, did_you_mean
from ...errors import require
from ...hierarchy import Hierarchy
from .features import TEXT_NAMES
from .labels import sorted_names, warn_of_gaps
from .parquet import declared_names
from .table_reader import Table, column_called
from .trees import GivenTree, branches_of, tree_of

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")

TARGET_NAMES = (
    *("label", "labels", "target", "targets", "class", "category", "intent", "y"),
    *("fine_label", "label_name", "class_name"),
)
"""What the column of the classes is usually called."""

Target = str | Sequence[str] | None
"""The column of the classes, or several columns of labels, the coarsest first."""

_FEW_ROWS = 10  # in so few, every row may well be of another class


class Labels(NamedTuple):
    """What the columns of labels hold.

    Args:
        columns: Their names.
        class_names: Of the K classes; or, where a given tree is used, of its nodes.
        targets: Of each part.
        hierarchy: The tree that several columns make. Defaults to None.
    """

    columns: tuple[str, ...]
    class_names: tuple[str, ...]
    targets: dict[str, Tensor]
    hierarchy: Hierarchy | None = None


def labels_of(
    parts: Mapping[str, Table],
    target: Target = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    image: str | None = None,
    tree: GivenTree | None = None,
) -> Labels:
    """Return the labels of all parts, by one column or by several, the coarsest first.

    Args:
        parts: As for `table_source`, as are `class_names`, `columns` and `tree`.
        target: The column of the classes, or several columns of labels.
        class_names: The classes in the order of their targets.
        columns: The columns to use as numbers.
        image: The column of images. Defaults to None: there is none.
        tree: Whose clusters labels may name too.
    """
    train = parts["train"]
    if target is not None and not isinstance(target, str):
        return _labels_of_columns(parts, tuple(target), class_names)
    target = target_column(train, target, columns, image)
    names = tuple(class_names) if class_names else class_names_of(train, target)
    names = names if tree is None else tree.names(names, class_names)
    kind = "classes" if tree is None else tree.kind
    targets = {role: targets_of(table, target, names, kind) for role, table in parts.items()}
    return Labels((target,), names, targets)


def _labels_of_columns(
    parts: Mapping[str, Table], columns: tuple[str, ...], class_names: Sequence[str] | None
) -> Labels:
    """Return labels that are nodes of the tree which the columns make in training."""
    if not columns or len(set(columns)) < len(columns):
        named = ", ".join(columns) or "none"
        raise ValueError(
            f"target must name one column or more, and each of them once. Got {named}."
        )
    branches = {}
    for role, table in parts.items():
        cells = {
            name: _whole_numbers(_labels(table, name, lacking=True)).to_pylist() for name in columns
        }
        branches[role] = branches_of(cells, table.place)
    found = tree_of(branches["train"], parts["train"].place, class_names)
    targets = {role: found.targets(own, parts[role].place) for role, own in branches.items()}
    names = found.hierarchy.class_names or ()
    return Labels(columns, names, targets, found.hierarchy)


def target_column(
    table: Table, target: str | None, columns: Sequence[str] | None, image: str | None = None
) -> str:
    """Return the column of the classes: the given one, one called so, or the last.

    Args:
        table: The table to train on.
        target: The column, or None.
        columns: The columns in use, as an earlier `Source` has them; none of them is it.
        image: The column of images. Defaults to None: there is none.
    """
    if target is not None:
        table.column(target)
        return target
    used = {image, *(columns or ())}
    used |= {name for name in table.names for item in columns or () if item.startswith(f"{name}=")}
    names = [name for name in table.names if name not in used and name.lower() not in TEXT_NAMES]
    names = names or table.names
    return column_called(TARGET_NAMES, names) or names[-1]


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
    names: list[str] = sorted(_whole_numbers(_labels(table, target)).unique().to_pylist())
    if len(names) < 2:
        raise ValueError(
            f"{table.title} has one class alone, {short(names[0])}, in the column "
            f"{brief(target)!r}; there "
            f"must be two or more. Name another column by target=."
        )
    if len(names) == len(table) > _FEW_ROWS:
        raise _no_classes(table, target, "another label in every row", "labels must come again")
    if all(re.fullmatch(r"[+-]?[0-9]+", name) for name in names):
        names = list(sorted_names(names))
        warn_of_gaps(list(map(int, names)), f"{table.title}, column {brief(target)!r}")
        return tuple(names)
    if all(re.fullmatch(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?", name) for name in names):
        fraction = next((name for name in names if float(name) % 1), None)
        if fraction is not None:
            raise _no_classes(table, target, f"fractions such as {fraction}")
    return tuple(names)


def targets_of(table: Table, target: str, class_names: Sequence[str], kind: str) -> Tensor:
    """Return the class of each row, as its place in `class_names`.

    Args:
        table: The table.
        target: The column of the classes.
        class_names: The names of the K classes, or of nodes.
        kind: What these are called in an error.

    Raises:
        ValueError: A label is missing or not among them.
    """
    labels = _labels(table, target)
    known = pa.array(class_names, pa.string())
    found = pc.index_in(labels, value_set=known)
    if found.null_count:
        found = pc.coalesce(found, pc.index_in(_whole_numbers(labels), value_set=known))
    unknown = pc.index(found.is_null(), True).as_py()
    if unknown >= 0:
        raise ValueError(
            f"{table.place(unknown)}: the label {short(labels[unknown].as_py())} is none of the "
            f"{len(class_names)} {kind}, such as {', '.join(map(short, class_names[:3]))}; "
            f"correct it or remove the row.{did_you_mean(labels[unknown].as_py(), class_names)}"
        )
    return torch.from_numpy(found.to_numpy().astype("int64"))


def _labels(table: Table, target: str, *, lacking: bool = False) -> Any:
    """Return the labels as strings; where some may be lacking, those are ``""``."""
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
    if lacking:
        return labels.fill_null("")
    missing = table.first_place(pc.or_(labels.is_null(), pc.equal(labels, "")).fill_null(True))
    if missing:
        raise ValueError(
            f"{missing}: the label, in the column {brief(target)!r}, is missing; fill it in "
            f"or remove the row."
        )
    return labels


def _whole_numbers(labels: Any) -> Any:
    """Return labels such as 5.0 as 5, as a table of text may have them, if all are such."""
    if not pc.all(pc.match_substring_regex(labels, r"^([+-]?[0-9]+(\.0*)?)?$")).as_py():
        return labels
    return pc.replace_substring_regex(labels, r"\.0*$", "")


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
