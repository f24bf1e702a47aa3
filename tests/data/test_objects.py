"""Python objects as data."""

import pickle
import random

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
)

from coarse2fine.data.sources.objects import from_python
from coarse2fine.data.sources.text import tokens
from coarse2fine.data.split import LazyInputs, Split

Y = [0, 1, 1]


class Items(Dataset):
    """Gives (input, target) from lists, and notes what it was asked for."""

    def __init__(self, inputs, answers, /, **attributes):
        self.inputs, self.answers, self.asked = inputs, answers, []
        vars(self).update(attributes)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, row):
        self.asked.append(row)
        return self.inputs[row], self.answers[row]


class Random(Dataset):
    """Draws its inputs from the three global generators."""

    def __len__(self):
        return 3

    def __getitem__(self, row):
        draws = torch.rand(2).tolist() + np.random.rand(2).tolist() + [random.random()]  # noqa: NPY002
        return torch.tensor([row, *draws]), row % 2


class Stream(IterableDataset):
    def __iter__(self):
        yield 0, 0


# --------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize(
    ("inputs", "kind", "shape", "dtype"),
    [
        (torch.zeros(3, 1, 8, 8, dtype=torch.uint8), "image", (3, 1, 8, 8), torch.uint8),
        (torch.zeros(3, 3, 8, 8, dtype=torch.float64), "image", (3, 3, 8, 8), torch.float32),
        (np.zeros((3, 8, 9, 3), np.uint8), "image", (3, 3, 8, 9), torch.uint8),
        (np.zeros((3, 3, 8, 9), np.uint8), "image", (3, 3, 8, 9), torch.uint8),
        (np.zeros((3, 8, 9, 3), np.float32), "image", (3, 3, 8, 9), torch.float32),
        (np.zeros((3, 8, 9, 1)), "image", (3, 1, 8, 9), torch.float32),
        (np.zeros((3, 8, 9, 4), np.float16), "image", (3, 4, 8, 9), torch.float32),
        (np.zeros((3, 3, 8, 9)), "image", (3, 3, 8, 9), torch.float32),
        (np.zeros((3, 1, 8, 3)), "image", (3, 1, 8, 3), torch.float32),
        ([np.zeros((8, 9, 3))] * 3, "image", (3, 3, 8, 9), torch.float32),
        (torch.zeros(3, 8, 9, 3), "image", (3, 8, 9, 3), torch.float32),
        (np.zeros((3, 28, 28), np.uint8), "image", (3, 1, 28, 28), torch.uint8),
        ([Image.new("L", (9, 8))] * 3, "image", (3, 1, 8, 9), torch.uint8),
        (np.zeros((3, 5)), "table", (3, 5), torch.float32),
        (np.zeros((3, 5), ">f8"), "table", (3, 5), torch.float32),
        (np.zeros((3, 64), np.uint8), "table", (3, 64), torch.float32),
        (np.zeros((3, 5), bool), "table", (3, 5), torch.float32),
        ([[1.0, 2], [3, 4], [5, 6]], "table", (3, 2), torch.float32),
        (np.ones((3, 5), np.int32), "text", (3, 5), torch.int64),
        (np.ones((3, 5), np.uint16), "text", (3, 5), torch.int64),
        (torch.zeros(3, 2, 3, 8, 8), "other", (3, 2, 3, 8, 8), torch.float32),
        (torch.zeros(3, 7, 2), "other", (3, 7, 2), torch.float32),
    ],
)
def test_the_kind_is_told_by_shape_and_type(inputs, kind, shape, dtype):
    source = from_python((inputs, Y))
    assert source.kind == kind
    assert source.train.inputs.shape == shape
    assert source.train.inputs.dtype == dtype
    assert source.train.targets.tolist() == Y


@pytest.mark.parametrize("wrap", [list, tuple, np.array, lambda x: np.array(x, object)])
def test_strings_are_text(wrap):
    sentences = ["my card", "hello", "lost"]
    source = from_python((wrap(sentences), Y))
    assert source.kind == "text"
    assert torch.equal(source.train.inputs, tokens(sentences))
    assert source.train.sentences == tuple(sentences)


def test_what_is_no_text_has_no_sentences():
    assert from_python((torch.ones(3, 4), Y)).train.sentences is None
    assert from_python((torch.ones(3, 4).long(), Y)).train.sentences is None  # tokens already


def test_columns_of_pandas_will_do():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": ["a", "b"], "x": [1.0, 2.0], "y": ["p", "q"]}, index=[5, 7])
    assert from_python((frame["text"], frame["y"])).kind == "text"
    source = from_python((frame[["x"]], frame["y"]))
    assert source.train.inputs.tolist() == [[1], [2]]
    assert source.train.class_names == ("p", "q")


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_channels_last_are_moved_and_not_merely_renamed(rng, dtype):
    images = rng.integers(0, 256, (3, 8, 9, 3)).astype(dtype)
    assert from_python((images, Y)).train.inputs[1, 2, 3, 4] == images[1, 3, 4, 2]


