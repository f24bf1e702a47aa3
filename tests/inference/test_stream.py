"""Predictions as they come: what they hold, what is read for them, what is skipped."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from coarse2fine import Hierarchy
from coarse2fine.inference.classifier import Classifier, Guess
from coarse2fine.inference.clusters import cluster_names
from coarse2fine.inference.preprocessing import Preprocessing

ANIMALS = ("cat", "dog", "car", "bus")


def made(hierarchy=None):
    """A classifier of two numbers whose logits are known."""
    model = torch.nn.Linear(2, 4, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, 0], [1, 0], [0, 2], [0, 1]]))
    return Classifier(model, Preprocessing("table", (2,)), ANIMALS, hierarchy)


def test_a_prediction_has_its_class_guesses_and_clusters():
    levels = [[0, 0, 0, 1], [0, 0, 1, 2]]
    names = [["thing", ""], ["pet", "car", ""]]
    classifier = made(Hierarchy.from_levels(levels, ANIMALS, names))
    (found,) = classifier.stream(np.array([[1.0, 0.0]]), top=2)
    shares = torch.tensor([2.0, 1, 0, 0]).softmax(0).tolist()
    assert (found.input, found.class_name) == ("sample 0", "cat")
    assert found.probability == pytest.approx(shares[0])
    assert found.guesses == (Guess("dog", pytest.approx(shares[1])),)
    assert found.clusters == ("thing", "pet")
    assert found.to_dict() == {
        "input": "sample 0",
        "class": "cat",
        "probability": found.probability,
        "guesses": [{"class": "dog", "probability": found.guesses[0].probability}],
        "clusters": ["thing", "pet"],
    }
    (bus,) = classifier.stream(np.array([[-3.0, 0.1]]), top=9)
    assert len(bus.guesses) == 3
    assert bus.clusters[0] == ("bus" if bus.class_name == "bus" else "thing")


def test_with_a_single_class_asked_for_there_are_no_guesses():
    found = list(made().stream(np.array([[1.0, 0.0], [0.0, 1.0]]), top=1))
    assert [(each.input, each.class_name) for each in found] == [
        ("sample 0", "cat"),
        ("sample 1", "car"),
    ]
    assert [each.guesses for each in found] == [(), ()]


def test_clusters_without_names_are_called_by_their_first_classes():
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]], ANIMALS)
    assert cluster_names(hierarchy, 0) == ["cat, dog", "car, bus"]
    assert made(hierarchy).clusters[2] == ("car, bus",)


def test_no_more_is_read_than_is_needed():
    read = []

    def rows():
        for number in range(1000):
            read.append(number)
            yield np.array([number, 1.0])

    found = made().stream(rows(), batch_size=10)
    next(found)
    assert len(read) < 100
    found.close()


def test_faulty_samples_are_told_and_left_out():
    told = []
    rows = [[1.0, 0], [np.nan, 0], [0, 1.0], [1, 2, 3]]
    found = made().stream(rows, on_fault=lambda name, error: told.append((name, str(error))))
    assert [(each.input, each.class_name) for each in found] == [
        ("sample 0", "cat"),
        ("sample 2", "car"),
    ]
    assert [name for name, _ in told] == ["sample 1", "sample 3"]
    assert "NaN" in told[0][1]
    assert "4 numbers" not in told[1][1]
    with pytest.raises(ValueError, match="sample 1 holds NaN"):
        list(made().stream(rows))


def test_sentences_beside_faulty_ones_are_padded(text):
    told = []
    given = ["a pin", 3, "my card is lost for ever and ever"]
    found = list(text.stream(given, on_fault=lambda name, _: told.append(name)))
    assert told == ["sample 1"]
    assert [each.class_name for each in found] == text.predict([given[0], given[2]])


def test_a_model_that_gives_nan_is_named():
    classifier = made()
    with torch.no_grad():
        classifier.model.weight.fill_(np.inf)
    with pytest.raises(ValueError, match="sample 0: the model gives a NaN or an infinity"):
        classifier.predict(np.ones((1, 2)))


@pytest.mark.parametrize(("option", "value"), [("top", 0), ("batch_size", 0)])
def test_numbers_below_one_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must be at least 1. Got 0"):
        list(made().stream(np.ones((1, 2)), **{option: value}))


PEAK = """
import resource, sys, torch
from coarse2fine import load_classifier
torch.set_num_threads(1)
run, many, few = sys.argv[1:]
classifier = load_classifier(run)
sum(1 for _ in classifier.stream(few))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
count = sum(1 for _ in classifier.stream(many))
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def write_rows(file, count):
    """Write rows of 300 bytes."""
    rows = [
        {"width": number / 4, "form": "flat", "height": number, "note": f"{number:>300}"}
        for number in range(count)
    ]
    if file.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), file, compression="none", use_dictionary=False)
    elif file.suffix == ".jsonl":
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    else:
        lines = [",".join(map(str, row.values())) for row in rows]
        file.write_text("\n".join(["width,form,height,note", *lines]))
    return str(file)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_rows(table_run, tmp_path, kind):
    few = write_rows(tmp_path / f"few.{kind}", 5_000)
    many = write_rows(tmp_path / f"many.{kind}", 50_000)
    command = [sys.executable, "-c", PEAK, str(table_run), many, few]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    count, kilobytes = map(int, printed.split())
    assert count == 50_000
    assert kilobytes < 5_000  # the rows alone are 15 MB
