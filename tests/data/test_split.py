"""Samples with their classes, and what is refused."""

import numpy as np
import pytest
import torch

from coarse2fine import Hierarchy
from coarse2fine.data import Groups, LazyInputs, Source, Split

NAMES = ("cat", "dog", "fox")


class Counting:
    """Lazy inputs that say which row was read, and with what."""

    def __len__(self):
        return 4

    def read(self, row, rng):
        return torch.tensor([row, 0 if rng is None else int(rng.integers(100))])


def test_samples_are_counted_from_zero_unless_the_index_is_given():
    split = Split(torch.zeros(3, 5), torch.tensor([0, 2, 1]), NAMES)
    assert len(split) == 3
    assert split.index.tolist() == [0, 1, 2]
    assert Split(split.inputs, split.targets, NAMES, [7, 8, 9]).index.tolist() == [7, 8, 9]


@pytest.mark.parametrize(
    "targets", [[0, 2, 1], np.array([0, 2, 1], np.uint8), torch.tensor([0, 2, 1]).int()]
)
def test_targets_of_any_integer_type_become_int64_tensors(targets):
    found = Split(torch.zeros(3, 5), targets, NAMES).targets
    assert found.dtype == torch.int64
    assert found.tolist() == [0, 2, 1]


def test_class_names_become_a_tuple_of_strings():
    assert Split(torch.zeros(1, 5), [1], [3, 4]).class_names == ("3", "4")


def test_take_keeps_the_order_asked_for_and_the_place_in_the_source():
    split = Split(torch.arange(8).view(4, 2), torch.tensor([0, 1, 2, 0]), NAMES)
    taken = split.take([3, 1]).take(np.array([1, 0, 0]))
    assert taken.inputs.tolist() == [[2, 3], [6, 7], [6, 7]]
    assert taken.targets.tolist() == [1, 0, 0]
    assert taken.index.tolist() == [1, 3, 3]
    assert taken.class_names == NAMES


def test_sentences_stay_with_their_samples():
    split = Split(torch.zeros(3, 5), [0, 2, 1], NAMES, sentences=("one", "two", "three"))
    assert split.take([2, 0]).take([0, 0]).sentences == ("three", "three")
    assert Split(torch.zeros(3, 5), [0, 2, 1], NAMES).take([1]).sentences is None
    with pytest.raises(ValueError, match="there are 2 sentences but 3 targets"):
        Split(torch.zeros(3, 5), [0, 2, 1], NAMES, sentences=("one", "two"))


def test_take_of_nothing_is_an_empty_split():
    taken = Split(torch.zeros(3, 5), torch.tensor([0, 2, 1]), NAMES).take([])
    assert (len(taken), taken.inputs.shape) == (0, (0, 5))


def test_taken_lazy_inputs_read_the_rows_of_the_source():
    taken = Split(Counting(), torch.tensor([0, 1, 2, 0]), NAMES).take([3, 1]).take([1, 0])
    assert isinstance(taken.inputs, LazyInputs)
    assert len(taken.inputs) == 2
    assert [taken.inputs.read(row, None).tolist() for row in (0, 1)] == [[1, 0], [3, 0]]
    drawn = taken.inputs.read(0, np.random.default_rng(5))
    assert drawn.tolist() == [1, np.random.default_rng(5).integers(100)]


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.tensor([0.0, 1.0, 2.0]), r"must be integers of shape \(N\). Got torch.float32"),
        (torch.zeros(3, 1).long(), r"of shape \(3, 1\)"),
        (torch.tensor([0, 1]), "there are 3 inputs but 2 targets"),
        (torch.tensor([0, 3, 1]), r"must lie in 0..2, one of the 3 classes. Got 3 for sample 1"),
        (torch.tensor([0, 1, -1]), "Got -1 for sample 2"),
    ],
)
def test_targets_that_cannot_be_are_refused(targets, message):
    with pytest.raises(ValueError, match=message):
        Split(torch.zeros(3, 5), targets, NAMES)


def test_a_wrong_target_is_named_by_its_place_in_the_source():
    with pytest.raises(ValueError, match="Got 9 for sample 41"):
        Split(torch.zeros(2, 5), torch.tensor([0, 9]), NAMES, torch.tensor([40, 41]))


def test_an_index_of_another_length_is_refused():
    with pytest.raises(ValueError, match="there are 3 index but 2 targets"):
        Split(torch.zeros(2, 5), torch.tensor([0, 1]), NAMES, torch.arange(3))


class Doubled:
    """Lazy inputs whose sample is its row, and twice that where it is augmented."""

    def __len__(self):
        return 3

    def read(self, row, rng):
        return torch.tensor([row if rng is None else 2 * row])


@pytest.mark.parametrize("inputs", [torch.tensor([[0], [1], [2]]), Doubled()])
def test_a_sample_is_read_without_augmentation(inputs):
    split = Split(inputs, torch.tensor([0, 0, 1]), ("a", "b"))
    assert split.sample(2).tolist() == [2]
    assert split.take([1]).sample(0).tolist() == [1]


# ------------------------------------------------------------------------------- groups


def grouped(groups, targets=(2, 0, 1, 0)):
    split = Split(torch.zeros(len(targets), 5), torch.tensor(targets), NAMES)
    return Source("table", split, groups=Groups(torch.tensor(groups), ("wild", "pet")))


def test_groups_are_a_hierarchy_of_the_classes_in_their_order():
    found = grouped([0, 1, 1, 1]).own_hierarchy()
    wanted = Hierarchy.from_taxonomy({"wild": ["fox"], "pet": ["cat", "dog"]}, NAMES)
    assert found == wanted
    assert found.class_names == NAMES
    assert set(found.cluster_names[0]) == {"wild", "pet"}


def test_a_class_in_two_groups_is_named():
    with pytest.raises(ValueError, match=r"cat.*(pet.*wild|wild.*pet)"):
        grouped([0, 1, 1, 0]).own_hierarchy()


def test_data_without_groups_has_no_hierarchy_of_its_own():
    split = Split(torch.zeros(1, 5), [1], NAMES)
    with pytest.raises(ValueError, match="the data has no hierarchy of its own, as cifar100 has"):
        Source("table", split).own_hierarchy()
