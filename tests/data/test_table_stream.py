"""Tables that are read a part at a time."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coarse2fine.data.sources import table_stream
from coarse2fine.data.sources.table_reader import read_arrow
from coarse2fine.data.sources.table_stream import TablePart, stream_table

ROWS = [{"name": f"row, {number}\nof many", "value": number / 2} for number in range(100)]


@pytest.fixture(params=["csv", "csv.gz", "tsv", "jsonl", "jsonl.gz", "json", "parquet"])
def file(request, tmp_path):
    """A file of a hundred rows, whose strings hold commas and ends of lines."""
    path, kind = tmp_path / f"rows.{request.param}", request.param.removesuffix(".gz")
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(ROWS), path)
        return path
    between = {"csv": ",", "tsv": "\t"}.get(kind)
    if between:
        lines = [f'"{row["name"]}"{between}{row["value"]}' for row in ROWS]
        text = "\n".join([f"name{between}value", *lines])
    else:
        text = json.dumps(ROWS) if kind == "json" else "\n".join(map(json.dumps, ROWS))
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def test_the_parts_together_are_the_table(file, monkeypatch):
    monkeypatch.setattr(table_stream, "_BLOCK", 500)
    parts = list(stream_table(file, 7))
    assert all(0 < len(part) <= 7 for part in parts)
    assert pa.concat_tables([part.arrow for part in parts]).equals(read_arrow(file))
    assert [place for part in parts for place in part.places()] == [
        f"{file}, row {number}" for number in range(1, 101)
    ]
    assert parts[1].place(0) == parts[1].places()[0]


def test_rows_of_too_many_cells_are_named_or_left_out(write, monkeypatch):
    monkeypatch.setattr(table_stream, "_BLOCK", 64)
    lines = [f"{number},x" for number in range(1, 31)]
    lines[2], lines[24] = "3,x,y", "25"
    path = write("rows.csv", "\n".join(["a,b", *lines]))
    with pytest.raises(ValueError, match="row 3 has 3 cells, but the header has 2"):
        list(stream_table(path, 5))
    told = []
    parts = list(stream_table(path, 5, lambda name, _: told.append(name)))
    assert told == [f"{path}, row 3", f"{path}, row 25"]
    numbers = [number for part in parts for number in part.numbers]
    assert numbers == [number for number in range(1, 31) if number not in (3, 25)]
    assert [cell for part in parts for cell in part.arrow["a"].to_pylist()] == list(
        map(str, numbers)
    )


def test_lines_that_are_no_json_are_named_or_left_out(write):
    path = write("rows.jsonl", '{"a": 1}\n\n{broken\n[1]\n{"a": 2}\n')
    with pytest.raises(ValueError, match="row 2 cannot be read as JSON"):
        list(stream_table(path, 5))
    told = []
    (part,) = stream_table(path, 5, lambda name, _: told.append(name))
    assert told == [f"{path}, row 2", f"{path}, row 3"]
    assert (part.numbers, part.arrow["a"].to_pylist()) == ([1, 4], [1, 2])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n", "has no rows that can be used"),
        ("a.csv", b"", "cannot be read as csv"),
        ("a.csv", b"a,b\n1,\xff\n", "cannot be read as csv"),
        ("a.csv", b"0.5,1.5\n1,2\n", "must begin with a header"),
        ("a.csv", b"a,a\n1,2\n", "several columns called 'a'"),
        ("a.jsonl", b'{"a": "\xff"}\n', "cannot be read"),
        ("a.jsonl.gz", b"no gzip", "cannot be read"),
        ("a.parquet", b"no parquet", "cannot be read as parquet"),
        ("a.doc", b"", "is no csv, tsv, json"),
    ],
)
def test_what_cannot_be_read_is_said_in_a_sentence(write, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        list(stream_table(write(name, content), 5))
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        list(stream_table(tmp_path / "no.csv", 5))


def test_parts_are_cut_with_their_numbers():
    part = TablePart("t", pa.table({"a": [5, 6, 7]}), [2, 4, 9])
    assert part.cut(1, 3).places() == ["t, row 4", "t, row 9"]
    assert [len(each) for each in part.parts(2)] == [2, 1]
