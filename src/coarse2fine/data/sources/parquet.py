"""Parquet files, and images and labels in them as the Hugging Face hub keeps them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._util.arrays import IntArray
from ..._util.files import check_is_file
from ..._util.text import brief, first_line
from ...errors import require
from ..split import Source, Split, check_class_indices
from .images import decode_all
from .labels import are_indices, numbered_classes, numbers_named, places_of
from .table_files import files_of, is_table_file, table_files

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label", "coarse_label")
_MOST_NUMBERED = 1_000_000  # classes, of which only the numbers are known


@contextmanager
def opened_parquet(file: Path, buffer_size: int = 0) -> Iterator[Any]:
    """Provide a file as `pyarrow.parquet.ParquetFile`.

    Args:
        file: The file. What goes wrong while it is open is a ValueError that names it.
        buffer_size: How many bytes of a column are read at once. Defaults to 0: all that
            belong to a row group.
    """
    arrow = require("pyarrow", "train")
    check_is_file(file)
    with file.open("rb") as stream:
        try:
            yield require("pyarrow.parquet", "train").ParquetFile(stream, buffer_size=buffer_size)
        except (arrow.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{file} cannot be read as parquet ({first_line(error)}); download it again or "
                f"write it anew."
            ) from error


# --------------------------------------------------------------------------------- schemas


def declared_features(schema: Any) -> dict[str, dict[str, Any]]:
    """Return what the hub's library declares of each column: its type, the names of its classes.

    Args:
        schema: An Arrow schema. One that the hub's library did not write declares nothing.
    """
    written = (schema.metadata or {}).get(b"huggingface", b"{}")
    try:
        features = json.loads(written)["info"]["features"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    if not isinstance(features, dict):
        return {}
    return {name: feature for name, feature in features.items() if isinstance(feature, dict)}


def declared_names(schema: Any, column: str) -> tuple[str, ...] | None:
    """Return the names of the classes in a column, None where they are not declared."""
    names = declared_features(schema).get(column, {}).get("names")
    return tuple(map(str, names)) if isinstance(names, list) and names else None


def is_table(path: Path) -> bool:
    """Return whether a path is a table of text or numbers: by its name, and if it has no images.

    Args:
        path: A file, or a folder with a file called train.
    """
    if path.is_dir():
        return bool(files_of(path, "train")) and not has_image_column(path)
    return path.is_file() and is_table_file(path) and not has_image_column(path)


def has_image_column(path: Path) -> bool:
    """Return whether a parquet file, or that to train on in a folder, has images in a column.

    Args:
        path: The file or folder; a file of another kind has none.
    """
    files = files_of(path, "train")[:1] if path.is_dir() else [path]
    if not files or files[0].suffix.lower() != ".parquet":
        return False
    with opened_parquet(files[0]) as parquet:
        return image_column(parquet.schema_arrow) is not None


def image_column(schema: Any) -> str | None:
    """Return the first column of images of an Arrow schema, None where there is none."""
    features = declared_features(schema)
    found = (field.name for field in schema if _is_image(field, features.get(field.name, {})))
    return next(found, None)


def _is_image(field: Any, feature: dict[str, Any]) -> bool:
    types = require("pyarrow", "train").types
    if feature.get("_type") == "Image":
        return True
    if types.is_struct(field.type):
        inner = {child.name: child.type for child in field.type}
        return set(inner) == {"bytes", "path"} and types.is_binary(inner["bytes"])
    return bool(types.is_binary(field.type)) and field.name.lower() in IMAGE_COLUMNS


def _column(parquet: Any, column: str | None, usual: Sequence[str], file: Path) -> str:
    there = parquet.schema_arrow.names
    wanted = usual if column is None else (column,)
    for name in wanted:
        if name in there:
            return name
    raise ValueError(
        f"{file} has no column {brief(' or '.join(wanted))}; it has {brief(', '.join(there))}."
    )


# ---------------------------------------------------------------------- images and labels


def load_parquet_images(
    path: Path,
    image_size: int | None = None,
    target: str | None = None,
    class_names: Sequence[str] | None = None,
) -> Source:
    """Load parquet files with a column of images and one of integer labels, as the hub has them.

    Args:
        path: A file or a folder.
        image_size: The height and width to bring the images to. Defaults to None: as they are.
        target: The column of labels. Defaults to None: see `read_parquet_images`.
        class_names: The classes in the order of their labels. Defaults to None: as declared,
            else their numbers.
    """
    size = None if image_size is None else (image_size, image_size)
    files = table_files(path)
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


def _numbers(labels: Mapping[str, IntArray], file: Path) -> IntArray:
    """Return the integers that are classes, where the files name none."""
    train = labels["train"]
    if train.max() >= _MOST_NUMBERED:
        raise ValueError(f"{file} has the label {train.max()}; number the classes from 0 on.")
    others = [part for role, part in labels.items() if role != "train"]
    return numbered_classes(train, others, str(file))


def read_parquet_images(
    files: Sequence[Path],
    image_column: str | None = None,
    label_column: str | None = None,
    size: tuple[int, int] | None = None,
) -> tuple[Tensor, Tensor, tuple[str, ...] | None]:
    """Return the images (N, 3, height, width), their labels and the names of the classes.

    Args:
        files: The parquet files, in order.
        image_column: The column of encoded images. Defaults to None: img or image.
        label_column: The column of labels. Defaults to None: label, labels, fine_label or
            coarse_label, the first there is.
        size: The height and width to bring the images to. Defaults to None: as they are.

    Returns:
        The third part is None where the files' schema names no classes.
    """
    images = ParquetImages(files, image_column)
    if not len(images):
        raise ValueError(f"{files[0]} has no rows.")
    labels, class_names = read_parquet_labels(files, label_column)
    images.load()
    if len(images) != len(labels):
        raise ValueError(
            f"{files[0]} has {len(images)} images and {len(labels)} labels; download it again."
        )
    return decode_all(images, size), labels, class_names


def read_parquet_labels(
    files: Sequence[Path], column: str | None = None
) -> tuple[Tensor, tuple[str, ...] | None]:
    """Return the labels of all rows, and the names of the classes where the schema has them.

    Args:
        files: The parquet files, in order.
        column: Defaults to None: label, labels, fine_label or coarse_label.
    """
    parts = []
    for file in files:
        with opened_parquet(file) as parquet:
            column = _column(parquet, column, LABEL_COLUMNS, file)
            values = parquet.read([column])[column]
            values = _whole(values)
            if not require("pyarrow", "train").types.is_integer(values.type) or values.null_count:
                raise ValueError(
                    f"{file}: the column {column} must hold an integer in each row. Got "
                    f"{values.type}, missing in {values.null_count} rows."
                )
            parts.append(values.to_numpy().astype(np.int64))
            class_names = declared_names(parquet.schema_arrow, column)
            if class_names is not None:
                check_class_indices(parts[-1], len(class_names), str(file))
    return torch.from_numpy(np.concatenate(parts)), class_names


def _whole(values: Any) -> Any:
    """Return floats as integers where all of them are whole, and any others as they are."""
    arrow, compute = require("pyarrow", "train"), require("pyarrow.compute", "train")
    if not arrow.types.is_floating(values.type):
        return values
    is_whole = compute.all(compute.equal(values, compute.trunc(values))).as_py()
    return values.cast(arrow.int64()) if is_whole else values


class ParquetImages:
    """Encoded images in parquet files, read when asked for, a row group at a time.

    A process keeps the last few row groups, so rows are best asked for in order; in any
    other order a whole group is read for each, and a folder of image files is faster. The
    library `datasets` would copy all files to its cache first, which for ImageNet is 150 GB.

    Args:
        files: The parquet files, in order.
        column: The column of encoded images. Defaults to None: img or image.
    """

    def __init__(self, files: Sequence[Path], column: str | None = None) -> None:
        self.groups: list[_Group] = []
        self.loaded: list[list[bytes]] = []
        for file in files:
            with opened_parquet(file) as parquet:
                column = _column(parquet, column, IMAGE_COLUMNS, file)
                first = 0
                for number in range(parquet.num_row_groups):
                    rows = parquet.metadata.row_group(number).num_rows
                    if rows < 0:
                        raise ValueError(f"{file} claims to have {rows} rows; download it again.")
                    self.groups.append(_Group(file, column, number, first, rows))
                    first += rows
        self.starts = list(accumulate((group.rows for group in self.groups), initial=0))

    def __len__(self) -> int:
        return self.starts[-1]

    def __getitem__(self, row: int, /) -> bytes:
        place = bisect_right(self.starts, row) - 1
        encoded = self.loaded[place] if self.loaded else _encoded_and_kept(self.groups[place])
        return encoded[row - self.starts[place]]

    def name(self, row: int) -> str:
        """Return what to call a row in an error: its file, and its place there."""
        place = bisect_right(self.starts, row) - 1
        return self.groups[place].name(row - self.starts[place])

    def load(self) -> None:
        """Read all rows into memory, which processes that are forked afterwards share."""
        self.loaded = [_encoded(group) for group in self.groups]


class _Group(NamedTuple):
    """A row group: where it is, where in the file its rows begin, and how many there are."""

    file: Path
    column: str
    number: int
    first: int
    rows: int

    def name(self, row: int) -> str:
        return f"{self.file}, row {self.first + row + 1}"


def _encoded(group: _Group) -> list[bytes]:
    with opened_parquet(group.file) as parquet:
        # Arrow's threads would not be there in a process that was forked to load data.
        table = parquet.read_row_group(group.number, [group.column], use_threads=False)
        values, types = table[group.column], require("pyarrow", "train").types
        if types.is_struct(values.type):
            values = require("pyarrow.compute", "train").struct_field(values, "bytes")
        if not (types.is_binary(values.type) or types.is_large_binary(values.type)):
            raise ValueError(f"{group.file}: the column {group.column} holds no images.")
    encoded: list[bytes] = values.to_pylist()
    if len(encoded) != group.rows:  # a broken file may claim any number
        raise ValueError(
            f"{group.file} has {len(encoded)} images where it claims {group.rows}; download it "
            f"again."
        )
    if values.null_count:
        raise ValueError(
            f"{group.name(encoded.index(None))} holds no image; "  # type: ignore[arg-type]
            f"only images that are inside the parquet file can be read."
        )
    return encoded


# For each process, and not in ParquetImages, which is pickled to get to a worker.
_encoded_and_kept = lru_cache(maxsize=8)(_encoded)
