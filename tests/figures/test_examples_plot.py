"""One image of each class."""

import numpy as np
import pytest
import torch

from coarse2fine.data import Split
from coarse2fine.figures.examples import MOST, draw, examples_of
from coarse2fine.figures.style import Panel


def images(targets, names, channels=3):
    """Samples whose pixels all are their own number."""
    numbers = torch.arange(len(targets), dtype=torch.uint8)
    inputs = numbers[:, None, None, None].expand(-1, channels, 2, 4)
    return Split(inputs, torch.tensor(targets), names)


def test_the_first_sample_of_each_class_is_shown_and_one_without_any_is_not():
    found = examples_of(images([2, 0, 2, 0], ("cat", "dog", "fox")))
    assert [example.name for example in found] == ["cat", "fox"]
    assert [example.image.shape for example in found] == [(2, 4, 3)] * 2
    assert [np.unique(example.image).tolist() for example in found] == [[1], [0]]


def test_a_grey_image_has_no_channels():
    (found,) = examples_of(images([0], ("cat",), channels=1))
    assert found.image.shape == (2, 4)


def test_too_many_classes_are_refused():
    names = tuple(map(str, range(MOST + 1)))
    with pytest.raises(ValueError, match=f"room for {MOST} classes. Got {MOST + 1}."):
        examples_of(images([0], names))


@pytest.mark.parametrize(("width", "across"), [(None, 10), (2.5, 3)])
def test_images_lie_in_a_grid_with_their_names_below(width, across):
    names = [*(f"class {number}" for number in range(11)), "a very long name of <many> $words$ 国"]
    found = examples_of(images(list(range(12)), tuple(names)))
    figure = draw([Panel("Animals", {}, found)], width)
    (axes,) = figure.axes
    assert axes.get_title() == "Animals"
    figure.draw_without_rendering()
    assert len(axes.images) == len(axes.texts) == 12
    lefts = [round(image.get_extent()[0]) for image in axes.images]
    assert lefts == [number % across for number in range(12)]
    for image, text in zip(axes.images, axes.texts, strict=True):
        left, right, bottom, top = image.get_extent()
        x, y = text.get_position()
        assert left < x < right
        assert y > bottom > top  # downwards, as the axis is
    assert axes.texts[0].get_text() == "class 0"
    assert axes.texts[-1].get_text().count("\n") == 1
