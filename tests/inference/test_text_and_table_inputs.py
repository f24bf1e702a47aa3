"""Sentences and rows in every form that people have them in."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from coarse2fine.data import tokens
from coarse2fine.inference.classifier import Classifier
from coarse2fine.inference.preprocessing import Preprocessing

SENTENCES = ["my card is lost", "add money now please", "a pin"]
ROWS = {"height": [10, 30, 0], "label": ["?", "?", "?"], "form": ["flat", "round", "odd"]}
ROWS |= {"width": [1.1, 2.9, 0.2]}


def rows_as(kind, folder):
    """The same rows in a form."""
    frame = pd.DataFrame(ROWS)
    records = frame.to_dict("records")
    if kind in ("csv", "csv.gz"):
        frame.to_csv(folder / f"new.{kind}", index=False)
    elif kind == "jsonl":
        (folder / "new.jsonl").write_text("\n".join(map(json.dumps, records)))
    elif kind == "json":
        (folder / "new.json").write_text(json.dumps(records))
    elif kind == "parquet":
        pq.write_table(pa.table(ROWS), folder / "new.parquet")
    in_memory = {"frame": frame, "arrow": pa.table(ROWS), "dict": ROWS, "dicts": records}
    return in_memory.get(kind, folder / f"new.{kind}")


KINDS = ("frame", "arrow", "dict", "dicts", "csv", "csv.gz", "jsonl", "json", "parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_same_in_every_form(table, tmp_path, kind):
    numbers = torch.tensor([[1.1, 1, 0, 10], [2.9, 0, 1, 30], [0.2, 0, 0, 0]])
    inputs = table.preprocessing.transform.normalise(numbers)
    wanted = table.model(inputs).softmax(1).detach().numpy()
    found = table.predict_proba(rows_as(kind, tmp_path), batch_size=2)
    assert found == pytest.approx(wanted, abs=1e-6)


def test_arrays_of_a_table_have_its_columns_in_order(table):
    numbers = np.array([[1.1, 1, 0, 10], [2.9, 0, 1, 30]])
    wanted = table.predict_proba(pd.DataFrame(ROWS))[:2]
    forms = (numbers, numbers.tolist(), torch.from_numpy(numbers), list(numbers))
    for form in forms:
        assert table.predict_proba(form) == pytest.approx(wanted, abs=1e-6)
    assert table.predict_proba(numbers[0]) == pytest.approx(wanted[:1], abs=1e-6)
    assert table.predict_proba(numbers[0].tolist()) == pytest.approx(wanted[:1], abs=1e-6)


def test_a_model_of_arrays_takes_tables_of_as_many_columns():
    classifier = Classifier(torch.nn.Linear(2, 3), Preprocessing("table", (2,)), "abc")
    wanted = classifier.predict_proba(np.array([[1.0, 2.0]]))
    assert classifier.predict_proba({"x": [1], "y": [2]}) == pytest.approx(wanted)
    found = classifier.predict_proba({"x": [1], "label": ["?"], "z": ["2"]})
    assert found == pytest.approx(wanted)
    with pytest.raises(ValueError, match="has 3 columns beside the target, but the model takes"):
        classifier.predict({"x": [1], "v": [2], "z": [3]})


@pytest.mark.parametrize(
    "given",
    [
        SENTENCES,
        tuple(SENTENCES),
        np.array(SENTENCES),
        pd.Series(SENTENCES),
        iter(SENTENCES),
        pd.DataFrame({"id": [7, 8, 9], "sentence": SENTENCES, "intent": ["", "", ""]}),
        {"sentence": SENTENCES},
        {"whatever": SENTENCES},
        tokens(SENTENCES),
    ],
    ids=lambda given: type(given).__name__,
)
def test_sentences_are_the_same_in_every_form(text, given):
    wanted = text.model(tokens(SENTENCES)).softmax(1).detach().numpy()
    assert text.predict_proba(given, batch_size=2) == pytest.approx(wanted, abs=1e-6)


def test_a_single_string_is_a_sentence(text, tmp_path):
    assert text.predict(SENTENCES[0]) == text.predict([SENTENCES[0]])
    (tmp_path / "lines.txt").write_text("\n".join(SENTENCES))
    assert text.predict(tmp_path / "lines.txt") == text.predict(SENTENCES)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["fine", 3], "sample 1: the model takes sentences. Got int"),
        ({"sentence": ["a", None]}, "the table, row 2: the text is missing"),
        ({"a": ["x y"], "b": ["z"]}, "none of them is plainly the text; name it by text="),
        (np.zeros((2, 3)), "the model takes sentences, or rows of integers"),
        (7, "the model takes sentences. Got a int"),
    ],
)
def test_what_is_no_sentence_is_refused_in_a_sentence(text, given, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        text.predict(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"width": [1], "height": [2]}, "the table has no column 'form'; it has 'width', 'height'"),
        (ROWS | {"width": [1, None, 2]}, "row 2: the number in the column 'width' is missing"),
        (ROWS | {"width": ["1", "2", "x"]}, "row 3: 'x', in the column 'width', is no number"),
        (np.zeros((2, 3)), "sample 0 is of 3, but the model takes rows of a table, 4 numbers each"),
        (np.array([[1, 2, 3, np.inf]]), "sample 0 holds NaN or infinity"),
        ("no.csv", "there is no file no.csv"),
    ],
)
def test_what_is_no_such_row_is_refused_in_a_sentence(table, given, message):
    with pytest.raises((ValueError, TypeError, OSError), match=message) as caught:
        table.predict(given)
    assert "\n" not in str(caught.value)
