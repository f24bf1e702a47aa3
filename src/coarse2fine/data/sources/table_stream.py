"""Tables read a part at a time, so that a file of any length takes the same memory."""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from ..._util.files import check_is_file
from ..._util.text import first_line
from ...errors import require
from .parquet import opened_parquet
from .table_files import is_table_file
from .table_reader import (
    Table,
    arrow_csv,
    check_header,
    check_object,
    checked_columns,
    csv_options,
    delimiter_of,
    parsed_json,
    read_arrow,
    table_of_objects,
    wrong_cells,
)

pa = require("pyarrow", "train")

OnFault = Callable[[str, Exception], None]
"""Told the name of a sample that is at fault, and what is wrong with it."""

_BLOCK = 1 << 20  # bytes of a csv file that are read at once; the longest row there can be
_SAMPLE = 1 << 16  # bytes, by which a delimiter is told
_BUFFER = 1 << 16  # bytes of each column of a parquet file that are read at once


class TablePart(Table):
    """Some rows of a longer table, which know their numbers in it.

    Args:
        title: What the table is called.
        arrow: The rows, as a `pyarrow.Table`.
        numbers: Of the rows, counted from 1.
    """

    def __init__(self, title: str, arrow: Any, numbers: Sequence[int]) -> None:
        super().__init__([(title, arrow)])
        self.numbers = numbers

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0 in this part."""
        return f"{self.title}, row {self.numbers[row]}"

    def places(self) -> list[str]:
        """Return what to call each row."""
        return [f"{self.title}, row {number}" for number in self.numbers]

    def cut(self, start: int, stop: int) -> TablePart:
        """Return the rows from `start` to before `stop`."""
        rows = self.arrow.slice(start, stop - start)
        return TablePart(self.title, rows, self.numbers[start:stop])

    def parts(self, rows: int) -> Iterator[TablePart]:
        """Yield the rows in parts of so many at most."""
        for start in range(0, len(self), rows):
            yield self.cut(start, min(start + rows, len(self)))


def stream_table(path: Path, rows: int, on_fault: OnFault | None = None) -> Iterator[TablePart]:
    """Yield a csv, json-lines or parquet file in parts.

    It is read as `read_arrow` does it, but not as a whole; a .json file that holds a list is.

    Args:
        path: The file.
        rows: How many a part has at most.
        on_fault: Told of each row that cannot be parsed, which is then left out. Defaults to
            None: it is an error.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read.
    """
    if not is_table_file(path):
        raise ValueError(f"{path} is no csv, tsv, json, jsonl, ndjson or parquet file.")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}.")
    check_is_file(path)
    kind = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    read = {"parquet": _from_parquet, "csv": _from_csv, "tsv": _from_csv}.get(kind, _from_json)
    count = 0
    for part in read(path, rows, on_fault):
        count += len(part)
        yield from part.parts(rows)
    if not count:
        raise ValueError(f"{path} has no rows that can be used.")


def _from_parquet(path: Path, rows: int, _: OnFault | None) -> Iterator[TablePart]:
    first = 1
    with opened_parquet(path, buffer_size=_BUFFER) as parquet:
        for batch in parquet.iter_batches(batch_size=rows):
            numbers = range(first, first + batch.num_rows)
            first += batch.num_rows
            if batch.num_rows:
                yield TablePart(
                    str(path), checked_columns(path, pa.Table.from_batches([batch])), numbers
                )


def _from_csv(path: Path, _: int, on_fault: OnFault | None) -> Iterator[TablePart]:
    with _unpacked(path) as file:
        delimiter = delimiter_of(file.read(_SAMPLE))
    unfit: list[int] = []

    def note(row: Any) -> str:
        unfit.append(row.number - 1)
        if on_fault is not None:
            on_fault(f"{path}, row {row.number - 1}", wrong_cells(path, row, delimiter))
            return "skip"
        faults.append(wrong_cells(path, row, delimiter))
        return "error"

    faults: list[ValueError] = []
    numbers = _numbered(unfit)
    try:
        with _unpacked(path) as file:
            for batch in arrow_csv.open_csv(file, *csv_options(delimiter, note, _BLOCK)):
                check_header(path, batch.schema.names)
                own = list(islice(numbers, batch.num_rows))
                if own:
                    table = pa.Table.from_batches([batch])
                    yield TablePart(str(path), checked_columns(path, table), own)
    except (pa.ArrowException, UnicodeDecodeError, EOFError, zlib.error) as error:
        for fault in faults:
            raise fault from None
        raise ValueError(f"{path} cannot be read as csv ({first_line(error)}).") from None


def _numbered(left_out: Sequence[int]) -> Iterator[int]:
    """Yield the numbers of rows from 1 on, but those that by then are known to be left out."""
    number = place = 0
    while True:
        number += 1
        if place < len(left_out) and left_out[place] == number:
            place += 1
        else:
            yield number


def _from_json(path: Path, rows: int, on_fault: OnFault | None) -> Iterator[TablePart]:
    with _unpacked(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="\n")
        try:
            if _first_character(text) == "[":
                whole = read_arrow(path)
                yield TablePart(str(path), whole, range(1, whole.num_rows + 1))
                return
            parsed = _parsed_lines(path, text, on_fault)
            while found := list(islice(parsed, rows)):
                table = checked_columns(path, table_of_objects([row for _, row in found]))
                yield TablePart(str(path), table, [number for number, _ in found])
        except (UnicodeDecodeError, EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{path} cannot be read ({first_line(error)}).") from None


def _parsed_lines(
    path: Path, lines: Iterable[str], on_fault: OnFault | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate((line for line in lines if line.strip()), 1):
        name = f"{path}, row {number}"
        try:
            row = parsed_json(line, name)
            check_object(row, name)
        except ValueError as error:
            if on_fault is None:
                raise
            on_fault(name, error)
            continue
        yield number, row


def _first_character(text: TextIO) -> str:
    """Return what a file begins with, space aside, and go back to its start."""
    found = re.search(r"\S", text.read(1 << 10))
    text.seek(0)
    return found[0] if found else ""


def _unpacked(path: Path) -> Any:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")
