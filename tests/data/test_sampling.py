"""From a source to training, validation and test samples."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine.data import Data, Source, Split, input_shape, sample
from coarse2fine.data.sampling import class_shares, stratified_counts, warn_of_absent_classes

NAMES = ("cat", "dog", "fox")


def source(counts=(20, 20, 20), test=True, val=False):
    """As many samples of each class, interleaved; a sample's input is its place."""
    order = torch.randperm(sum(counts), generator=torch.Generator().manual_seed(0))
    targets = torch.arange(3).repeat_interleave(torch.tensor(counts))[order]
    train = Split(torch.arange(len(order)).view(-1, 1), targets, NAMES)
    other = Split(torch.full((6, 1), -1), torch.tensor([0, 1, 2] * 2), NAMES)
    return Source("table", train, test=other if test else None, val=other if val else None)


def counts_of(split):
    return torch.bincount(split.targets, minlength=3).tolist()


def rows(data):
    return [split.index.tolist() for split in (data.train, data.val, data.test)]


@given(
    counts=st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(any),
    share=st.floats(0, 1),
)
def test_shares_are_as_equal_as_the_classes_allow(counts, share):
    total = round(share * sum(counts))
    shares = class_shares(np.array(counts), total)
    assert shares.sum() == total
    assert ((shares >= 0) & (shares <= counts)).all()
    unspent = shares[shares < counts]
    if len(unspent):  # a class that has more to give is at most one short of the largest share
        assert shares.max() - unspent.min() <= 1


def test_train_size_takes_as_many_of_each_class():
    data = sample(source(), train_size=30, val_share=0.0)
    assert counts_of(data.train) == [10, 10, 10]
    assert len(data.val) == 0


def test_a_class_with_too_few_samples_gives_all_and_the_others_more():
    assert counts_of(sample(source((30, 4, 30)), train_size=40, val_share=0).train) == [18, 4, 18]


def test_train_size_may_be_a_fraction_and_counts_the_validation_share():
    data = sample(source(), train_size=0.5, val_share=0.2)
    assert (len(data.train), len(data.val)) == (24, 6)
    together = torch.cat([data.train.targets, data.val.targets])
    assert torch.bincount(together).tolist() == [10, 10, 10]
    assert len(sample(source(), train_size=1.0, val_share=0.0).train) == 60


def test_without_shares_everything_is_trained_on_in_the_old_order():
    data = sample(source(), val_share=0.0)
    assert data.train.index.tolist() == list(range(60))
    assert (data.kind, data.class_names) == ("table", NAMES)


@pytest.mark.parametrize("train_size", [None, 30])
def test_the_parts_have_no_sample_in_common(train_size):
    data = sample(source(test=False), train_size=train_size, val_share=0.25, test_share=0.1)
    train, val, test = rows(data)
    assert len({*train, *val, *test}) == len(train) + len(val) + len(test)
    assert len(test) == 6
    assert len(val) == round(0.25 * (len(train) + len(val)))
    if train_size is None:
        assert sorted(train + val + test) == list(range(60))


def test_samples_keep_their_inputs_and_targets():
    given = source(test=False)
    for split in (data := sample(given, train_size=40)).train, data.val, data.test:
        assert split.inputs[:, 0].tolist() == split.index.tolist()
        assert split.targets.tolist() == given.train.targets[split.index].tolist()


def test_a_seed_gives_these_very_samples_on_every_machine():
    given = Source("table", Split(torch.zeros(15, 1), torch.arange(15) % 3, NAMES))
    options = {"train_size": 9, "val_share": 0.34, "test_share": 0.2, "seed": 3}
    assert rows(sample(given, **options, stratify=False)) == [
        [3, 4, 5, 7, 9, 11],
        [1, 12, 14],
        [6, 8, 10],
    ]
    assert rows(sample(given, **options)) == [[0, 1, 6, 7, 8, 11], [2, 10, 12], [3, 5, 13]]


@given(
    counts=st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any),
    share=st.floats(0, 0.99),
    seed=st.integers(0, 9),
)
def test_a_stratified_share_is_each_class_s_own_to_within_one(counts, share, seed):
    numbers, total = np.array(counts), round(share * sum(counts))
    held = stratified_counts(numbers, total, np.random.default_rng(seed).random(len(counts)))
    assert held.sum() == min(total, np.maximum(numbers - 1, 0).sum())
    assert (held <= np.maximum(numbers - 1, 0)).all()  # one of each is left to train on
    if (numbers - 1 >= np.ceil(numbers * share)).all():  # where there are enough
        assert (abs(held - numbers * total / sum(counts)) < 1 + 1e-9).all()


def test_every_class_keeps_its_share_and_one_sample_to_train_on():
    for seed in range(20):
        data = sample(source((50, 10, 1)), val_share=0.2, seed=seed)
        assert (counts_of(data.train), counts_of(data.val)) == ([40, 8, 1], [10, 2, 0])


def test_which_classes_are_rounded_up_is_left_to_chance():
    found = {tuple(counts_of(sample(source((4, 4, 4)), seed=s).val)) for s in range(30)}
    assert found == {(1, 1, 0), (1, 0, 1), (0, 1, 1)}


