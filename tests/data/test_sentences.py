"""Sets of sentences as their authors give them out, and tables of scikit-learn."""

import json
import os
from pathlib import Path

import pytest
import torch

from coarse2fine.data import load_data
from coarse2fine.data.sources.text import tokens

CLINC = {
    "train": [["how are you", "greeting"], ["my balance", "balance"], ["hello", "greeting"]],
    "val": [["hi", "greeting"]],
    "test": [["what have i got", "balance"]],
    "oos_train": [["what is love", "oos"]],
}


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_bytes(content)
    return folder


@pytest.mark.parametrize("place", ["clinc150", "."])
def test_clinc150_has_its_own_parts_and_no_sentence_out_of_scope(place, tmp_path):
    write(tmp_path / place, data_full__json=json.dumps(CLINC).encode())
    source = load_data("clinc150", folder=tmp_path)
    assert source.kind == "text"
    assert source.train.class_names == ("balance", "greeting")
    assert source.train.targets.tolist() == [1, 0, 1]
    assert (source.val.targets.tolist(), source.test.targets.tolist()) == ([1], [0])
    assert torch.equal(source.test.inputs, tokens(["what have i got"]))
    assert source.test.sentences == ("what have i got",)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"train": []}, "must hold lists train, val and test"),
        ({**CLINC, "val": [["hi"]]}, "must hold lists train, val and test"),
        ({**CLINC, "val": [["hi", 3]]}, "an intent is no string"),
        ([], "must hold lists train, val and test"),
        ({**CLINC, "test": [["hi", "weather"]]}, "no sentence to train on has the label 'weather'"),
    ],
)
def test_a_broken_clinc150_is_named(content, message, tmp_path):
    write(tmp_path, data_full__json=json.dumps(content).encode())
    with pytest.raises(ValueError, match=message) as caught:
        load_data("clinc150", folder=tmp_path)
    assert "data_full.json" in str(caught.value)


def test_banking77_is_two_tables(tmp_path):
    rows = b"text,category\nwhere is it,card_arrival\nwhat rate,exchange\n"
    write(tmp_path / "banking77", train__csv=rows, test__csv=rows[: rows.index(b"what")])
    source = load_data("banking77", folder=tmp_path)
    assert source.train.class_names == ("card_arrival", "exchange")
    assert (len(source.train), len(source.test), source.val) == (2, 1, None)
    (tmp_path / "banking77" / "test.csv").unlink()
    with pytest.raises(FileNotFoundError, match="holds no test.csv; put that of banking77 there"):
        load_data("banking77", folder=tmp_path)


def test_trec_is_latin_1_with_the_kind_before_each_question(tmp_path):
    train = "NUM:date When was caf\xe9 first drunk ?\nHUM:ind Who was it ?\n".encode("latin-1")
    write(tmp_path / "trec", train_5500__label=train, TREC_10__label=b"HUM:ind Who ?\n")
    source = load_data("trec", folder=tmp_path)
    assert source.train.class_names == ("HUM:ind", "NUM:date")
    assert source.train.targets.tolist() == [1, 0]
    assert torch.equal(source.train.inputs[0], tokens(["When was caf\xe9 first drunk ?"])[0])
    write(tmp_path / "trec", TREC_10__label=b"HUM:ind Who ?\nHUM\n")
    with pytest.raises(ValueError, match=r"TREC_10.label, line 2: must be a kind like NUM:date"):
        load_data("trec", folder=tmp_path)


@pytest.mark.parametrize("name", ["clinc150", "banking77", "trec"])
def test_a_folder_without_the_set_is_named(name, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"put that of {name} there"):
        load_data(name, folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "sizes", "classes"),
    [
        ("clinc150", (15_000, 3_000, 4_500), 150),
        ("banking77", (10_003, None, 3_080), 77),
        ("trec", (5_452, None, 500), 50),
    ],
)
def test_the_real_sets_have_their_sizes(name, sizes, classes):
    folder = Path(os.environ.get("COARSE2FINE_DATA", ""))
    if not (folder / name).is_dir():
        pytest.skip(f"COARSE2FINE_DATA names no folder that holds {name}")
    source = load_data(name, folder=folder)
    parts = (source.train, source.val, source.test)
    assert tuple(None if part is None else len(part) for part in parts) == sizes
    assert len(source.train.class_names) == classes


def test_tables_of_scikit_learn_are_the_same_every_time():
    datasets = pytest.importorskip("sklearn.datasets")
    features, targets = datasets.load_digits(return_X_y=True)
    digits = load_data("digits")
    assert digits.kind == "table"
    assert digits.train.inputs.tolist() == features.tolist()
    assert digits.train.targets.tolist() == targets.tolist()
    first, second = load_data("made-table"), load_data("made-table")
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert (len(first.train), len(first.train.class_names)) == (5_000, 50)
    assert torch.bincount(first.train.targets).min() > 80
