"""Parquet files, and images and labels in them as the Hugging Face hub keeps them."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ..._util.files import check_is_file
from ..._util.text import brief, first_line
from ...errors import require
from ..split import check_class_indices
from .images import decode_all

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label", "coarse_label")


@contextmanager
def opened_parquet(file: Path) -> Iterator[Any]:
    """Provide a file as `pyarrow.parquet.ParquetFile`.

    Args:
        file: The file. What goes wrong while it is open is a ValueError that names it.
    """
    arrow = require("pyarrow", "train")
    check_is_file(file)
    with file.open("rb") as stream:
        try:
            yield require("pyarrow.parquet", "train").ParquetFile(stream)
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


def holds_images(file: Path) -> bool:
    """Return whether a column of a parquet file holds images, by its type and its name."""
    with opened_parquet(file) as parquet:
        schema = parquet.schema_arrow
        features = declared_features(schema)
        return any(_is_image(field, features.get(field.name, {})) for field in schema)


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
    encoded = images.all_rows()
    if not len(images) == len(encoded) == len(labels):  # a broken file may claim any number
        raise ValueError(
            f"{files[0]} has {len(encoded)} images and {len(labels)} labels; download it again."
        )
    return decode_all(encoded, size, name=images.name), labels, class_names


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
        return _encoded_and_kept(self.groups[place])[row - self.starts[place]]

    def name(self, row: int) -> str:
        """Return what to call a row in an error: its file, and its place there."""
        place = bisect_right(self.starts, row) - 1
        return self.groups[place].name(row - self.starts[place])

    def all_rows(self) -> list[bytes]:
        """Return the images of all rows."""
        return [image for group in self.groups for image in _encoded(group)]


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
    if values.null_count:
        raise ValueError(
            f"{group.name(encoded.index(None))} holds no image; "  # type: ignore[arg-type]
            f"only images that are inside the parquet file can be read."
        )
    return encoded


_encoded_and_kept = lru_cache(maxsize=8)(_encoded)
