"""Batches: every sample once, dealt out to processes, and what is done to images."""

import os
import signal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine.data import Batches, Split, Transform, channel_statistics

NAMES = ("cat", "dog", "fox")
AUGMENTING = Transform(padding=2, flip=True)


def table(count=23):
    """A sample's input is its row, its class the row modulo 3."""
    return Split(torch.arange(count).float().view(-1, 1), torch.arange(count) % 3, NAMES)


def images(count=9, height=5, width=6):
    pixels = torch.randint(1, 256, (count, 3, height, width), dtype=torch.uint8)
    return Split(pixels, torch.arange(count) % 3, NAMES)


class Lazy:
    """Reads the rows of a tensor; with randomness it adds a draw to them."""

    def __init__(self, inputs):
        self.inputs = inputs

    def __len__(self):
        return len(self.inputs)

    def read(self, row, rng):
        return self.inputs[row] + (0 if rng is None else int(rng.integers(1000)))


def rows(batches):
    return [batch.rows.tolist() for batch in batches]


# -------------------------------------------------------------------------------- order


@pytest.mark.parametrize("batch_size", [1, 5, 23, 100])
def test_every_sample_comes_exactly_once(batch_size):
    batches = Batches(table(), Transform(), batch_size)
    for found in (list(batches.shuffled((0,))), list(batches.in_order())):
        assert len(found) == -(-23 // batch_size)
        assert torch.cat([batch.rows for batch in found]).sort()[0].tolist() == list(range(23))
        for batch in found:
            assert batch.inputs[:, 0].tolist() == batch.rows.tolist()
            assert batch.targets.tolist() == [row % 3 for row in batch.rows]
            assert (batch.total, batch.share) == (len(batch.rows), 1.0)


def test_evaluation_keeps_the_order():
    assert rows(Batches(table(8), Transform(), 3).in_order()) == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_a_last_batch_of_one_sample_joins_the_one_before():
    assert rows(Batches(table(7), Transform(), 3).in_order()) == [[0, 1, 2], [3, 4, 5, 6]]
    assert rows(Batches(table(2), Transform(), 1).in_order()) == [[0], [1]]
    assert rows(Batches(table(1), Transform(), 3).in_order()) == [[0]]


class LazyFiles(Lazy):
    is_plain = True


def test_images_from_files_are_read_at_random_only_where_that_is_asked_for():
    inputs, targets = torch.zeros(4, 2), torch.zeros(4).long()
    files = Split(LazyFiles(inputs), targets, NAMES).take([0, 1, 2, 3])
    (plain,) = Batches(files, Transform(), 4, augments_files=False).shuffled((0,))
    assert plain.inputs.sum() == 0
    (augmented,) = Batches(files, Transform(), 4).shuffled((0,))
    assert augmented.inputs.sum() > 0
    own = Split(Lazy(inputs), targets, NAMES)  # whose randomness is its owner's
    (random,) = Batches(own, Transform(), 4, augments_files=False).shuffled((0,))
    assert random.inputs.sum() > 0


class Deadly(Lazy):
    def read(self, row, rng):  # noqa: ARG002
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_death_of_a_reading_process_is_an_error_and_no_hang():
    split = Split(Deadly(torch.zeros(4, 2)), torch.zeros(4).long(), NAMES)
    with pytest.raises(ChildProcessError, match="a process that reads data has died"):
        list(Batches(split, Transform(), 4, workers=1).in_order())


class Broken(Lazy):
    def read(self, row, rng):  # noqa: ARG002
        raise ValueError(f"cat-{row}.jpg is cut short.")


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_in_reading_is_the_same_with_workers(workers):
    split = Split(Broken(torch.zeros(4, 2)), torch.zeros(4).long(), NAMES)
    with pytest.raises(ValueError, match="^cat-0.jpg is cut short.$"):
        list(Batches(split, Transform(), 4, workers=workers).in_order())


def test_the_order_is_a_function_of_the_key_alone():
    batches = Batches(table(), Transform(), 8)
    first = rows(batches.shuffled((0, 1)))
    torch.manual_seed(123)
    assert rows(Batches(table(), Transform(), 8).shuffled((0, 1))) == first
    assert rows(batches.shuffled((1, 0))) != first
    assert rows(batches.shuffled((0, 2))) != first
    assert first != rows(batches.in_order())


def test_shuffling_leaves_the_global_generator_alone():
    split, before = images(), torch.get_rng_state()
    list(Batches(split, AUGMENTING, 4).shuffled((0,)))
    lazy = Split(Lazy(torch.zeros(4, 2)), torch.zeros(4).long(), NAMES)
    list(Batches(lazy, Transform(), 2).shuffled((0,)))
    assert torch.equal(torch.get_rng_state(), before)


def test_no_samples_give_no_batches():
    batches = Batches(table().take([]), Transform(), 4)
    assert (list(batches.in_order()), list(batches.shuffled((0,)))) == ([], [])


# ----------------------------------------------------------------------- several processes


@pytest.mark.parametrize("world", [2, 3, 5])
@pytest.mark.parametrize("count", [23, 21, 16])
def test_processes_divide_each_batch_and_their_mean_is_the_whole(world, count):
    split, losses = table(count), torch.randn(count, dtype=torch.float64)
    alone = list(Batches(split, Transform(), 5).shuffled((7,)))
    parts = [
        list(Batches(split, Transform(), 5, rank=rank, world=world).shuffled((7,)))
        for rank in range(world)
    ]
    assert {len(part) for part in parts} == {len(alone)}
    for whole, *dealt in zip(alone, *parts, strict=True):
        working = [batch for batch in dealt if batch.share]
        assert sorted(torch.cat([b.rows for b in working]).tolist()) == sorted(whole.rows.tolist())
        assert max(len(b.rows) for b in working) - min(len(b.rows) for b in working) <= 1
        assert {batch.total for batch in dealt} == {whole.total}
        mean = sum(losses[batch.rows].mean() * batch.share for batch in dealt) / world
        assert mean == pytest.approx(losses[whole.rows].mean().item(), rel=1e-12)


def test_a_process_without_samples_computes_one_that_does_not_count():
    (batch,) = Batches(table(2), Transform(), 5, rank=2, world=3).in_order()
    assert (len(batch.rows), len(batch.inputs), len(batch.targets), batch.share) == (1, 1, 1, 0.0)


@given(count=st.integers(1, 12), parts=st.integers(1, 15), world=st.integers(1, 3))
def test_the_parts_of_a_batch_share_its_weight_by_their_sizes(count, parts, world):
    for rank in range(world):
        (batch,) = Batches(table(count), Transform(), 50, rank=rank, world=world).in_order()
        pieces = batch.split(parts)
        assert len(pieces) == min(parts, len(batch.rows))
        assert torch.cat([piece.rows for piece in pieces]).tolist() == batch.rows.tolist()
        assert torch.cat([piece.inputs for piece in pieces]).equal(batch.inputs)
        assert torch.cat([piece.targets for piece in pieces]).equal(batch.targets)
        assert {piece.total for piece in pieces} == {count}
        assert sum(piece.share for piece in pieces) == pytest.approx(batch.share)
        for piece in pieces:
            assert piece.share == pytest.approx(batch.share * len(piece.rows) / len(batch.rows))


@pytest.mark.parametrize("world", [2, 3])
def test_several_processes_see_the_augmented_images_that_one_would(world):
    split = images()
    alone = list(Batches(split, AUGMENTING, 4).shuffled((1, 2)))
    for rank in range(world):
        dealt = Batches(split, AUGMENTING, 4, rank=rank, world=world).shuffled((1, 2))
        for whole, part in zip(alone, dealt, strict=True):
            expected = whole.inputs[rank::world] if part.share else whole.inputs[:1]
            assert part.inputs.equal(expected)


# ----------------------------------------------------------------------------- transforms


def cropped_and_flipped(image, padding, draws):
    """One image by hand: numpy pads, cuts and mirrors it."""
    height, width = image.shape[1:]
    padded = np.pad(image, ((0, 0), (padding, padding), (padding, padding)))
    top, left = (int(draw * (2 * padding + 1)) for draw in draws[:2])
    cut = padded[:, top : top + height, left : left + width]
    return cut[:, :, ::-1] if draws[2] < 0.5 else cut


@pytest.mark.parametrize("padding", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_augmented_images_are_those_cut_one_by_one(padding, dtype):
    pixels, draws = images(40).inputs.to(dtype), torch.rand(40, 3)
    found = Transform(padding=padding, flip=True).augment(pixels, draws)
    for image, draw, result in zip(pixels, draws, found, strict=True):
        wanted = cropped_and_flipped(image.numpy(), padding, draw.tolist())
        assert result.numpy().tolist() == wanted.tolist()


def test_every_shift_and_both_mirrorings_occur():
    column = torch.arange(1, 6, dtype=torch.uint8)
    pixels = column.repeat(2000, 1, 5, 1)
    found = {
        tuple(image[0, 2].tolist()) for image in AUGMENTING.augment(pixels, torch.rand(2000, 3))
    }
    right = [(0, 0, 1, 2, 3), (0, 1, 2, 3, 4), (1, 2, 3, 4, 5), (2, 3, 4, 5, 0), (3, 4, 5, 0, 0)]
    assert found >= {*right, *(row[::-1] for row in right)}


def test_only_training_is_augmented_and_each_epoch_anew():
    split = images()
    batches = Batches(split, AUGMENTING, 9)
    (plain,) = batches.in_order()
    assert plain.inputs.equal(split.inputs.float() / 255)
    (first,), (second,), (again,) = (batches.shuffled((0, epoch)) for epoch in (0, 1, 0))
    assert first.inputs.equal(again.inputs)
    assert not first.inputs[first.rows.argsort()].equal(second.inputs[second.rows.argsort()])
    assert not first.inputs.equal(split.inputs[first.rows].float() / 255)


def test_without_augmentation_training_sees_the_images_as_they_are():
    split = images()
    (batch,) = Batches(split, Transform(), 9).shuffled((0,))
    assert batch.inputs.equal(split.inputs[batch.rows].float() / 255)


def test_bytes_are_scaled_and_then_normalised_channel_by_channel():
    pixels = torch.tensor([0, 51, 255], dtype=torch.uint8).view(1, 3, 1, 1).expand(2, 3, 2, 2)
    found = Transform(mean=(0.5, 0.1, 0.0), std=(0.25, 0.05, 2.0)).normalise(pixels)
    assert found.dtype == torch.float32
    assert found[0, :, 0, 1].tolist() == pytest.approx([-2.0, 2.0, 0.5])


def test_floats_are_not_scaled_and_are_normalised_column_by_column():
    rows = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    found = Transform(mean=(2.0, 10.0), std=(1.0, 5.0)).normalise(rows)
    assert found.tolist() == [[-1.0, 0.0], [1.0, 4.0]]
    assert rows.tolist() == [[1.0, 10.0], [3.0, 30.0]]
    assert Transform().normalise(rows).equal(rows)


def test_tokens_stay_integers():
    split = Split(torch.tensor([[1, 2, 0]]), [0], NAMES)
    (batch,) = Batches(split, Transform(), 4).in_order()
    assert batch.inputs.dtype == torch.int64
    assert batch.inputs.tolist() == [[1, 2, 0]]


# -------------------------------------------------------------------------------- layout


@pytest.mark.parametrize("transform", [Transform(), AUGMENTING, Transform(padding=2)])
@pytest.mark.parametrize("lazy", [False, True])
def test_channels_last_changes_the_layout_and_not_the_numbers(transform, lazy):
    split = images()
    if lazy:
        split = Split(Lazy(split.inputs), split.targets, NAMES)
    usual = Batches(split, transform, 4)
    other = Batches(split, transform, 4, channels_last=True)
    assert (usual.is_channels_last, other.is_channels_last) == (False, True)
    for a, b in zip(usual.shuffled((0,)), other.shuffled((0,)), strict=True):
        assert a.inputs.equal(b.inputs)
        assert a.inputs.is_contiguous()
        assert b.inputs.is_contiguous(memory_format=torch.channels_last)
    (first, *_) = other.in_order()
    assert first.inputs.is_contiguous(memory_format=torch.channels_last)
    assert first.split(2)[1].inputs.is_contiguous(memory_format=torch.channels_last)


def test_tables_have_no_channels():
    assert not Batches(table(), Transform(), 4, channels_last=True).is_channels_last


# ----------------------------------------------------------------------------------- lazy


@pytest.mark.parametrize("workers", [0, 2])
def test_lazy_inputs_give_the_batches_of_those_in_memory(workers):
    split = images()
    lazy = Split(Lazy(split.inputs), split.targets, NAMES)
    transform = Transform((0.5,) * 3, (0.2,) * 3)
    found = list(Batches(lazy, transform, 4, workers=workers).in_order())
    wanted = list(Batches(split, transform, 4).in_order())
    assert rows(found) == rows(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.inputs.equal(b.inputs)
        assert a.targets.equal(b.targets)


def test_what_lazy_inputs_draw_depends_on_key_and_row_but_not_on_workers_or_processes():
    split = Split(Lazy(torch.zeros(10, 1)), torch.zeros(10).long(), NAMES)

    def drawn(key, **options):
        """What each row drew."""
        parts = list(Batches(split, Transform(), 4, **options).shuffled(key))
        return {int(r): int(x) for b in parts for r, x in zip(b.rows, b.inputs, strict=True)}

    alone = drawn((0, 1))
    assert len(set(alone.values())) > 5
    assert drawn((0, 1), workers=2) == alone
    assert drawn((0, 2)) != alone
    for rank in (0, 1):
        dealt = drawn((0, 1), rank=rank, world=2)
        assert dealt == {row: alone[row] for row in dealt}


# ----------------------------------------------------------------------------- statistics


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_statistics_are_those_of_numpy(dtype):
    pixels = images(30).inputs.to(dtype)
    scaled = pixels.double().numpy() / (255 if dtype == torch.uint8 else 1)
    mean, std = channel_statistics(pixels)
    assert mean == pytest.approx(scaled.mean((0, 2, 3)), rel=1e-12)
    assert std == pytest.approx(scaled.std((0, 2, 3)), rel=1e-9)


def test_columns_have_their_own_statistics():
    mean, std = channel_statistics(torch.tensor([[1.0, 5.0], [3.0, 5.0], [5.0, 5.0]]))
    assert mean == (3.0, 5.0)
    assert std == pytest.approx((np.sqrt(8 / 3), 1.0))


@pytest.mark.parametrize("count", [7, 100, 1000])
def test_a_channel_of_one_shade_has_deviation_one(count):
    shades = torch.arange(256, dtype=torch.uint8).view(1, 256, 1).expand(count, 256, 3)
    assert set(channel_statistics(shades)[1]) == {1.0}


@pytest.mark.parametrize("value", [0.1, 1e9 / 3, 1e6 + 0.1, -1e-7, 1e30])
def test_a_column_of_one_value_has_deviation_one(value):
    assert channel_statistics(torch.full((1001, 1), value, dtype=torch.float64))[1] == (1.0,)


def test_a_column_that_hardly_changes_keeps_its_deviation():
    column = torch.tensor([[1e-9], [3e-9]], dtype=torch.float64)
    assert channel_statistics(column)[1] == pytest.approx((1e-9,))
