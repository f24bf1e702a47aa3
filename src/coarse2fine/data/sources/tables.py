"""Tables to classify: which column is what, and the samples and classes that they become."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor

from ..._util.text import brief
from ...errors import require
from ..split import Kind, Source, Split
from .features import TEXT_NAMES, feature_names, features, sentences, text_column
from .labels import warn_of_gaps
from .parquet import declared_names, has_image_column
from .table_files import table_files
from .table_reader import Table, column_called, read_arrow
from .text import tokens

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")

TARGET_NAMES = (
    *("label", "labels", "target", "targets", "class", "category", "intent", "y"),
    *("fine_label", "label_name", "class_name"),
)
"""What the column of the classes is usually called."""

_FEW_ROWS = 10  # in so few, every row may well be of another class


def load_table(
    path: str | Path,
    *,
    target: str | None = None,
    text: str | None = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Load rows of text or of numbers, each with a label.

    The file may be csv, tsv, json-lines (.jsonl, .ndjson), json (a list of objects), each
    also as .gz, or parquet. Where it is called train, files beside it called test and val
    (or valid, validation, dev) are used as such; a folder that holds such files will do too.
    Rows are counted from 1 in messages, a header not being one.

    Columns of strings that are not the text are categories, of which each becomes a column of
    zeros and ones; a category that was not seen in training is zero in all.

    Args:
        path: The file or folder.
        target: See `coarse2fine.data.load_data`, also for the others.
        text: The column of the text.
        class_names: The classes in the order of their targets.
        columns: The columns to use as numbers.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be understood; the message names the file and, where there is
            one, the row.
    """
    files = table_files(Path(path))
    first = files["train"][0]
    if text is None and has_image_column(first):
        raise ValueError(f"{first} holds images, so it is no table of text or numbers.")
    try:
        parts = {
            role: Table([(str(file), read_arrow(file)) for file in found])
            for role, found in files.items()
        }
        return table_source(parts, target, text, class_names, columns)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        # Of values that Arrow cannot use, or that are no text though they should be.
        raise ValueError(f"{first} cannot be used ({brief(error)}).") from error


def table_source(
    parts: Mapping[str, Table],
    target: str | None = None,
    text: str | None = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
) -> Source:
    """Return the samples that tables hold.

    Args:
        parts: The table to train on as ``"train"`` and, where there are such, those to test
            and to validate on as ``"test"`` and ``"val"``.
        target: As for `load_table`, as are the others.
        text: The column of the text.
        class_names: The classes in the order of their targets.
        columns: The columns to use as numbers.
    """
    train = parts["train"]
    target = target_column(train, target, columns)
    names = tuple(class_names) if class_names else class_names_of(train, target)
    if not columns or text is not None:
        text = text_column(train, target, text)
        columns = feature_names(train, target) if text is None else ()
    kind: Kind = "table" if text is None else "text"
    splits = {}
    for role, table in parts.items():
        texts = None if text is None else sentences(table, text)
        inputs = features(table, columns) if texts is None else tokens(texts)
        splits[role] = Split(inputs, targets_of(table, target, names), names, sentences=texts)
    return Source(kind, columns=tuple(columns), groups=None, **splits)


# -------------------------------------------------------------------------------- targets


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
        names.sort(key=int)
        warn_of_gaps(list(map(int, names)), f"{table.title}, column {brief(target)!r}")
        return tuple(names)
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
    known = pa.array(class_names, pa.string())
    found = pc.index_in(labels, value_set=known)
    if found.null_count:
        found = pc.coalesce(found, pc.index_in(_whole_numbers(labels), value_set=known))
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


def _whole_numbers(labels: Any) -> Any:
    """Return labels such as 5.0 as 5, as a table of text may have them, if all are such."""
    if not pc.all(pc.match_substring_regex(labels, r"^[+-]?[0-9]+(\.0*)?$")).as_py():
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
