"""Read the matrix of a file: class vectors, distances or a confusion matrix, with names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from .._util.arrays import Array, to_floats
from .._util.tables import csv_rows
from .._util.text import brief

MATRICES = (".npy", ".npz", ".csv")
Names = Sequence[str] | None


def read_matrix(path: Path) -> tuple[Array, Names]:
    """Return the matrix of a .npy, .npz or .csv file, and the names of the classes, if it has some.

    Args:
        path: Of the file. A csv may have a header, and a column of names.
    """
    if path.suffix.lower() == ".csv":
        return _read_csv_matrix(path)
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            arrays = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except Exception as error:  # broken data leads numpy and zipfile to raise whatever
        raise ValueError(f"{path}: not readable as an array of numpy: {brief(error)}") from None
    numbers = {n: a for n, a in arrays.items() if a.ndim == 2 and a.dtype.kind in "fiub"}
    if len(numbers) != 1:
        shapes = ", ".join(f"{n} {a.dtype} {a.shape}".strip() for n, a in arrays.items())
        found = brief(shapes) or "nothing"
        raise ValueError(f"{path} must hold one matrix of numbers. Got {found}.")
    (matrix,) = numbers.values()
    names = [a for a in arrays.values() if a.dtype.kind == "U" and a.shape == (len(matrix),)]
    try:
        floats = to_floats(matrix, str(path))
    except TypeError as error:
        raise ValueError(str(error)) from None
    return floats, names[0].tolist() if len(names) == 1 else None


def _read_csv_matrix(path: Path) -> tuple[Array, Names]:
    """Return the matrix of a CSV file, with or without a header and a column of names."""
    rows = list(read_rows(path))
    header = rows.pop(0) if rows and _is_header(rows[0], rows[1:]) else []
    index: list[str] = []
    if header[:1] == [""] or any(not _is_number(row[0]) for row in rows):
        index = [row.pop(0) for row in rows]
    try:
        matrix = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError as error:
        raise ValueError(
            f"{path}: neither a matrix of numbers ({brief(error)}) nor a taxonomy with the columns "
            f"parent and child, or coarse_label and fine_label."
        ) from None
    if matrix.ndim != 2:
        raise ValueError(f"{path} holds no rows of numbers.")
    if not index and len(header) == len(matrix):
        index = header
    return matrix, None if all(map(_is_number, index)) else index


def read_rows(path: Path) -> Iterable[list[str]]:
    """Yield the cells of each row of a csv file.

    Args:
        path: Of the file, which errors name.
    """
    try:
        yield from (cells for _, cells in csv_rows(path))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _is_header(first: list[str], rows: list[list[str]]) -> bool:
    """Whether the first row names columns, rather than being a class with its numbers."""
    if len(first) > 1 and not any(map(_is_number, first[1:])):
        return True
    corner = first[0]
    return not corner or (not _is_number(corner) and all(_is_number(row[0]) for row in rows))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