def test_classes_without_samples_are_named():
    data = sample(source((50, 10, 1)), val_share=0.2)
    with pytest.warns(UserWarning, match="^1 of 3 classes have no validation samples: fox.$"):
        warn_of_absent_classes(data)
    part = data.train.take(np.flatnonzero(data.train.targets == 1))
    with pytest.warns(UserWarning, match="^2 of 3 classes have no training samples: cat, fox.$"):
        warn_of_absent_classes(Data("table", part, data.train, data.test))


def test_nothing_is_said_where_there_is_no_validation():
    warn_of_absent_classes(sample(source(), val_share=0.0))


def test_other_seeds_give_other_samples_and_the_same_seed_the_same():
    assert rows(sample(source(), seed=1)) == rows(sample(source(), seed=1))
    assert rows(sample(source(), seed=1)) != rows(sample(source(), seed=2))


def test_the_test_samples_do_not_depend_on_how_many_are_trained_on():
    large, small = (sample(source(test=False), train_size=size, seed=4) for size in (None, 15))
    assert large.test.index.tolist() == small.test.index.tolist()


def test_a_source_keeps_its_own_validation_and_test_samples():
    given = source(val=True)
    data = sample(given, train_size=30, val_share=0.5, test_share=0.5)
    assert data.val is given.val
    assert data.test is given.test
    assert counts_of(data.train) == [10, 10, 10]


def test_columns_go_with_the_samples():
    given = Source("table", source().train, source().test, columns=("a",))
    assert sample(given).columns == sample(given, val_share=0.0).columns == ("a",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"train_size": 2}, "at least one for each of the 3 classes and at most 60.*Got 2"),
        ({"train_size": 61}, "at most 60, as many as there are. Got 61"),
        ({"train_size": 1.5}, "a number of samples or a fraction. Got 1.5"),
        ({"train_size": 0.0}, "a number of samples or a fraction. Got 0.0"),
        ({"train_size": float("nan")}, "a number of samples or a fraction. Got nan"),
        ({"train_size": float("inf")}, "a number of samples or a fraction. Got inf"),
        ({"train_size": 0.01}, "at least one for each of the 3 classes.*Got 1"),
        ({"val_share": 1.0}, "val_share must be at least 0 and less than 1. Got 1.0"),
        ({"val_share": -0.1}, "val_share must be at least 0 and less than 1. Got -0.1"),
        ({"val_share": float("nan")}, "val_share must be at least 0 and less than 1. Got nan"),
        ({"test_share": 1.0}, "test_share must be at least 0 and less than 1. Got 1.0"),
        ({"test_share": 0.0}, "no test samples, and test_share leaves none; give it as 0.2"),
        ({"val_share": 0.999, "stratify": False}, "val_share"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        sample(source(test="test_share" not in options), **options)


def test_a_validation_share_is_checked_even_where_the_source_has_its_own():
    with pytest.raises(ValueError, match="val_share must be"):
        sample(source(val=True), val_share=2.0)


# ------------------------------------------------------------------------- fingerprints


def images(fill=0, targets=(0, 1, 2), names=NAMES, dtype=torch.uint8, place=None):
    pixels = torch.full((3, 1, 12, 12), fill, dtype=dtype)
    if place is not None:
        pixels[place] = 1
    split = Split(pixels, torch.tensor(targets), names)
    return sample(Source("image", split, test=split), val_share=0.0).fingerprint()


def test_the_fingerprint_is_the_same_for_the_same_samples():
    assert images() == images()


@pytest.mark.parametrize(
    "changes",
    [
        {"fill": 1},
        {"place": (2, 0, 7, 5)},
        {"targets": (0, 1, 1)},
        {"names": ("cat", "dog", "wolf")},
        {"dtype": torch.float32},
    ],
    ids=str,
)
def test_the_fingerprint_changes_with_the_samples(changes):
    assert images(**changes) != images()


def test_the_fingerprint_changes_with_the_seed_of_the_split():
    assert sample(source(), seed=1).fingerprint() != sample(source(), seed=2).fingerprint()


def test_the_fingerprint_of_a_table_sees_every_cell():
    pixels = torch.zeros(200, 10)
    changed = pixels.clone()
    changed[150, 5] = 1
    found = {
        sample(Source("table", split, test=split), val_share=0.0).fingerprint()
        for split in (Split(x, torch.zeros(200).long(), NAMES) for x in (pixels, changed))
    }
    assert len(found) == 2


def test_inputs_of_one_number_a_sample_have_a_fingerprint():
    split = Split(torch.arange(6.0), torch.tensor([0, 1, 2] * 2), NAMES)
    assert len(sample(Source("other", split, test=split)).fingerprint()) == 32


# ------------------------------------------------------------------------------- shapes


class Lazy:
    def __len__(self):
        return 1

    def read(self, row, rng):
        assert rng is None
        return torch.zeros(3, 4 + row, 5)


def test_the_shape_of_a_sample_is_known_without_reading_all():
    assert input_shape(Split(torch.zeros(2, 3, 8, 9), [0, 1], NAMES)) == (3, 8, 9)
    assert input_shape(Split(Lazy(), [0], NAMES)) == (3, 4, 5)
