"""Tables of text or numbers to classify: which column is what, and what they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from ..._util.text import brief
from ...errors import require
from ..split import Source, Split
from .features import MOST_CATEGORIES, features, is_numeric, is_words, layout_of, words_of
from .labels import class_names_of, target_column, targets_of
from .table_files import has_image_column, table_files
from .table_reader import Table, read_arrow
from .text import tokens

pa = require("pyarrow", "train")

TEXT_NAMES = (
    *("text", "sentence", "utterance", "query", "question", "review"),
    *("content", "message", "comment", "tweet", "headline", "document"),
)
"""What a column of text is usually called."""


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

    Labels are words, sorted, or integers, in their order. Columns of words that are not the
    text are categories, of which each becomes a column of zeros and ones; a category that
    was not seen in training is zero in all.

    Args:
        path: The file or folder.
        target: The column of the classes. Defaults to None: one called label, target,
            class, category, intent, y or the like; else the last.
        text: The column of the text. Defaults to None: one called text, sentence,
            utterance, query, question, review or the like; else the only column of words,
            if those are no categories.
        class_names: The classes in the order of their targets, for another file of a known
            set. Defaults to None: the labels to train on.
        columns: The columns to use as numbers, in this order, for another file of a known
            set; `Source.columns` of the first. Defaults to None: all but the target.

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
        target: The column of the classes. Defaults to None: one that is called like
            `coarse2fine.data.sources.labels.TARGET_NAMES`, else the last.
        text: The column of the text. Defaults to None: one that is called like
            `TEXT_NAMES`, else the only column of strings, if they are no categories.
        class_names: The classes in the order of their targets. Defaults to None: those of
            the table to train on.
        columns: The columns to use as numbers, as an earlier `Source` has them. Defaults to
            None: all but the target.
    """
    train = parts["train"]
    target = target_column(train, target, others=other_columns(train, columns or ()))
    names = tuple(class_names) if class_names else class_names_of(train, target)
    if columns and text is None:
        layout = tuple(columns)
    else:
        text = text_column(train, target, text)
        layout = () if text is not None else _layout(train, target)

    def split(table: Table) -> Split:
        inputs = features(table, layout) if text is None else _tokens(table, text)
        return Split(inputs, targets_of(table, target, names), names)

    splits = {role: split(table) for role, table in parts.items()}
    kind: Any = "table" if text is None else "text"
    return Source(kind, splits["train"], splits.get("test"), splits.get("val"), layout)


def other_columns(table: Table, columns: Sequence[str]) -> list[str]:
    """Return the columns that cannot be the target: the text's, and those in use.

    Args:
        table: The table to train on.
        columns: The columns in use, as an earlier `Source` has them.
    """
    return [
        name
        for name in table.names
        if name.lower() in TEXT_NAMES
        or name in columns
        or any(item.startswith(f"{name}=") for item in columns)
    ]


def text_column(table: Table, target: str, text: str | None) -> str | None:
    """Return the column of the text, None where there is none.

    Args:
        table: The table to train on.
        target: The column of the classes.
        text: The column, or None to look for it.
    """
    if text is not None:
        if text == target:
            raise ValueError(f"{table.title}: the column {text!r} cannot be text and target both.")
        table.column(text)
        return text
    others = [name for name in table.names if name != target]
    words = [name for name in others if is_words(table, name) and not is_numeric(table, name)]
    by_name = {name.lower(): name for name in reversed(words)}
    known = [by_name[name] for name in TEXT_NAMES if name in by_name]
    if known:
        return known[0]
    is_text = len(words) == 1 and (len(others) == 1 or not _has_categories(table, words[0]))
    return words[0] if is_text else None


def _has_categories(table: Table, name: str) -> bool:
    """Return whether the words of a column are few, and come again and again."""
    different = len(words_of(table, name).unique())
    return different <= min(MOST_CATEGORIES, len(table) // 2)


def _layout(table: Table, target: str) -> tuple[str, ...]:
    names = [name for name in table.names if name != target]
    if not names:
        raise ValueError(f"{table.title} has no column but the target, {brief(target)!r}.")
    return layout_of(table, names)


def _tokens(table: Table, text: str) -> Tensor:
    values = table.column(text)
    if not is_words(table, text):
        raise ValueError(
            f"{table.title}: the column {brief(text)!r} holds {brief(values.type)}, no text."
        )
    missing = table.first_place(values.is_null())
    if missing:
        raise ValueError(
            f"{missing}: the text, in the column {brief(text)!r}, is missing; fill it in or "
            f"remove the row."
        )
    return tokens(values.to_pylist())
