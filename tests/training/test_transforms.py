"""What happens to the inputs of a run before the model sees them."""

from dataclasses import replace

import pytest
import torch
from studies import NAMES, image_data, settings, table_source

from coarse2fine.data import Split, Transform, channel_statistics, sample
from coarse2fine.training.job import transform_for

CIFAR = ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
TINY = ((0.4802, 0.4481, 0.3975), (0.2302, 0.2265, 0.2262))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class Lazy:
    def __init__(self, shape=(3, 8, 8)):
        self.shape = shape

    def __len__(self):
        return 6

    def read(self, row, rng):
        assert rng is None
        return torch.full(self.shape, row, dtype=torch.uint8)


def of(samples, **changes):
    return transform_for(samples, settings(**changes))


def test_nothing_happens_unless_it_is_asked_for():
    assert of(image_data()) == Transform()


@pytest.mark.parametrize(
    ("name", "statistics"),
    [
        ("cifar10", CIFAR),
        ("cifar100", CIFAR),
        ("cifar100-coarse", CIFAR),
        ("tiny-imagenet", TINY),
        ("imagenet", IMAGENET),
    ],
)
def test_known_sets_have_the_statistics_that_are_published(name, statistics):
    found = of(image_data(), data=name, normalise=True)
    assert (found.mean, found.std) == statistics


def test_other_images_have_those_of_the_training_samples():
    data = image_data()
    found = of(data, normalise=True)
    assert (found.mean, found.std) == channel_statistics(data.train.inputs)
    assert (found.mean, found.std) != channel_statistics(data.test.inputs)


def test_columns_are_normalised_over_the_training_samples():
    data = sample(table_source())
    found = of(data, normalise=True)
    normal = found.normalise(data.train.inputs)
    torch.testing.assert_close(normal.mean(0), torch.zeros(10), atol=1e-5, rtol=0)
    torch.testing.assert_close(normal.std(0, correction=0), torch.ones(10), atol=1e-5, rtol=0)


@pytest.mark.parametrize(("side", "padding"), [(32, 4), (64, 8), (8, 1)])
def test_images_are_padded_by_an_eighth_of_their_side(side, padding):
    images = Split(torch.zeros(6, 3, side, side, dtype=torch.uint8), torch.arange(6), NAMES)
    data = replace(image_data(), train=images)
    assert of(data, augment=True) == Transform(padding=padding, flip=True)


def test_lazy_images_are_augmented_as_they_are_read():
    data = replace(image_data(), train=Split(Lazy(), torch.arange(6), NAMES))
    found = of(data, augment=True, normalise=True)
    assert (found.mean, found.std) == IMAGENET
    assert not found.is_random


def test_lazy_images_of_one_channel_are_not_normalised_as_colours():
    data = replace(image_data(), train=Split(Lazy((1, 8, 8)), torch.arange(6), NAMES))
    assert of(data, normalise=True) == Transform()


@pytest.mark.parametrize("kind", ["text", "other"])
def test_what_is_neither_image_nor_table_is_left_alone(kind):
    data = replace(sample(table_source()), kind=kind)
    assert of(data, augment=True, normalise=True) == Transform()


@pytest.mark.parametrize("shape", [(4, 3, 5, 7), (1, 3, 5, 7), (4, 1, 5, 7), (4, 3, 1, 1)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_images_laid_out_pixel_by_pixel_become_the_same_numbers(shape, dtype):
    images = torch.randint(256, shape).to(dtype)
    given = images.contiguous(memory_format=torch.channels_last)
    before = given.clone()
    transform = Transform(mean=CIFAR[0][: shape[1]], std=CIFAR[1][: shape[1]])
    found = transform.normalise(given)
    scaled = images / 255 if dtype == torch.uint8 else images
    mean, std = (torch.tensor(value).view(-1, 1, 1) for value in (transform.mean, transform.std))
    assert found.equal((scaled - mean) / std)
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert given.equal(before)


def test_no_images_are_normalised_to_none():
    none = torch.zeros(0, 3, 4, 4, dtype=torch.uint8).contiguous(memory_format=torch.channels_last)
    assert Transform(*CIFAR).normalise(none).shape == (0, 3, 4, 4)
