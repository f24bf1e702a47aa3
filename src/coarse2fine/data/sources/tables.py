"""Tables to classify: which column is what, and the samples and classes that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..._util.text import brief
from ...errors import require
from ..split import Kind, Source, Split
from .features import feature_names, features, sentences, text_column
from .parquet import has_image_column
from .table_files import table_files
from .table_labels import Target, labels_of
from .table_reader import Table, read_arrow
from .text import tokens
from .trees import GivenTree

pa = require("pyarrow", "train")


def load_table(
    path: str | Path,
    *,
    target: Target = None,
    text: str | None = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    tree: GivenTree | None = None,
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
        tree: Whose clusters labels may name too. Defaults to None.

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
        return table_source(parts, target, text, class_names, columns, tree)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        # Of values that Arrow cannot use, or that are no text though they should be.
        raise ValueError(f"{first} cannot be used ({brief(error)}).") from error


def table_source(
    parts: Mapping[str, Table],
    target: Target = None,
    text: str | None = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    tree: GivenTree | None = None,
) -> Source:
    """Return the samples that tables hold.

    Args:
        parts: The table to train on as ``"train"`` and, where there are such, those to test
            and to validate on as ``"test"`` and ``"val"``.
        target: As for `load_table`, as are the others.
        text: The column of the text.
        class_names: The classes in the order of their targets.
        columns: The columns to use as numbers.
        tree: Whose clusters labels may name too. Defaults to None.
    """
    train = parts["train"]
    labels = labels_of(parts, target, class_names, columns, tree=tree)
    if not columns or text is not None:
        text = text_column(train, labels.columns, text)
        columns = feature_names(train, labels.columns) if text is None else ()
    kind: Kind = "table" if text is None else "text"
    splits = {}
    for role, table in parts.items():
        texts = None if text is None else sentences(table, text)
        inputs = features(table, columns) if texts is None else tokens(texts)
        targets, tree_made = labels.targets[role], labels.hierarchy
        splits[role] = Split(
            inputs, targets, labels.class_names, sentences=texts, hierarchy=tree_made
        )
    return Source(kind, columns=tuple(columns), groups=None, **splits)
