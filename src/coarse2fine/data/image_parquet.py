"""Images and labels in parquet files as the Hugging Face hub keeps them."""

from __future__ import annotations

import re
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

from .._printable import brief
from ..errors import require
from .hub_schema import declared_names
from .images import decode_all
from .split import check_labels

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label", "coarse_label")

_HUB_FOLDERS = ("data", "default", "plain_text")


def find_parquet(folder: Path, test: str) -> tuple[list[Path], list[Path]] | None:
    """Return the parquet files to train on and those to test on, each in order.

    They are ``train-*.parquet``, ``train.parquet`` or ``train/*.parquet`` in the folder or in
    one of those that the hub puts them into; None where there are none.

    Args:
        folder: Where to look.
        test: What the split to test on is called.

    Raises:
        FileNotFoundError: Some of the files are missing.
    """
    for place in (folder, *(folder / name for name in _HUB_FOLDERS)):
        train_files, test_files = _files_of(place, "train"), _files_of(place, test)
        if train_files and test_files:
            return train_files, test_files
        if train_files:
            raise FileNotFoundError(
                f"{place} holds {train_files[0].name} but no parquet files of the split {test}; "
                f"download those too."
            )
    return None


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
    encoded = [data for group in images.groups for data in _encoded(group)]
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
        with _opened(file) as parquet:
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
                check_labels(parts[-1], len(class_names), str(file))
    return torch.from_numpy(np.concatenate(parts)), class_names


class ParquetImages:
    """Encoded images in parquet files, read when asked for, a row group at a time.

    A process keeps the last few row groups, so rows are best asked for in order; in any
    other order a whole group is read for each, and a folder of image files is faster.

    Args:
        files: The parquet files, in order.
        column: The column of encoded images. Defaults to None: img or image.
    """

    def __init__(self, files: Sequence[Path], column: str | None = None) -> None:
        self.groups: list[_Group] = []
        for file in files:
            with _opened(file) as parquet:
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
    with _opened(group.file) as parquet:
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


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    arrow = require("pyarrow", "train")
    with file.open("rb") as stream:
        try:
            yield require("pyarrow.parquet", "train").ParquetFile(stream)
        except (arrow.ArrowException, OSError, OverflowError, UnicodeDecodeError) as error:
            raise ValueError(
                f"{file} cannot be read as parquet ({brief(error)}); download it again."
            ) from error


def _column(parquet: Any, column: str | None, usual: Sequence[str], file: Path) -> str:
    there = parquet.schema_arrow.names
    wanted = usual if column is None else (column,)
    for name in wanted:
        if name in there:
            return name
    raise ValueError(
        f"{file} has no column {brief(' or '.join(wanted))}; it has {brief(', '.join(there))}."
    )


def _files_of(folder: Path, split: str) -> list[Path]:
    patterns = (f"{split}-*.parquet", f"{split}.parquet", f"{split}/*.parquet")
    files = next(filter(None, (sorted(folder.glob(pattern)) for pattern in patterns)), [])
    # Where files are numbered 00000-of-00005 and so on, none may be missing.
    total = re.search(r"-of-(\d+)(-\w+)?\.parquet$", files[0].name) if files else None
    if total and len(files) != int(total[1]):
        raise FileNotFoundError(
            f"{folder} holds {len(files)} of the {int(total[1])} files that {files[0].name} is "
            f"one of; download the others."
        )
    return files
