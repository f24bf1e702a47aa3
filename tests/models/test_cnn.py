"""The paper's CNN."""

import math

import pytest
import torch
import torch.nn.functional as F

from coarse2fine import find_head
from coarse2fine.models.cnn import CNN


def as_the_paper_orders_it(model, images):
    """The logits with every ReLU right after its convolution."""
    features = F.max_pool2d(F.relu(model.conv1(images)), 2)
    features = F.max_pool2d(F.relu(model.conv2(features)), 2)
    return model.head(torch.flatten(F.relu(model.conv3(features)), 1))


def gradients(model, logits):
    return torch.autograd.grad(logits.square().sum(), list(model.parameters()))


@pytest.mark.parametrize(("size", "left"), [((18, 18), 1), ((32, 32), 16), ((64, 28), 12 * 3)])
def test_the_parameters_are_those_of_three_convolutions_and_a_head(size, left):
    counts = [p.numel() for p in CNN(30, (3, *size)).parameters()]
    assert counts == [27 * 32, 32, 288 * 64, 64, 576 * 64, 64, left * 64 * 30, 30]


@pytest.mark.parametrize("channels", [1, 3])
def test_it_gives_a_logit_a_class(channels):
    assert CNN(30, (channels, 28, 41))(torch.rand(2, channels, 28, 41)).shape == (2, 30)


def test_pooling_first_is_the_same_model_with_the_same_gradients():
    torch.manual_seed(0)
    model, images = CNN(7, (3, 33, 26)).double(), torch.rand(4, 3, 33, 26).double()
    ours, theirs = model(images), as_the_paper_orders_it(model, images)
    torch.testing.assert_close(ours, theirs)
    torch.testing.assert_close(gradients(model, ours), gradients(model, theirs))


def test_the_memory_format_is_no_part_of_the_function():
    torch.manual_seed(0)
    model, images = CNN(7, (3, 33, 26)).double(), torch.rand(4, 3, 33, 26).double()
    plain = model(images)
    model.to(memory_format=torch.channels_last)
    last = model(images.to(memory_format=torch.channels_last))
    torch.testing.assert_close(last, plain)


def test_weights_are_glorot_uniform_and_biases_zero():
    torch.manual_seed(0)
    model = CNN(30, (3, 32, 32))
    for layer, fans in (
        (model.conv1, 9 * (3 + 32)),
        (model.conv2, 9 * (32 + 64)),
        (model.conv3, 9 * (64 + 64)),
        (model.head, 1024 + 30),
    ):
        bound = math.sqrt(6 / fans)
        assert 0.97 * bound < layer.weight.abs().max() <= bound
        assert layer.weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.06)
        assert not layer.bias.any()


def test_the_head_is_found():
    model = CNN(30, (3, 32, 32))
    assert find_head(model) == ("head", model.head)


@pytest.mark.parametrize("size", [(17, 32), (32, 17), (8, 8)])
def test_images_too_small_are_refused(size):
    with pytest.raises(ValueError, match=f"at least 18×18 pixels. Got {size[0]}×{size[1]}"):
        CNN(30, (3, *size))
