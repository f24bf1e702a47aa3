"""Tables of text or numbers, and where their parts are found."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from coarse2fine.data.sources.parquet import has_image_column, is_table
from coarse2fine.data.sources.tables import load_table
from coarse2fine.data.sources.text import tokens

IRIS = [
    ("width", "petals", "colour", "species"),
    (1.5, 5, "red", "b"),
    (2.5, 6, "blue", "a"),
    (3.5, 7, "red", "a"),
    (4.5, 8, "blue", "b"),
]


# --------------------------------------------------------------------------------- kinds


def test_a_column_of_text_becomes_tokens(write):
    path = write("rows.csv", [("text", "label"), ("Lost my card", "card"), ("Hello", "talk")])
    source = load_table(path)
    assert source.kind == "text"
    assert source.columns == ()
    assert torch.equal(source.train.inputs, tokens(["Lost my card", "Hello"]))
    assert source.train.sentences == ("Lost my card", "Hello")
    assert source.train.class_names == ("card", "talk")
    assert (source.test, source.val) == (None, None)


def test_numbers_and_categories_become_columns(write):
    source = load_table(write("rows.csv", IRIS))
    assert source.kind == "table"
    assert source.columns == ("width", "petals", "colour=blue", "colour=red")
    expected = [[1.5, 5, 0, 1], [2.5, 6, 1, 0], [3.5, 7, 0, 1], [4.5, 8, 1, 0]]
    assert source.train.inputs.dtype == torch.float32
    assert source.train.inputs.tolist() == expected
    assert source.train.targets.tolist() == [1, 0, 0, 1]


def test_another_file_is_brought_into_the_layout_of_the_first(write):
    first = load_table(write("rows.csv", IRIS))
    other = write("other.csv", [("species", "colour", "petals", "width"), ("b", "green", 9, 0.5)])
    source = load_table(other, columns=first.columns, class_names=first.train.class_names)
    assert source.columns == first.columns
    assert source.train.inputs.tolist() == [[0.5, 9, 0, 0]]
    assert source.train.targets.tolist() == [1]


def test_names_with_equals_signs_are_no_trouble(write):
    rows = [("a=b", "c=d", "label"), (1, "x=y", "p"), (2, "x=y", "q"), (3, "z", "q"), (4, "z", "p")]
    source = load_table(write("rows.csv", rows))
    assert source.columns == ("a=b", "c=d=x=y", "c=d=z")
    again = load_table(write("rows.csv", rows), columns=source.columns)
    assert torch.equal(again.train.inputs, source.train.inputs)
    assert again.train.inputs[0].tolist() == [1, 1, 0]


def test_truth_values_are_numbers_and_so_are_constants(write):
    rows = [("flag", "same", "label"), ("True", 3, "a"), ("false", 3, "b")]
    assert load_table(write("rows.csv", rows)).train.inputs.tolist() == [[1, 3], [0, 3]]


@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_parquet_columns_of_every_type_of_number(tmp_path):
    table = pa.table(
        {
            "whole": pa.array([1, 2], pa.int16()),
            "half": pa.array([0.5, 1.5], pa.float32()),
            "flag": [True, False],
            "words": pa.array(["u", "u"]).dictionary_encode(),
            "label": pa.array([7, 3], pa.uint8()),
        }
    )
    pq.write_table(table, tmp_path / "rows.parquet")
    source = load_table(tmp_path / "rows.parquet", columns=("whole", "half", "flag", "words=u"))
    assert source.train.inputs.tolist() == [[1, 0.5, 1, 1], [2, 1.5, 0, 1]]
    assert source.train.class_names == ("3", "7")


@pytest.mark.parametrize(
    ("names", "row", "kind"),
    [
        (("id", "title", "label"), "{0},words of {0}", "text"),
        (("id", "sex", "label"), "{0},m", "table"),
        (("sex", "label"), "m", "text"),
        (("id", "Review", "sex", "label"), "{0},good,m", "text"),
        (("id", "sex", "town", "label"), "{0},m,x", "table"),
    ],
)
def test_the_only_column_of_words_is_text_unless_they_are_categories(write, names, row, kind):
    lines = [f"{row.format(number)},{number % 2}" for number in range(8)]
    source = load_table(write("rows.csv", "\n".join([",".join(names), *lines])))
    assert source.kind == kind


# -------------------------------------------------------------------------------- target


@pytest.mark.parametrize(
    "names",
    [("y", "x", "Label"), ("Intent", "x", "n"), ("category", "class", "x"), ("n", "x", "genus")],
)
def test_the_target_is_known_by_its_name_or_is_last(write, names):
    values = {"Label": "pq", "Intent": "pq", "class": "pq", "genus": "pq"}
    columns = [values.get(name, "12") for name in names]
    path = write("rows.csv", [names, *zip(*columns, strict=True)])
    assert load_table(path).train.class_names == ("p", "q")


def test_the_text_is_not_the_target_even_if_it_is_last(write):
    path = write("rows.csv", [("topic", "utterance"), ("b", "some words"), ("a", "others")])
    assert load_table(path).train.class_names == ("a", "b")


def test_columns_can_be_named(write):
    rows = [("text", "label", "other", "group"), ("a", "b", "c", "d"), ("e", "f", "g", "h")]
    source = load_table(write("rows.csv", rows), target="group", text="other")
    assert source.train.class_names == ("d", "h")
    assert torch.equal(source.train.inputs, tokens(["c", "g"]))


@pytest.mark.parametrize(
    ("labels", "names", "targets"),
    [
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        (["10", "9", "-1"], ("-1", "9", "10"), [2, 1, 0]),
        (["001", "1", "01"], ("001", "01", "1"), [0, 2, 1]),
        (["NA", "null", "None"], ("NA", "None", "null"), [0, 2, 1]),
        ([" a", "b ", "a"], ("a", "b"), [0, 1, 0]),
        (["v1", "1.5", "v1"], ("1.5", "v1"), [1, 0, 1]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_labels_are_words_sorted_or_integers_in_their_order(write, labels, names, targets):
    path = write("rows.csv", [("x", "label"), *((1, label) for label in labels)])
    train = load_table(path).train
    assert train.class_names == names
    assert train.targets.tolist() == targets


@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_integers_that_became_floats_are_integers_again(write):
    path = write("rows.jsonl", '{"x": 1, "label": 10.0}\n{"x": 2, "label": 9}\n')
    assert load_table(path).train.class_names == ("9", "10")


def test_classes_that_the_hub_declares_in_parquet_keep_their_names_and_order(tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["z", "a", "m"])}
    )
    rows = datasets.Dataset.from_dict({"text": ["u", "v"], "label": [1, 0]}, features=features)
    rows.to_parquet(tmp_path / "rows.parquet")
    train = load_table(tmp_path / "rows.parquet").train
    assert train.class_names == ("z", "a", "m")
    assert train.targets.tolist() == [1, 0]


# --------------------------------------------------------------------------------- files


@pytest.fixture
def parts(write):
    """Files beside each other whose numbers tell them apart."""

    def parts(*names):
        for number, name in enumerate(names):
            write(name, [("x", "label"), (number, "a"), (number, "b")])

    return parts


@pytest.mark.parametrize("val", ["val", "valid", "validation", "dev"])
def test_files_beside_train_and_in_a_folder_are_its_test_and_val(parts, tmp_path, val):
    parts("train.csv", "test.csv", f"{val}.csv", "notes.csv")
    for path in (tmp_path / "train.csv", str(tmp_path)):
        source = load_table(path)
        assert [split.inputs[0, 0] for split in (source.train, source.test, source.val)] == [
            0,
            1,
            2,
        ]


def test_a_file_that_is_not_called_train_stands_alone(parts, tmp_path):
    parts("train.csv", "test.csv")
    source = load_table(tmp_path / "test.csv")
    assert source.train.inputs[0, 0] == 1
    assert source.test is None


def test_files_in_numbered_pieces_are_put_together(parts, tmp_path):
    parts("train-00000-of-00002.csv", "train-00001-of-00002.csv")
    assert load_table(tmp_path).train.inputs[:, 0].tolist() == [0, 0, 1, 1]
    with (tmp_path / "train-00001-of-00002.csv").open("a") as file:
        file.write("x,a\n")
    with pytest.raises(ValueError, match="train-00001-of-00002.csv, row 3: 'x'"):
        load_table(tmp_path)


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        (["test.csv"], FileNotFoundError, "holds no train.csv, .tsv, .jsonl"),
        (["train.csv", "train.tsv"], ValueError, "both train.csv and train.tsv; name the file"),
        (["train.csv", "dev.csv", "val.csv"], ValueError, "both dev.csv and val.csv"),
        (["train-0-of-3.csv", "train-1-of-3.csv"], FileNotFoundError, "2 of the 3 files"),
    ],
)
def test_a_folder_must_hold_one_file_of_each_part(parts, tmp_path, names, error, message):
    parts(*names)
    with pytest.raises(error, match=message):
        load_table(tmp_path)


def test_images_are_left_to_others(tmp_path):
    image = pa.array([{"bytes": b"", "path": None}])
    pq.write_table(pa.table({"img": image, "label": [1]}), tmp_path / "train.parquet")
    pq.write_table(pa.table({"x": [1], "label": [1]}), tmp_path / "rows.parquet")
    for path in (tmp_path, tmp_path / "train.parquet"):
        assert has_image_column(path)
        assert not is_table(path)
    with pytest.raises(ValueError, match="train.parquet holds images"):
        load_table(tmp_path)
    assert not has_image_column(tmp_path / "rows.parquet")
    assert is_table(tmp_path / "rows.parquet")


def test_what_is_a_table_is_told_by_names(parts, tmp_path):
    parts("rows.csv.gz", "rows.txt")
    assert is_table(tmp_path / "rows.csv.gz")
    assert not is_table(tmp_path / "rows.txt")
    assert not is_table(tmp_path / "gone.csv")
    assert not is_table(tmp_path)
    parts("train.tsv")
    assert is_table(tmp_path)


# -------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("x,label\n1,a\n,b\n", {}, "row 2: the number in the column 'x' is missing"),
        ("x,label\n1,a\nnan,b\n", {}, "row 2: the number in the column 'x' is missing"),
        ("x,label\n1,a\n1e39,b\n", {}, "row 2: the number in the column 'x' is infinite or too"),
        ("x,label\n1,a\n2,b\nNA,b\n", {}, "row 3: 'NA', in the column 'x', is no number"),
        ('x,label\n"1,5",a\n"2,5",b\n', {}, "row 1: '1,5', in the column 'x', is no number"),
        ("x,label\n1,a\n2,\n", {}, "row 2: the label, in the column 'label', is missing"),
        ("x,label\n1,a\n2,a\n", {}, "one class alone, 'a', in the column 'label'"),
        (
            "x,label\n1,a\n2,b\n",
            {"class_names": ["b", "c"]},
            "row 1: the label 'a' is none of the 2",
        ),
        ("x,label\n1,a\n2,b\n", {"target": "y"}, "no column 'y'; it has 'x', 'label'"),
        ("x,label\n1,a\n2,b\n", {"text": "y"}, "no column 'y'; it has 'x', 'label'"),
        ("x,label\n1,a\n2,b\n", {"text": "label"}, "'label' cannot be text and target both"),
        ("x,label\n1,a\n2,b\n", {"columns": ["z=1"]}, "no column 'z=1'; it has 'x', 'label'"),
        ("label\na\nb\n", {}, "no column but the target, 'label'"),
        ("x,price\n1,1.5\n2,2\n", {}, "'price' holds fractions such as 1.5, but classes must be"),
    ],
)
def test_what_is_wrong_with_a_table_is_said_with_its_file(write, content, options, message):
    with pytest.raises(ValueError, match=f"rows.csv.*{message}") as caught:
        load_table(write("rows.csv", content), **options)
    assert "\n" not in str(caught.value)


def test_a_column_of_numbers_of_rows_is_no_target(write):
    path = write("rows.csv", [("x", "id"), *((1, row) for row in range(11))])
    with pytest.raises(ValueError, match="'id' holds another label in every row"):
        load_table(path)


def test_too_many_words_are_no_categories(write):
    rows = [(f"n{row}", "m", row % 2) for row in range(101)]
    path = write("rows.csv", [("name", "sex", "label"), *rows])
    with pytest.raises(ValueError, match="'name' holds 101 different words.*by text=.*by columns="):
        load_table(path)
    assert load_table(path, columns=["sex=m"]).columns == ("sex=m",)


def test_lists_and_dates_are_neither_numbers_nor_labels(write):
    path = write("rows.jsonl", '{"x": [1], "label": "a"}\n{"x": [2], "label": "b"}\n')
    with pytest.raises(ValueError, match="'x' holds list<item: int64>, neither numbers nor"):
        load_table(path)
    with pytest.raises(ValueError, match="'x' holds list.*, but classes must be words or"):
        load_table(path, target="x")
    with pytest.raises(ValueError, match="'x' holds list.*, no text"):
        load_table(path, text="x")


def test_text_may_be_empty_but_not_missing(write):
    assert load_table(write("rows.csv", "text,label\n,a\nx,b\n")).train.inputs[0].tolist() == [0]
    path = write("rows.jsonl", '{"text": "x", "label": "a"}\n{"text": null, "label": "b"}\n')
    with pytest.raises(ValueError, match="rows.jsonl, row 2: the text, in the column 'text', is"):
        load_table(path)


def test_a_label_of_the_test_that_training_does_not_have_is_named(write):
    path = write("train.csv", "x,label\n1,a\n2,b\n")
    write("test.csv", "x,label\n1,a\n2,c\n")
    with pytest.raises(ValueError, match="test.csv, row 2: the label 'c' is none of the 2 classes"):
        load_table(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file .*gone.csv"):
        load_table(tmp_path / "gone.csv")


# ------------------------------------------------------------------------------ real data


def test_pandas_reads_the_same_numbers(write, rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rng.normal(size=(5000, 8)), columns=list("abcdefgh"))
    frame["label"] = rng.integers(0, 12, 5000)
    source = load_table(write("rows.csv", frame.to_csv()))
    assert source.columns == tuple("abcdefgh")
    np.testing.assert_array_equal(source.train.inputs, frame[[*"abcdefgh"]].astype("float32"))
    np.testing.assert_array_equal(source.train.targets, frame["label"])


def test_banking77_is_loaded_whole():
    folder = os.environ.get("COARSE2FINE_DATA")
    if not folder or not (Path(folder) / "banking77").is_dir():
        pytest.skip("needs the folder banking77 in COARSE2FINE_DATA")
    source = load_table(Path(folder) / "banking77" / "train.csv")
    assert (source.kind, len(source.train), len(source.test)) == ("text", 10_003, 3_080)
    assert source.train.class_names == source.test.class_names
    assert len(source.train.class_names) == 77
    assert set(source.test.targets.tolist()) == set(range(77))
