"""Images in parquet files with labels: as the hub has them, or in columns of several depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from ..._util.arrays import IntArray
from ...errors import require
from ..split import Source, Split, check_class_indices
from .images import decode_all
from .labels import are_indices, numbered_classes, numbers_named, places_of
from .parquet import (
    LABEL_COLUMNS,
    ParquetImages,
    column_of,
    opened_parquet,
    read_parquet_images,
)
from .table_files import table_files
from .table_labels import labels_of
from .table_reader import Table
from .trees import GivenTree

_MOST_NUMBERED = 1_000_000  # classes, of which only the numbers are known


def load_parquet_images(
    path: Path,
    image_size: int | None = None,
    target: str | Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
    tree: GivenTree | None = None,
) -> Source:
    """Load parquet files with a column of images and one of labels, as the hub has them.

    Args:
        path: A file or a folder.
        image_size: The height and width to bring the images to. Defaults to None: as they are.
        target: The column of labels, or several, the coarsest first. Defaults to None: see
            `read_parquet_images`.
        class_names: The classes in the order of their labels. Defaults to None: as declared,
            else their numbers or, where labels are words, these.
        tree: Whose clusters labels may name too. Defaults to None.
    """
    size = None if image_size is None else (image_size, image_size)
    files = table_files(path)
    if target is None or isinstance(target, str):
        words = _column_of_words(files["train"][0], target)
        if words is None:
            return _with_numbers(files, size, target, class_names)
        target = words
    return _with_labels_of_tables(files, size, target, class_names, tree)


def _with_numbers(
    files: Mapping[str, Sequence[Path]],
    size: tuple[int, int] | None,
    target: str | None,
    class_names: Sequence[str] | None,
) -> Source:
    """Return images with labels that are integers."""
    parts = {
        role: read_parquet_images(found, label_column=target, size=size)
        for role, found in files.items()
    }
    labels = {role: part[1].numpy() for role, part in parts.items()}
    names = class_names or parts["train"][2]
    numbers = numbers_named(names or (), labels.values())
    if not names:
        numbers = _numbers(labels, files["train"][0])
        names = tuple(map(str, numbers))
    if numbers is not None and not are_indices(numbers):
        labels = {role: places_of(x, numbers, str(files[role][0])) for role, x in labels.items()}
    splits = {}
    for role, (images, _, _) in parts.items():
        check_class_indices(labels[role], len(names), str(files[role][0]))
        splits[role] = Split(images, torch.from_numpy(labels[role]), tuple(names))
    return Source("image", columns=(), groups=None, **splits)


def _column_of_words(file: Path, target: str | None) -> str | None:
    """Return the column of labels if these are words; None where they are numbers."""
    types = require("pyarrow", "train").types
    with opened_parquet(file) as parquet:
        column = column_of(parquet, target, LABEL_COLUMNS, file)
        kind = parquet.schema_arrow.field(column).type
    kind = kind.value_type if types.is_dictionary(kind) else kind
    return column if types.is_string(kind) or types.is_large_string(kind) else None


def _with_labels_of_tables(
    files: Mapping[str, Sequence[Path]],
    size: tuple[int, int] | None,
    target: str | Sequence[str],
    class_names: Sequence[str] | None,
    tree: GivenTree | None,
) -> Source:
    """Return images with labels that are words, or of several depths, each in a column."""
    columns = [target] if isinstance(target, str) else target

    def table(found: Sequence[Path]) -> Table:
        pieces = []
        for file in found:
            with opened_parquet(file) as parquet:
                there = [column_of(parquet, name, (), file) for name in columns]
                pieces.append((str(file), parquet.read(there)))
        return Table(pieces)

    parts = {role: table(found) for role, found in files.items()}
    labels = labels_of(parts, target, class_names, tree=tree)
    splits = {}
    for role, found in files.items():
        images = ParquetImages(found)
        images.load()
        pixels, targets = decode_all(images, size), labels.targets[role]
        splits[role] = Split(pixels, targets, labels.class_names, hierarchy=labels.hierarchy)
    return Source("image", columns=(), groups=None, **splits)


def _numbers(labels: Mapping[str, IntArray], file: Path) -> IntArray:
    """Return the integers that are classes, where the files name none."""
    train = labels["train"]
    if train.max() >= _MOST_NUMBERED:
        raise ValueError(f"{file} has the label {train.max()}; number the classes from 0 on.")
    others = [part for role, part in labels.items() if role != "train"]
    return numbered_classes(train, others, str(file))
