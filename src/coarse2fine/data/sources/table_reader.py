"""Files of rows as Arrow tables: csv, json-lines and parquet, with one sentence a fault."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from reprlib import repr as short
from typing import Any

from ..._util.text import brief, first_line
from ...errors import require
from .parquet import opened_parquet
from .table_files import is_table_file

pa = require("pyarrow", "train")
pc = require("pyarrow.compute", "train")
arrow_csv = require("pyarrow.csv", "train")

_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 16  # bytes, by which a delimiter is told
_BLOCK = 1 << 24  # bytes; the longest row there can be
# What pandas calls the numbers of rows; nothing is to be learned from them.
_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")


class Table:
    """One or more Arrow tables, which know what to call their rows in an error.

    Args:
        pieces: The tables, in order, each with what it is called.

    Attributes:
        arrow: All of them as one `pyarrow.Table`.
    """

    def __init__(self, pieces: Sequence[tuple[str, Any]]) -> None:
        self.titles = [title for title, _ in pieces]
        tables = [table for _, table in pieces]
        self.starts: list[int] = list(accumulate((table.num_rows for table in tables), initial=0))
        try:
            self.arrow = pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            raise ValueError(
                f"the columns of {self.titles[0]} and {self.titles[-1]} do not go together "
                f"({brief(str(error).rstrip('.'))})."
            ) from None

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def title(self) -> str:
        """What the rows together are called: the first table."""
        return self.titles[0]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.arrow.column_names
        return names

    def column(self, name: str) -> Any:
        """Return a column as a `pyarrow.ChunkedArray`, or say which there are."""
        if name not in self.names:
            raise ValueError(
                f"{self.title} has no column {brief(name)!r}; it has "
                f"{brief(', '.join(map(repr, self.names)))}."
            )
        values = self.arrow[name]
        is_encoded = pa.types.is_dictionary(values.type)
        return values.cast(values.type.value_type) if is_encoded else values

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0: its table, and its number from 1 there."""
        piece = bisect_right(self.starts, row) - 1
        return f"{self.titles[piece]}, row {row - self.starts[piece] + 1}"

    def first_place(self, mask: Any) -> str | None:
        """Return what to call the first row of which something is true.

        Args:
            mask: An Arrow array of booleans; null counts as false.
        """
        row = pc.index(mask, True).as_py()
        return None if row < 0 else self.place(row)


def column_called(usual: Sequence[str], columns: Sequence[str]) -> str | None:
    """Return the column that has the first of the usual names, in any case; None if none has."""
    by_name = {name.lower(): name for name in reversed(columns)}
    return next((by_name[name] for name in usual if name in by_name), None)


def read_arrow(path: Path) -> Any:
    """Return a csv, tsv, json, jsonl, ndjson (or .gz of these) or parquet file as an Arrow table.

    All cells of a csv file are strings, so that nothing is lost in them: ``001`` and ``NA``
    stay what they are. Row numbers as pandas writes them are left out.

    Args:
        path: The file. Of csv files the delimiter is found out: comma, semicolon, tab or |.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It cannot be read, has no rows, or two columns of one name.
    """
    if not is_table_file(path):
        raise ValueError(f"{path} is no csv, tsv, json, jsonl, ndjson or parquet file.")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix.lower() == ".parquet":
        return checked_columns(path, _from_parquet(path))
    data = _unpacked(path)
    is_json = re.search(r"\.(json|jsonl|ndjson)(\.gz)?$", path.name.lower())
    return checked_columns(path, _from_json(path, data) if is_json else _from_csv(path, data))


def _from_parquet(path: Path) -> Any:
    with opened_parquet(path) as parquet:
        _ = parquet.schema_arrow.names  # which are not decoded before they are asked for
        return parquet.read()


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be unpacked ({first_line(error)}).") from None
    if not data.strip():
        raise ValueError(f"{path} is empty; it must hold rows with their labels.")
    return data


def checked_columns(path: Path, table: Any) -> Any:
    """Return a table without row numbers, or refuse one without rows or with repeated names.

    Args:
        path: Its file.
        table: An Arrow table.
    """
    names = [name.strip() for name in table.column_names]
    table = table.rename_columns(names).replace_schema_metadata(table.schema.metadata)
    repeated = [name for name, count in Counter(names).items() if count > 1 and name]
    if repeated:
        raise ValueError(
            f"{path} has several columns called {brief(repeated[0])!r}; rename all but one, or "
            f"add a header if it has none."
        )
    if not table.num_rows:
        raise ValueError(f"{path} has the columns {brief(', '.join(names))} but no rows.")
    kept = [place for place, name in enumerate(names) if name not in _ROW_NUMBERS]
    if not kept:
        raise ValueError(f"{path} has no column that is called by a name.")
    return table.select(kept)


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}; save it as "
            f"UTF-8."
        ) from None


# ----------------------------------------------------------------------------------- csv


