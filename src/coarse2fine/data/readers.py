"""Files of rows as Arrow tables: csv, json-lines and parquet, with one sentence a fault."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as short
from typing import Any

from .._files import check_is_file
from .._printable import brief
from ..errors import require

Table = Any
"""A `pyarrow.Table`."""

_DELIMITERS = ",;\t|"
_SAMPLE = 1 << 16  # bytes, by which a delimiter is told
_BLOCK = 1 << 24  # bytes; the longest row there can be
# What pandas calls the numbers of rows; nothing is to be learned from them.
_ROW_NUMBERS = ("", "Unnamed: 0", "__index_level_0__")


def is_table_file(path: Path) -> bool:
    """Return whether a file's name ends as one that `read_rows` reads."""
    return bool(re.search(r"\.((csv|tsv|json|jsonl|ndjson)(\.gz)?|parquet)$", path.name.lower()))


def read_rows(path: Path) -> Table:
    """Return the rows of a csv, tsv, json, jsonl, ndjson (or .gz of these) or parquet file.

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
        table = _from_parquet(path)
    else:
        data = _unpacked(path)
        is_json = any(suffix in (".json", ".jsonl", ".ndjson") for suffix in _suffixes(path))
        table = _from_json(path, data) if is_json else _from_csv(path, data)
    return _checked(path, table)


def _from_parquet(path: Path) -> Table:
    try:
        return opened_parquet(path).read()
    except (require("pyarrow", "train").ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as parquet ({_line(error)}).") from None


def opened_parquet(path: Path) -> Any:
    """Return a file as `pyarrow.parquet.ParquetFile`."""
    arrow = require("pyarrow", "train")
    check_is_file(path)
    try:
        opened = require("pyarrow.parquet", "train").ParquetFile(path, memory_map=True)
        _ = opened.schema_arrow.names  # which are not decoded before they are asked for
        return opened
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as parquet ({_line(error)}).") from None


def _suffixes(path: Path) -> list[str]:
    return [suffix.lower() for suffix in path.suffixes[-2:]]


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix.lower() == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} cannot be unpacked ({_line(error)}).") from None
    if not data.strip():
        raise ValueError(f"{path} is empty; it must hold rows with their labels.")
    return data


def _checked(path: Path, table: Table) -> Table:
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


def _line(error: BaseException) -> str:
    """Return the first line of a library's message, without its final stop."""
    return brief(str(error).strip().split("\n", 1)[0].rstrip("."))


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}; save it as "
            f"UTF-8."
        ) from None


# ----------------------------------------------------------------------------------- csv


def _from_csv(path: Path, data: bytes) -> Table:
    arrow, reader = require("pyarrow", "train"), require("pyarrow.csv", "train")
    delimiter = _delimiter(data)
    if data.count(b'"') % 2:
        _check_quotes(path, data, delimiter)
    try:
        table = reader.read_csv(
            arrow.BufferReader(data),
            reader.ReadOptions(block_size=_BLOCK),
            reader.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            reader.ConvertOptions(default_column_type=arrow.string(), strings_can_be_null=False),
        )
        _check_header(path, table.column_names)
        return table
    except (arrow.ArrowException, UnicodeDecodeError) as error:
        raise _csv_fault(path, data, delimiter, error) from None


def _delimiter(data: bytes) -> str:
    """Return what divides the header, and as many rows as possible into as many cells."""
    sample = data[:_SAMPLE].decode("utf-8-sig", errors="replace").replace("\0", "").strip()

    def score(delimiter: str) -> tuple[bool, float, int]:
        reader = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
        rows = [row for row in reader if row] or [[]]
        width = len(rows[0])
        return width > 1, sum(len(row) == width for row in rows) / len(rows), width

    return max(_DELIMITERS, key=score)


def _check_header(path: Path, names: list[str]) -> None:
    for name in names:
        if re.fullmatch(r"\s*-?\d*\.\d+\s*", name):
            raise ValueError(
                f"{path} must begin with a header, the names of its columns. Got {brief(name)} "
                f"there."
            )


def _csv_rows(path: Path, data: bytes, delimiter: str) -> Iterator[list[str]]:
    text = io.StringIO(_decoded(path, data), newline="")
    return (row for row in csv.reader(text, delimiter=delimiter, strict=True) if row)


def _check_quotes(path: Path, data: bytes, delimiter: str) -> None:
    """Refuse a quote that is never closed, which would swallow the rows after it."""
    rows, header_and_rows = _csv_rows(path, data, delimiter), 0
    try:
        while next(rows, None) is not None:
            header_and_rows += 1
    except csv.Error as error:
        if "end of data" in str(error):
            raise ValueError(
                f'{path}, row {header_and_rows}: a quote (") is opened and never closed.'
            ) from None


def _csv_fault(path: Path, data: bytes, delimiter: str, error: Exception) -> ValueError:
    """Return what is wrong with a file that Arrow cannot read, if possible with its row."""
    rows = _csv_rows(path, data, delimiter)
    number = 0
    try:
        header = next(rows, [])
        for number, row in enumerate(rows, 1):
            if len(row) != len(header):
                return ValueError(
                    f"{path}, row {number} has {len(row)} cells, but the header has "
                    f"{len(header)}; put cells that hold {delimiter!r} into quotes."
                )
    except csv.Error:
        number += 1
    if not number:
        return ValueError(f"{path} has the columns {brief(', '.join(header))} but no rows.")
    return ValueError(f"{path} cannot be read as csv ({_line(error)}).")


# ---------------------------------------------------------------------------------- json


def _from_json(path: Path, data: bytes) -> Table:
    text = _decoded(path, data)
    rows = _listed(path, text) if text.lstrip().startswith("[") else _lines(path, text)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise ValueError(f"{path}, row {number} must be a JSON object. Got {short(row)}.")
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {_string(name): _array([row.get(name) for row in rows]) for name in names}
    return require("pyarrow", "train").table(columns)


def _listed(path: Path, text: str) -> list[Any]:
    try:
        rows: list[Any] = json.loads(text)
        return rows
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as JSON ({_line(error)}).") from None


def _lines(path: Path, text: str) -> list[Any]:
    # Not splitlines, as strings within JSON may hold other ends of lines.
    lines = filter(str.strip, text.split("\n"))
    return [_parsed(path, number, line) for number, line in enumerate(lines, 1)]


def _parsed(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}, row {number} cannot be read as JSON ({_line(error)}); the file must hold a "
            f"list of objects, or one object a line."
        ) from None


def _array(values: list[Any]) -> Any:
    """Return a column; values of several types, or that Arrow cannot hold, become strings."""
    arrow = require("pyarrow", "train")
    try:
        return arrow.array(values)
    except (arrow.ArrowException, ValueError, TypeError, OverflowError):
        return arrow.array([None if value is None else _string(value) for value in values])


def _string(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode(errors="replace").decode()  # JSON can hold halves of characters
