"""From the columns of tables to samples: text or numbers, and their classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from .._printable import brief
from .features import MOST_CATEGORIES, features, is_numeric, is_words, layout_of, words_of
from .labels import class_names_of, target_column, targets_of
from .rows import Rows
from .split import Source, Split
from .text import tokens

TEXT_NAMES = (
    *("text", "sentence", "utterance", "query", "question", "review"),
    *("content", "message", "comment", "tweet", "headline", "document"),
)
"""What a column of text is usually called."""


def source_of(
    parts: Mapping[str, Rows],
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
            `coarse2fine.data.labels.TARGET_NAMES`, else the last.
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

    def split(rows: Rows) -> Split:
        inputs = features(rows, layout) if text is None else _tokens(rows, text)
        return Split(inputs, targets_of(rows, target, names), names)

    splits = {role: split(rows) for role, rows in parts.items()}
    kind: Any = "table" if text is None else "text"
    return Source(kind, splits["train"], splits.get("test"), splits.get("val"), layout)


def other_columns(rows: Rows, columns: Sequence[str]) -> list[str]:
    """Return the columns that cannot be the target: the text's, and those in use.

    Args:
        rows: The table to train on.
        columns: The columns in use, as an earlier `Source` has them.
    """
    return [
        name
        for name in rows.names
        if name.lower() in TEXT_NAMES
        or name in columns
        or any(item.startswith(f"{name}=") for item in columns)
    ]


def text_column(rows: Rows, target: str, text: str | None) -> str | None:
    """Return the column of the text, None where there is none.

    Args:
        rows: The table to train on.
        target: The column of the classes.
        text: The column, or None to look for it.
    """
    if text is not None:
        if text == target:
            raise ValueError(f"{rows.title}: the column {text!r} cannot be text and target both.")
        rows.column(text)
        return text
    others = [name for name in rows.names if name != target]
    words = [name for name in others if is_words(rows, name) and not is_numeric(rows, name)]
    by_name = {name.lower(): name for name in reversed(words)}
    known = [by_name[name] for name in TEXT_NAMES if name in by_name]
    if known:
        return known[0]
    is_text = len(words) == 1 and (len(others) == 1 or not _has_categories(rows, words[0]))
    return words[0] if is_text else None


def _has_categories(rows: Rows, name: str) -> bool:
    """Return whether the words of a column are few, and come again and again."""
    different = len(words_of(rows, name).unique())
    return different <= min(MOST_CATEGORIES, len(rows) // 2)


def _layout(rows: Rows, target: str) -> tuple[str, ...]:
    names = [name for name in rows.names if name != target]
    if not names:
        raise ValueError(f"{rows.title} has no column but the target, {brief(target)!r}.")
    return layout_of(rows, names)


def _tokens(rows: Rows, text: str) -> Tensor:
    values = rows.column(text)
    if not is_words(rows, text):
        raise ValueError(
            f"{rows.title}: the column {brief(text)!r} holds {brief(values.type)}, no text."
        )
    missing = rows.first_place(values.is_null())
    if missing:
        raise ValueError(
            f"{missing}: the text, in the column {brief(text)!r}, is missing; fill it in or "
            f"remove the row."
        )
    return tokens(values.to_pylist())
