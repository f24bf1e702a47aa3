"""Files of rows: what is read, and what is wrong with those that cannot be."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coarse2fine.data.sources.table_reader import read_arrow

BOTH = {"a": ["1", "2"], "b": ["x", "y"]}


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_out(write, delimiter):
    rows = ["a,b", "1,x", "2,y"]
    path = write("rows.csv", "\n".join(row.replace(",", delimiter) for row in rows))
    assert read_arrow(path).to_pydict() == BOTH


def test_a_delimiter_within_the_text_does_not_mislead(write):
    path = write("rows.csv", "text;label\nb, c, d;x\ne, f;y\n")
    assert read_arrow(path)["label"].to_pylist() == ["x", "y"]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
        b"a,b\r\n1,x\r\n2,y\r\n",
        b"a,b\r1,x\r2,y\r",
        b"a,b\n1,x\n\n2,y",
        b'"a","b"\n"1","x"\n"2","y"\n',
        b" a , b\n1,x\n2,y\n",
        b",a,b\n0,1,x\n1,2,y\n",
        b"Unnamed: 0,a,b\n0,1,x\n1,2,y\n",
    ],
    ids=["byte order mark", "CRLF", "CR", "blank", "quotes", "spaces", "numbered", "renumbered"],
)
def test_a_csv_file_may_come_from_anywhere(write, content):
    assert read_arrow(write("rows.csv", content)).to_pydict() == BOTH


def test_quoted_cells_hold_delimiters_quotes_and_ends_of_lines(write):
    path = write("rows.csv", 'text,label\n"one, ""two""\nthree",a\n5" disk,b\n')
    assert read_arrow(path)["text"].to_pylist() == ['one, "two"\nthree', '5" disk']


def test_cells_of_csv_stay_as_they_are_written(write):
    cells = ["001", "NA", "null", "None", "nan", "1e5", "true", "2020-01-01", ""]
    path = write("rows.csv", "x,y\n" + "".join(f"0,{cell}\n" for cell in cells))
    assert read_arrow(path)["y"].to_pylist() == cells


def test_json_lines_a_json_list_and_their_gz_hold_the_same(write):
    rows = [{"a": 1, "b": "x"}, {"a": 2.5, "b": "2020-01-01"}]
    lines = "\n".join(map(json.dumps, rows)) + "\n\n"
    files = [
        write("rows.jsonl", lines),
        write("rows.ndjson", lines),
        write("lines.json", lines),
        write("rows.json", json.dumps(rows)),
        write("rows.jsonl.gz", gzip.compress(lines.encode())),
    ]
    for path in files:
        assert read_arrow(path).to_pydict() == {"a": [1, 2.5], "b": ["x", "2020-01-01"]}


def test_what_json_rows_lack_is_missing_and_mixed_columns_are_strings(write):
    path = write(
        "rows.jsonl", '{"a": 1, "b": [1]}\n{"b": "x\\u2028y"}\n{"a": 18446744073709551616}\n'
    )
    found = read_arrow(path).to_pydict()
    assert found["a"] == ["1", None, "18446744073709551616"]
    assert found["b"] == ["[1]", "x\u2028y", None]


def test_half_a_character_in_json_is_no_reason_to_fail(write):
    assert read_arrow(write("rows.jsonl", '{"a": "x\\ud800"}'))["a"].to_pylist() == ["x?"]


def test_parquet_keeps_its_types(tmp_path):
    table = pa.table({"a": [1, 2], "b": ["x", "y"], "__index_level_0__": [0, 1]})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read_arrow(tmp_path / "rows.parquet").to_pydict() == {"a": [1, 2], "b": ["x", "y"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("empty.csv", "", "empty.csv is empty; it must hold rows"),
        ("blank.csv", "\n \n", "blank.csv is empty"),
        ("header.csv", "a,b\n", "header.csv has the columns a, b but no rows"),
        ("header.csv", "a,b", "header.csv has the columns a, b but no rows"),
        ("long.csv", "a,b\n1,2\n3,4,5\n", "long.csv, row 2 has 3 cells, but the header has 2"),
        ("short.csv", "a,b\n1,2\n3\n", "short.csv, row 2 has 1 cells, but the header has 2"),
        ("twice.csv", "a,a\n1,2\n", "twice.csv has several columns called 'a'; rename"),
        ("none.csv", "5.1,3.5,x\n4.9,3,y\n", "none.csv must begin with a header.* Got 5.1 there"),
        ("latin.csv", b"a,b\n1,\xe9\n", "latin.csv is not UTF-8: byte 6 is 0xe9; save it as UTF-8"),
        ("head.csv", b"\xe9,b\n1,2\n", "head.csv is not UTF-8: byte 0 is 0xe9"),
        ("wide.csv", "a,b\n1,2\n".encode("utf-16"), "wide.csv is not UTF-8: byte 0 is 0xff"),
        (
            "open.csv",
            'a,b\n1,2\n"3,4\n5,6\n',
            'open.csv, row 2: a quote \\("\\) is opened and never',
        ),
        ("bad.csv.gz", b"a,b\n1,2\n", "bad.csv.gz cannot be unpacked"),
        ("cut.csv.gz", gzip.compress(b"a,b\n1,2\n", mtime=0)[:-4], "cut.csv.gz cannot be unpacked"),
        ("bad.jsonl", '{"a": 1}\n{"a": \n', "bad.jsonl, row 2 cannot be read as JSON"),
        ("row.jsonl", '{"a": 1}\n[2]\n', r"row.jsonl, row 2 must be a JSON object. Got \[2\]"),
        ("bad.json", '[{"a": 1}', "bad.json cannot be read as JSON"),
        ("none.json", "[]", "none.json has the columns  but no rows"),
        ("latin.jsonl", b'{"a": "\xe9"}', "latin.jsonl is not UTF-8: byte 7 is 0xe9"),
        ("bad.parquet", "PAR1", "bad.parquet cannot be read as parquet"),
        ("rows.txt", "a,b\n", "rows.txt is no csv, tsv, json, jsonl, ndjson or parquet file"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(write, name, content, message):
    with pytest.raises(ValueError, match=message) as caught:
        read_arrow(write(name, content))
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file .*rows.csv"):
        read_arrow(tmp_path / "rows.csv")
