"""Files of rows: csv, json-lines and parquet, with text or numbers to classify."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .._printable import brief
from ..errors import require
from .columns import source_of
from .hub_schema import declared_features
from .readers import is_table_file, opened_parquet, read_rows
from .rows import Rows
from .split import Source

_ROLES = {"train": "train|training", "test": "test", "val": "val|valid|validation|dev"}
_SHARD = r"(-\d+-of-(?P<total>\d+))?"  # as the hub divides large files
_IMAGE_NAMES = ("image", "img")


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
    try:
        return _loaded(files, target, text, class_names, columns)
    except (require("pyarrow", "train").ArrowException, UnicodeDecodeError) as error:
        # Of values that Arrow cannot use, or that are no text though they should be.
        raise ValueError(f"{files['train'][0]} cannot be used ({brief(error)}).") from error


def _loaded(
    files: dict[str, list[Path]],
    target: str | None,
    text: str | None,
    class_names: Sequence[str] | None,
    columns: Sequence[str] | None,
) -> Source:
    if text is None and has_image_column(files["train"][0]):
        raise ValueError(f"{files['train'][0]} holds images, so it is no table of text or numbers.")
    parts = {
        role: Rows([(str(file), read_rows(file)) for file in found])
        for role, found in files.items()
    }
    return source_of(parts, target, text, class_names, columns)


def is_table(path: Path) -> bool:
    """Return whether `load_table` is for a path: by its name, and if it holds no images.

    Args:
        path: A file, or a folder with a file called train.
    """
    if path.is_dir():
        return bool(_named(path, "train")) and not has_image_column(path)
    return path.is_file() and is_table_file(path) and not has_image_column(path)


def has_image_column(path: str | Path) -> bool:
    """Return whether a parquet file, or that to train on in a folder, has images in a column.

    Args:
        path: The file or folder; a file of another kind has none.
    """
    path = Path(path)
    if path.is_dir():
        return any(has_image_column(file) for file in _named(path, "train")[:1])
    if path.suffix.lower() != ".parquet":
        return False
    schema = opened_parquet(path).schema_arrow
    features = declared_features(schema)
    return any(_is_image(field, features.get(field.name)) for field in schema)


def _is_image(field: Any, feature: Any) -> bool:
    types = require("pyarrow", "train").types
    if feature is not None and feature.get("_type") == "Image":
        return True
    if types.is_struct(field.type):
        inner = {child.name: child.type for child in field.type}
        return set(inner) == {"bytes", "path"} and types.is_binary(inner["bytes"])
    return bool(types.is_binary(field.type)) and field.name.lower() in _IMAGE_NAMES


def table_files(path: Path) -> dict[str, list[Path]]:
    """Return the files of each role, train, test and val, that there are.

    Args:
        path: A folder; or a file, beside which only files of its own kind count.
    """
    if path.is_dir():
        files = {role: _named(path, role) for role in _ROLES}
        if not files["train"]:
            raise FileNotFoundError(f"{path} holds no train.csv, .tsv, .jsonl, .json or .parquet.")
    elif not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    else:
        files = {"train": [path]}
        if _role(path) == "train":
            kind = _kind(path)
            beside = {role: _named(path.parent, role, kind) for role in ("test", "val")}
            files |= beside
    return {role: found for role, found in files.items() if found}


def _named(folder: Path, role: str, kind: str | None = None) -> list[Path]:
    """Return the files of a role in a folder, in order."""
    files = sorted(file for file in folder.iterdir() if _role(file) == role and is_table_file(file))
    files = [file for file in files if kind is None or _kind(file) == kind]
    totals = {_shards(file) for file in files}
    if len(totals) > 1 or (totals == {1} and len(files) > 1):
        raise ValueError(
            f"{folder} holds both {files[0].name} and {files[-1].name}; name the file to use, or "
            f"remove one."
        )
    if totals and len(files) != max(totals):
        raise FileNotFoundError(
            f"{folder} holds {len(files)} of the {max(totals)} files that {files[0].name} is one "
            f"of; download the others."
        )
    return files


def _stem(path: Path) -> str:
    return path.name.partition(".")[0].lower()


def _kind(path: Path) -> str:
    return path.name.partition(".")[2].lower()


def _role(path: Path) -> str | None:
    matches = (
        role for role, names in _ROLES.items() if re.fullmatch(f"({names}){_SHARD}", _stem(path))
    )
    return next(matches, None)


def _shards(path: Path) -> int:
    """Return how many files a file is one of."""
    total = re.search(_SHARD + "$", _stem(path))
    return int(total["total"] or 1) if total else 1
