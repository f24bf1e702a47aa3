"""The samples in files and folders, a few at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, groupby, islice
from pathlib import Path
from typing import Any

import numpy as np

from ..data.sources.image_sources import EXTENSIONS
from ..data.sources.parquet import image_column, opened_parquet
from ..data.sources.table_files import is_table_file
from .chunks import FAULTS, Chunk, OnFault, grouped
from .preprocessing import Preprocessing, wrong_kind

_SORTED = 10_000  # files of a folder that are sorted at once; a folder may hold millions


def file_chunks(
    paths: Iterable[Path],
    preprocessing: Preprocessing,
    size: int,
    on_fault: OnFault | None = None,
) -> Iterator[Chunk]:
    """Yield the samples in files and folders.

    For images these are image files, folders of them, which are looked through at all depths,
    and parquet files with a column of images; for text and tables csv, json-lines and parquet
    files; for text also .txt files of one sentence a line; and .npy files of one sample a row.

    Args:
        paths: The files and folders.
        preprocessing: Of the model.
        size: How many samples a chunk has at most.
        on_fault: Told of each file and row that cannot be read, which is then left out.
            Defaults to None: it is an error.
    """
    for is_image, some in groupby(paths, partial(_is_image, preprocessing)):
        if is_image:  # of several files in one chunk
            found = (_images(path, preprocessing, on_fault) for path in some)
            yield from grouped(chain.from_iterable(found), size)
        else:
            for path in some:
                read = partial(_row_chunks, path, preprocessing, size, on_fault)
                yield from _tolerant(str(path), read, on_fault)


def _is_image(preprocessing: Preprocessing, path: Path) -> bool:
    return preprocessing.kind == "image" and path.suffix.lower() != ".npy"


def _tolerant(
    name: str, read: Callable[[], Iterator[Any]], on_fault: OnFault | None
) -> Iterator[Any]:
    """Yield what is read; what is wrong with the whole of it is told where that is asked for."""
    try:
        yield from read()
    except FAULTS as error:
        if on_fault is None:
            raise
        on_fault(name, error)


def _row_chunks(
    path: Path, preprocessing: Preprocessing, size: int, on_fault: OnFault | None
) -> Iterator[Chunk]:
    if path.suffix.lower() == ".npy":
        yield from _array_chunks(path, size)
    elif path.suffix.lower() == ".txt" and preprocessing.kind == "text":
        with path.open(encoding="utf-8-sig") as lines:
            yield from line_chunks(lines, size)
    else:
        if path.exists() and not is_table_file(path):
            raise wrong_kind(f"the {'folder' if path.is_dir() else 'file'} {path}", preprocessing)
        from ..data.sources.table_stream import stream_table
        from .tables import table_chunks

        parts = stream_table(path, size, on_fault)
        is_regular = "json" not in path.name.lower()
        yield from table_chunks(parts, preprocessing, is_regular=is_regular)


def line_chunks(lines: Iterable[str], size: int) -> Iterator[Chunk]:
    """Yield sentences, one a line, which are their own names."""
    stripped = (line.rstrip("\r\n") for line in lines)
    return grouped(((line, line) for line in stripped), size)


def _array_chunks(path: Path, size: int) -> Iterator[Chunk]:
    array, title = _opened_array(path), str(path)
    for start in range(0, len(array), size):
        rows = np.array(array[start : start + size])  # a copy, as the file is only mapped
        yield Chunk([f"{title}, row {start + row + 1}" for row in range(len(rows))], rows)


def _opened_array(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as an array of numpy ({error}).") from None
    if not array.ndim:
        raise ValueError(f"{path} holds a single number; it must hold one sample a row.")
    return array


# -------------------------------------------------------------------------------- images


def _images(
    path: Path, preprocessing: Preprocessing, on_fault: OnFault | None
) -> Iterator[tuple[str, Any]]:
    """Yield the images of a file or folder by their names."""
    read: Callable[[], Iterator[Any]] = partial(_one, path, preprocessing)
    if path.is_dir():
        read = partial(_folder_images, path, preprocessing)
    elif path.suffix.lower() == ".parquet":
        read = partial(_parquet_images, path, preprocessing, on_fault)
    return _tolerant(str(path), read, on_fault)


def _one(path: Path, preprocessing: Preprocessing) -> Iterator[tuple[str, Path]]:
    if path.exists() and is_table_file(path):
        raise wrong_kind(f"the file {path}", preprocessing)
    yield str(path), path


def _folder_images(folder: Path, preprocessing: Preprocessing) -> Iterator[tuple[str, Path]]:
    path = None
    for path in folder_files(folder):
        yield str(path), path
    if path is None:
        raise ValueError(f"{folder} holds no image; the model takes {preprocessing.wanted}.")


def folder_files(folder: Path, seen: set[Path] | None = None) -> Iterator[Path]:
    """Yield the image files in a folder and in all folders within, sorted as far as can be.

    A folder of any number of files takes the same memory: of more than 10,000, each 10,000 are
    sorted by themselves.

    Args:
        folder: Where to look; hidden files and folders are left out.
        seen: The folders that were looked into, as links may lead in circles. Defaults to
            None: none yet.
    """
    seen = set() if seen is None else seen
    seen.add(folder.resolve())
    with os.scandir(folder) as entries:
        visible = (entry for entry in entries if not entry.name.startswith("."))
        while found := sorted(islice(visible, _SORTED), key=lambda entry: entry.name):
            for entry in found:
                path = folder / entry.name
                if not entry.is_file(follow_symlinks=False) and path.is_dir():
                    if path.resolve() not in seen:
                        yield from folder_files(path, seen)
                elif entry.name.lower().endswith(EXTENSIONS):
                    yield path


def _parquet_images(
    path: Path, preprocessing: Preprocessing, on_fault: OnFault | None
) -> Iterator[tuple[str, Any]]:
    number = 0
    with opened_parquet(path, buffer_size=1 << 16) as parquet:
        column = image_column(parquet.schema_arrow)
        if column is None:
            raise wrong_kind(f"the file {path} without a column of images", preprocessing)
        for batch in parquet.iter_batches(batch_size=64, columns=[column]):
            for value in batch.column(0).to_pylist():
                number += 1
                name = f"{path}, row {number}"
                encoded = value["bytes"] if isinstance(value, dict) else value
                if encoded is None:
                    fault = ValueError(f"{name} holds no image; remove the row.")
                    if on_fault is None:
                        raise fault
                    on_fault(name, fault)
                else:
                    yield name, encoded
