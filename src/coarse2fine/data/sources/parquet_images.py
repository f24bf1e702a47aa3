"""Images in parquet files with labels: as the hub has them, or in columns of several depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from ..._util.arrays import IntArray
from ..split import Source, Split, check_class_indices
from .images import decode_all
from .labels import are_indices, numbered_classes, numbers_named, places_of
from .parquet import ParquetImages, column_of, opened_parquet, read_parquet_images
from .table_files import table_files
from .table_labels import labels_of
from .table_reader import Table

_MOST_NUMBERED = 1_000_000  # classes, of which only the numbers are known


def load_parquet_images(
    path: Path,
    image_size: int | None = None,
    target: str | Sequence[str] | None = None,
    class_names: Sequence[str] | None = None,
) -> Source:
    """Load parquet files with a column of images and one of integer labels, as the hub has them.

    Args:
        path: A file or a folder.
        image_size: The height and width to bring the images to. Defaults to None: as they are.
        target: The column of labels, or several, the coarsest first. Defaults to None: see
            `read_parquet_images`.
        class_names: The classes in the order of their labels. Defaults to None: as declared,
            else their numbers.
    """
    size = None if image_size is None else (image_size, image_size)
    files = table_files(path)
    if target is not None and not isinstance(target, str):
        return _with_columns_of_labels(files, size, target, class_names)
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


def _with_columns_of_labels(
    files: Mapping[str, Sequence[Path]],
    size: tuple[int, int] | None,
    columns: Sequence[str],
    class_names: Sequence[str] | None,
) -> Source:
    """Return images with labels of several depths, each in a column of its own."""

    def table(found: Sequence[Path]) -> Table:
        pieces = []
        for file in found:
            with opened_parquet(file) as parquet:
                there = [column_of(parquet, name, (), file) for name in columns]
                pieces.append((str(file), parquet.read(there)))
        return Table(pieces)

    labels = labels_of({role: table(found) for role, found in files.items()}, columns, class_names)
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