def test_arrays_that_must_not_be_written_to_are_copied():
    array = np.zeros((3, 5), np.float32)
    assert from_python((array, Y)).train.inputs.data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert from_python((array, Y)).train.inputs.data_ptr() != array.ctypes.data


def test_a_test_and_a_validation_share_the_classes_of_training():
    source = from_python(
        (torch.zeros(3, 4), [0, 2, 1]), (torch.ones(1, 4), [2]), (torch.ones(1, 4), [0])
    )
    for split in (source.train, source.test, source.val):
        assert split.class_names == ("0", "1", "2")
    assert source.test.targets.tolist() == [2]


def test_targets_may_be_words():
    x = torch.zeros(3, 4)
    source = from_python((x, ["dog", "cat", "dog"]), test=(x[:1], np.array(["cat"])))
    assert source.train.class_names == ("cat", "dog")
    assert source.train.targets.tolist() == [1, 0, 1]
    assert source.test.targets.tolist() == [0]
    assert from_python((x, ["b", "a", "b"]), class_names=["b", "a"]).train.targets.tolist() == [
        0,
        1,
        0,
    ]


def test_a_split_is_taken_as_it_is():
    split = Split(torch.zeros(2, 4), torch.tensor([0, 1]), ("p", "q"), torch.tensor([7, 9]))
    source = from_python(split, test=(torch.zeros(1, 4), ["q"]))
    assert source.train is split
    assert source.test.class_names == ("p", "q")
    assert source.kind == "table"


# ------------------------------------------------------------------------------ data sets


def test_tensors_of_a_data_set_are_used_as_they_are():
    whole = TensorDataset(torch.arange(8.0).view(4, 2), torch.tensor([0, 1, 0, 1]))
    part = Subset(Subset(whole, [3, 2, 0]), [0, 2])
    assert torch.equal(from_python(whole).train.inputs, whole.tensors[0])
    train = from_python(part).train
    assert train.inputs.tolist() == [[6, 7], [0, 1]]
    assert train.targets.tolist() == [1, 0]


def test_other_data_sets_are_read_when_needed():
    items = Items([np.full((8, 9, 3), row, np.uint8) for row in range(3)], Y, targets=Y)
    train = from_python(items).train
    assert isinstance(train.inputs, LazyInputs)
    assert set(items.asked) <= {0, 2}
    assert train.inputs.read(1, None).shape == (3, 8, 9)
    assert train.inputs.read(1, None).unique().tolist() == [1]


@pytest.mark.parametrize(
    ("item", "kind", "shape"),
    [
        (Image.new("RGB", (9, 8)), "image", (3, 8, 9)),
        (Image.new("L", (9, 8)), "image", (1, 8, 9)),
        (Image.new("RGBA", (9, 8)), "image", (3, 8, 9)),
        (Image.new("P", (9, 8)), "image", (3, 8, 9)),
        (torch.zeros(3, 8, 9), "image", (3, 8, 9)),
        (np.zeros((8, 9, 3), np.float32), "image", (3, 8, 9)),
        (np.zeros(5), "table", (5,)),
        ([1.0, 2.0], "table", (2,)),
        (torch.tensor([4, 0]), "text", (2,)),
    ],
)
def test_items_become_tensors(item, kind, shape):
    source = from_python(Items([item] * 3, Y))
    assert source.kind == kind
    assert source.train.inputs.read(1, None).shape == shape


def test_sentences_of_a_data_set_become_tokens():
    source = from_python(Items(["my card", "hello"], [torch.tensor(1), np.int64(0)]))
    assert torch.equal(source.train.inputs, tokens(["my card", "hello"]))
    assert source.train.sentences == ("my card", "hello")
    assert source.train.targets.tolist() == [1, 0]


def test_a_list_of_pairs_is_a_data_set():
    pairs = [(torch.ones(4), 0), (torch.zeros(4), 1)]
    assert from_python(pairs).train.inputs.read(0, None).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize(
    ("attributes", "trusted"),
    [
        ({"targets": Y}, True),
        ({"labels": torch.tensor(Y)}, True),
        ({"targets": Y, "target_transform": abs}, False),
        ({"targets": Y[:2]}, False),
        ({"targets": [1, 1, 1]}, False),
        ({"labels": np.eye(3)}, False),
        ({}, False),
    ],
)
def test_targets_are_those_of_the_items_and_told_ones_save_reading(attributes, trusted):
    items = Items(list(torch.zeros(3, 4)), Y, **attributes)
    assert from_python(items).train.targets.tolist() == Y
    assert (1 not in items.asked) == trusted


def test_targets_are_looked_for_within_parts_and_sums():
    items = Items(list(torch.zeros(3, 4)), Y, targets=Y, classes=["cat", "dog"])
    train = from_python(Subset(items, [2, 1, 0])).train
    assert train.targets.tolist() == [1, 1, 0]
    assert train.class_names == ("cat", "dog")
    assert from_python(ConcatDataset([items, items])).train.targets.tolist() == Y + Y
    assert 1 not in items.asked[-4:]


