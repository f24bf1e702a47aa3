"""Images that are decoded when they are needed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from image_files import encoded, photo
from torch.utils.data import DataLoader, Dataset

from coarse2fine.data.sources.image_sources import LazyImages, random_box


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.fixture
def images():
    return LazyImages([encoded(photo(40, 30, seed)) for seed in range(4)], (16, 16), 0.875)


def test_without_randomness_the_centre_is_read():
    wide = np.zeros((32, 64, 3), np.uint8)
    # The centred crop of 32, of which 28 are kept, in 7 pixels of four each.
    wide[2:30, 18:46] = 200
    read = LazyImages([encoded(wide)], (7, 7), 28 / 32).read(0, None)
    assert read.dtype == torch.uint8
    assert read[:, 1:-1, 1:-1].unique().tolist() == [200]
    beyond = LazyImages([encoded(wide)], (7, 7), 1.0).read(0, None)
    assert (beyond[:, 0] < 200).all()


def test_what_is_drawn_depends_on_the_generator_alone(images):
    first = images.read(1, rng(5))
    torch.manual_seed(1)
    assert torch.equal(images.read(1, rng(5)), first)
    assert not torch.equal(images.read(1, rng(6)), first)
    assert first.shape == (3, 16, 16)


def test_half_of_the_images_are_flipped():
    # Red on the left and blue on the right, whatever is cropped.
    ramp = np.linspace(0, 255, 64).astype(np.uint8)
    picture = np.stack([np.tile(ramp[::-1], (64, 1)), np.zeros((64, 64), np.uint8),
                        np.tile(ramp, (64, 1))], axis=2)  # fmt: skip
    images = LazyImages([encoded(picture)], (8, 8))
    flipped = 0
    for seed in range(200):
        read = images.read(0, rng(seed)).int()
        flipped += int(read[0, :, 0].sum() < read[0, :, -1].sum())
    assert 70 < flipped < 130


@given(
    seed=st.integers(0, 10_000),
    width=st.integers(1, 300),
    height=st.integers(1, 300),
    aspect=st.floats(0.5, 2),
)
def test_a_random_box_lies_inside(seed, width, height, aspect):
    left, top, right, bottom = random_box(rng(seed), width, height, aspect)
    assert 0 <= left < right <= width + 1e-9
    assert 0 <= top < bottom <= height + 1e-9


def test_random_boxes_are_of_all_areas_and_shapes_that_are_allowed():
    boxes = np.array([random_box(rng(seed), 400, 400, 1.0) for seed in range(2000)])
    width, height = boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]
    areas, shapes = width * height / 160_000, width / height
    assert 0.079 < areas.min() < 0.1
    assert areas.max() > 0.95
    assert 0.74 < shapes.min() < 0.77
    assert 1.30 < shapes.max() < 1.35
    # As likely flat as high, anywhere in the image.
    assert abs(np.log(shapes).mean()) < 0.02
    assert abs((boxes[:, 0] + boxes[:, 2]).mean() / 2 - 200) < 6


def test_an_image_too_narrow_for_any_box_gives_its_centre():
    assert random_box(rng(), 1000, 10, 1.0) == pytest.approx((493, 0, 493 + 40 / 3, 10))


class Rows(list):
    """Encoded images that say what each is called."""

    def name(self, row):
        return f"row {row} of a file"


def test_a_broken_image_is_named_when_it_is_read():
    images = LazyImages(Rows([b"broken"]), (8, 8))
    with pytest.raises(ValueError, match="row 0 of a file is not an image"):
        images.read(0, None)


class Reader(Dataset):
    """What a training loop makes of lazy inputs."""

    def __init__(self, images):
        self.images = images

    def __len__(self):
        return len(self.images)

    def __getitem__(self, row):
        return self.images.read(row, rng(row))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_of_a_loader_read_the_same(images, method):
    loader = DataLoader(Reader(images), batch_size=2, num_workers=1, multiprocessing_context=method)
    expected = torch.stack([images.read(row, rng(row)) for row in range(4)])
    assert torch.equal(torch.cat(list(loader)), expected)
