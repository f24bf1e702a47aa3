"""Integers as labels: as many classes as there are different ones, whatever holds them."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from image_files import encoded, photo
from torch.utils.data import Subset, TensorDataset

from coarse2fine.data import load_data

LABELS = [10, 0, 5, 0, 10, 5]
INPUTS = torch.arange(12.0).view(6, 2)
NOTE = "integer labels are not 0 to 2, so each of them is the name of a class, 3 in all: 0, 5, 10"


def csv_of(folder, labels):
    path = folder / "rows.csv"
    rows = [f"{x},{y},{label}" for (x, y), label in zip(INPUTS.tolist(), labels, strict=True)]
    path.write_text("\n".join(["x,z,label", *rows]))
    return path


def parquet_of(folder, labels):
    columns = {"x": INPUTS[:, 0].numpy(), "z": INPUTS[:, 1].numpy(), "label": np.array(labels)}
    pq.write_table(pa.table(columns), folder / "rows.parquet")
    return folder / "rows.parquet"


def parquet_images_of(folder, labels):
    image = pa.array([encoded(photo(4, 4))] * len(labels), pa.binary())
    pq.write_table(pa.table({"image": image, "label": np.array(labels)}), folder / "i.parquet")
    return folder / "i.parquet"


HOLDERS = {
    "csv": csv_of,
    "parquet": parquet_of,
    "images in parquet": parquet_images_of,
    "tensor": lambda _, labels: (INPUTS, torch.tensor(labels)),
    "numpy": lambda _, labels: (INPUTS.numpy(), np.array(labels)),
    "list": lambda _, labels: (INPUTS.tolist(), labels),
    "tensors of a data set": lambda _, labels: TensorDataset(INPUTS, torch.tensor(labels)),
    "pairs": lambda _, labels: list(zip(INPUTS, labels, strict=True)),
    "part of pairs": lambda _, labels: Subset(list(zip(INPUTS, labels, strict=True)), range(6)),
}


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("holder", HOLDERS)
def test_three_numbers_are_three_classes_and_a_note_says_so(holder, kind, tmp_path):
    data = HOLDERS[holder](tmp_path, list(map(kind, LABELS)))
    with pytest.warns(UserWarning, match=NOTE):
        source = load_data(data)
    assert source.train.class_names == ("0", "5", "10")
    assert source.train.targets.tolist() == [2, 0, 1, 0, 2, 1]


@pytest.mark.parametrize("kind", [int, float])
@pytest.mark.parametrize("holder", HOLDERS)
def test_numbers_from_0_on_need_no_note(holder, kind, tmp_path):
    data = HOLDERS[holder](tmp_path, list(map(kind, [2, 0, 1, 0, 2, 1])))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        source = load_data(data)
    assert source.train.class_names == ("0", "1", "2")
    assert source.train.targets.tolist() == [2, 0, 1, 0, 2, 1]


@pytest.mark.parametrize("holder", sorted(HOLDERS.keys() - {"csv", "parquet"}))
def test_given_class_names_are_numbered_as_before(holder, tmp_path):
    names = [f"class {number}" for number in range(11)]
    source = load_data(HOLDERS[holder](tmp_path, LABELS), class_names=names)
    assert source.train.class_names == tuple(names)
    assert source.train.targets.tolist() == LABELS


def test_given_class_names_of_a_table_are_its_labels(tmp_path):
    source = load_data(csv_of(tmp_path, LABELS), class_names=["10", "5", "0"])
    assert source.train.targets.tolist() == [0, 2, 1, 2, 0, 1]
    source = load_data(csv_of(tmp_path, ["1.0", "2.0"] * 3), class_names=["2.0", "1.0"])
    assert source.train.targets.tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("holder", ["csv", "parquet", "images in parquet"])
def test_files_mean_the_same_by_the_names_that_a_run_gives_them(holder, tmp_path):
    source = load_data(
        HOLDERS[holder](tmp_path, LABELS[:1] + [5] * 5), class_names=("0", "5", "10")
    )
    assert source.train.class_names == ("0", "5", "10")
    assert source.train.targets.tolist() == [2, 1, 1, 1, 1, 1]


def test_a_test_counts_by_the_same_names():
    with pytest.warns(UserWarning, match=NOTE):
        source = load_data((INPUTS, LABELS), test=(INPUTS[:2], np.array([5.0, 10.0])))
    assert source.test.targets.tolist() == [1, 2]
    assert source.test.class_names == ("0", "5", "10")


def test_a_class_between_that_only_the_test_has_is_one_too():
    source = load_data((INPUTS, [0, 1, 3, 0, 1, 3]), test=(INPUTS[:1], [2]))
    assert source.train.class_names == ("0", "1", "2", "3")
    assert source.train.targets.tolist() == [0, 1, 3, 0, 1, 3]


@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_a_label_of_the_test_beyond_those_of_training_is_named():
    with pytest.raises(ValueError, match="test: the label 11 of sample 1 is none of the 3 classes"):
        load_data((INPUTS, LABELS), test=(INPUTS[:2], [5, 11]))


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([0.0, 1, 2, 0, 1, 2.5], TypeError, "Got float64, such as 2.5 for sample 5"),
        ([0.0, 1, float("nan"), 0, 1, 2], TypeError, "such as nan for sample 2"),
        ([0, 5, -1, 0, 5, 0], ValueError, "0 or more. Got -1 for sample 2"),
        ([7] * 6, ValueError, "one class alone, '7'"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*integer labels are not 0 to")
def test_what_is_no_class_is_refused(labels, error, message):
    with pytest.raises(error, match=message):
        load_data((INPUTS, labels))