def test_told_classes_are_used_where_there_are_enough():
    for classes, expected in (("abc", ("a", "b", "c")), ("a", ("0", "1"))):
        items = Items(list(torch.zeros(3, 4)), Y, classes=list(classes))
        assert from_python(items).train.class_names == expected
    assert from_python(items, class_names=["u", "v"]).train.class_names == ("u", "v")


# ----------------------------------------------------------------------------- randomness


def draw(inputs, row, seed):
    return inputs.read(row, None if seed is None else np.random.default_rng(seed)).tolist()


def test_random_transforms_are_a_function_of_what_is_passed():
    inputs = from_python(Random()).train.inputs
    first = [draw(inputs, row, seed) for row, seed in ((1, 5), (1, 6), (1, None), (2, None))]
    torch.rand(3), np.random.rand(3), random.random()  # noqa: NPY002
    copy = pickle.loads(pickle.dumps(inputs))
    again = [draw(copy, row, seed) for row, seed in ((1, 5), (1, 6), (1, None), (2, None))]
    assert first == again
    for column in range(1, 6):
        assert len({sample[column] for sample in first}) == 4


def test_the_global_generators_are_left_as_they_were():
    states = []
    for read in (False, True):
        torch.manual_seed(1), np.random.seed(1), random.seed(1)  # noqa: NPY002
        if read:
            from_python(Random()).train.inputs.read(0, np.random.default_rng(0))
        states.append((torch.rand(1).item(), np.random.rand(), random.random()))  # noqa: NPY002
    assert states[0] == states[1]


# -------------------------------------------------------------------------------- faults

X = torch.zeros(3, 4)
HOLE = torch.tensor([[1.0], [float("nan")], [2.0]])


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (Stream(), TypeError, "train must be .*, not an IterableDataset; give list"),
        (DataLoader(TensorDataset(X, X)), TypeError, "not a DataLoader; give its .dataset"),
        (X, TypeError, "train must be a pair .* Got Tensor"),
        ({"x": X}, TypeError, "Got dict"),
        (7, TypeError, "Got int"),
        ((X, torch.eye(3)), ValueError, r"one class a sample.*Got the shape \(3, 3\); .*argmax"),
        (Items(list(X), list(torch.eye(3))), ValueError, r"Got the shape \(3, 3\)"),
        ((X, [0.0, 1.0, 0.5]), TypeError, "targets must be integers or strings. Got float64"),
        ((X, [0, 1]), ValueError, "3 inputs but 2 targets"),
        ((X, [0, -1, 1]), ValueError, "Got -1 for sample 1"),
        ((X, [0, 0, 0]), ValueError, "one class alone, '0'"),
        (([], []), ValueError, "train has no samples"),
        (Items([], []), ValueError, "train has no samples"),
        ((HOLE, Y), ValueError, "train: sample 1 holds NaN or infinity"),
        ((np.array([[1.0], [2], [1e39]]), Y), ValueError, "train: sample 2 holds NaN or infinity"),
        ((X.long() - 1, Y), ValueError, "are tokens, and none may be negative"),
        (
            ([X[0], X[1], X[2, :3]], Y),
            ValueError,
            r"sample 2 has the shape \(3,\), but sample 0 \(4,\)",
        ),
        (([{}, {}, {}], Y), TypeError, "sample 0 must hold numbers.* Got dict"),
        ((["a", 1, "b"], Y), TypeError, r"sentences\[1\] must be a string"),
        (list(X), TypeError, r"sample 0 must be a pair \(input, target\). Got Tensor"),
        ([(1, 2, 3)], TypeError, r"sample 0 must be a pair \(input, target\). Got 3 values"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(data, error, message):
    with pytest.raises(error, match=message):
        from_python(data)


def test_items_that_differ_or_hold_nan_are_named_when_they_are_read():
    inputs = from_python(Items([X[0], X[0, :3], HOLE.expand(3, 4)[1]], Y)).train.inputs
    with pytest.raises(
        ValueError, match=r"train: sample 1 has the shape \(3,\), but sample 0 \(4,\)"
    ):
        inputs.read(1, None)
    with pytest.raises(ValueError, match="train: sample 2 holds NaN or infinity"):
        inputs.read(2, None)


@pytest.mark.parametrize(
    ("test", "message"),
    [
        ((torch.zeros(1, 5), [0]), r"test has inputs of shape \(5,\).*train of shape \(4,\)"),
        ((torch.ones(1, 4).long(), [0]), r"test has inputs of shape \(4,\) \(text\)"),
        ((torch.zeros(1, 4), [2]), "must lie in 0..1.* Got 2 for sample 0"),
        ((torch.zeros(1, 4), ["c"]), "test: the label 'c' of sample 0 is none of the 2 classes"),
        (Split(X, torch.tensor(Y), ("p", "q")), "test is a Split of the classes p, q, .*are 0, 1"),
    ],
)
def test_a_test_must_go_with_training(test, message):
    with pytest.raises(ValueError, match=message):
        from_python((X, Y), test)