def _from_csv(path: Path, data: bytes) -> Any:
    if not data.endswith((b"\n", b"\r")):
        data += b"\n"  # Arrow finds no columns in a header without an end of line
    delimiter = delimiter_of(data)
    _check_quotes(path, _decoded(path, data), delimiter)
    unfit: list[Any] = []
    try:
        table = _parsed_csv(data, delimiter, unfit)
        check_header(path, table.column_names)
        return table
    except (pa.ArrowException, UnicodeDecodeError) as error:
        for row in unfit:
            raise wrong_cells(path, row, delimiter) from None
        raise ValueError(f"{path} cannot be read as csv ({first_line(error)}).") from None


def _parsed_csv(data: bytes, delimiter: str, unfit: list[Any]) -> Any:
    """Return all cells as strings; a row of too many or too few is noted before it is an error."""

    def note(row: Any) -> str:
        unfit.append(row)
        return "error"

    return arrow_csv.read_csv(pa.BufferReader(data), *csv_options(delimiter, note, _BLOCK))


def csv_options(delimiter: str, on_unfit: Callable[[Any], str], block: int) -> tuple[Any, Any, Any]:
    """Return how Arrow is to read, parse and convert a csv file: all cells are strings.

    Args:
        delimiter: Between cells.
        on_unfit: Called with each row of too many or too few cells; tells what to do with it.
        block: How many bytes are read at once; the longest row there can be.
    """
    return (
        # Of rows that do not fit, only a reader with one thread knows the numbers.
        arrow_csv.ReadOptions(block_size=block, use_threads=False),
        arrow_csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=on_unfit
        ),
        arrow_csv.ConvertOptions(default_column_type=pa.string(), strings_can_be_null=False),
    )


def wrong_cells(path: Path, row: Any, delimiter: str) -> ValueError:
    """Return what to say of a row that Arrow found to have too many or too few cells."""
    number = row.number - 1  # Arrow counts from 1, the header
    return ValueError(
        f"{path}, row {number} has {row.actual_columns} cells, but the header has "
        f"{row.expected_columns}; put cells that hold {delimiter!r} into quotes."
    )


def delimiter_of(data: bytes) -> str:
    """Return what divides the header, and as many rows as possible into as many cells.

    Args:
        data: A csv file, or its beginning.
    """
    sample = data[:_SAMPLE].decode("utf-8-sig", errors="replace").replace("\0", "").strip()

    def score(delimiter: str) -> tuple[bool, float, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        rows = [row for row in reader if row] or [[]]
        width = len(rows[0])
        return width > 1, sum(len(row) == width for row in rows) / len(rows), width

    return max(_DELIMITERS, key=score)


def check_header(path: Path, names: list[str]) -> None:
    """Refuse names of columns that are numbers, as of a file without a header."""
    for name in names:
        if re.fullmatch(r"\s*-?\d*\.\d+\s*", name):
            raise ValueError(
                f"{path} must begin with a header, the names of its columns. Got {brief(name)} "
                f"there."
            )


def _check_quotes(path: Path, text: str, delimiter: str) -> None:
    """Refuse a quote that is never closed; Arrow would let it swallow the rows after it."""
    if text.count('"') % 2 == 0:
        return
    header_and_rows = 0
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True):
            header_and_rows += bool(row)
    except csv.Error as error:
        if "end of data" in str(error):
            raise ValueError(
                f'{path}, row {header_and_rows}: a quote (") is opened and never closed.'
            ) from None


# ---------------------------------------------------------------------------------- json
# Arrow's reader of JSON takes one object a line alone, makes dates of strings, and neither
# mixes types in a column nor tells the row of a fault.


def _from_json(path: Path, data: bytes) -> Any:
    text = _decoded(path, data)
    if text.lstrip().startswith("["):
        rows: list[Any] = parsed_json(text, str(path))
    else:
        # Not splitlines, as strings within JSON may hold other ends of lines.
        lines = enumerate(filter(str.strip, text.split("\n")), 1)
        rows = [parsed_json(line, f"{path}, row {number}") for number, line in lines]
    for number, row in enumerate(rows, 1):
        check_object(row, f"{path}, row {number}")
    return table_of_objects(rows)


def check_object(row: Any, name: str) -> None:
    """Refuse a row of JSON that is no object.

    Args:
        row: As it was parsed.
        name: What to call it.
    """
    if not isinstance(row, dict):
        raise ValueError(f"{name} must be a JSON object. Got {short(row)}.")


def table_of_objects(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Return rows as an Arrow table; what a row lacks is null."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {_string(name): arrow_array([row.get(name) for row in rows]) for name in names}
    return pa.table(columns)


def parsed_json(text: str, name: str) -> Any:
    """Return what JSON holds, or say that it cannot be read.

    Args:
        text: A row, or a whole file.
        name: What to call it.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{name} cannot be read as JSON ({first_line(error)}); the file must hold a list of "
            f"objects, or one object a line."
        ) from None


def arrow_array(values: list[Any]) -> Any:
    """Return a column; values of several types, or that Arrow cannot hold, become strings."""
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return pa.array([None if value is None else _string(value) for value in values])


def _string(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace").decode()  # JSON can hold halves of characters
