"""ResNet-20 for CIFAR: its size, its shortcuts, what it computes."""

import math

import pytest
import torch
import torch.nn.functional as F

from coarse2fine import find_head
from coarse2fine.models.resnet import BasicBlock
from coarse2fine.models.small_resnet import PaddedShortcut, padded_shortcut, resnet20


def on_paper(classes):
    """The number of parameters, counted from the description: 2 more a channel for its norm."""
    convolutions = 9 * (3 * 16 + 6 * 16 * 16 + 16 * 32 + 5 * 32 * 32 + 32 * 64 + 5 * 64 * 64)
    norms = 2 * (7 * 16 + 6 * 32 + 6 * 64)
    return convolutions + norms + 65 * classes


@pytest.mark.parametrize(("classes", "known"), [(10, 269_722), (100, 275_572)])
def test_the_parameters_are_as_many_as_known(classes, known):
    with torch.device("meta"):
        model = resnet20(classes, (3, 32, 32))
    assert on_paper(classes) == known
    assert sum(p.numel() for p in model.parameters()) == known
    assert round(on_paper(10) / 1e6, 2) == 0.27  # table 6 of He et al.


def test_it_has_20_layers_with_weights():
    with torch.device("meta"):
        layers = list(resnet20(10, (3, 32, 32)).modules())
    assert sum(isinstance(layer, torch.nn.Conv2d | torch.nn.Linear) for layer in layers) == 20


@pytest.mark.parametrize("size", [(32, 32), (28, 28), (33, 17)])
def test_the_stages_halve_the_image_twice(size):
    seen = []
    with torch.device("meta"):
        model = resnet20(7, (1, *size))
        model.layer3.register_forward_hook(lambda _, __, output: seen.append(output.shape))
        assert model(torch.zeros(2, 1, *size)).shape == (2, 7)
    assert seen == [(2, 64, *(math.ceil(side / 4) for side in size))]


def test_a_shortcut_keeps_every_second_pixel_and_adds_channels_of_zero():
    image = torch.arange(1.0, 17.0).reshape(1, 1, 4, 4)  # 1 to 16, row by row
    found = padded_shortcut(1, 3, 2)(image)
    assert found[0].tolist() == [[[1, 3], [9, 11]], [[0, 0], [0, 0]], [[0, 0], [0, 0]]]
    assert not list(PaddedShortcut(2, 2).parameters())


def test_a_shortcut_of_the_same_form_is_the_identity():
    image = torch.randn(1, 4, 3, 3)
    assert padded_shortcut(4, 4, 1)(image) is image


def test_a_block_adds_its_convolutions_to_the_shortcut():
    torch.manual_seed(0)
    block, x = BasicBlock(4, 6, 2, padded_shortcut).eval(), torch.randn(2, 4, 8, 8)
    # Norms that have seen nothing divide by √(1 + 1e-5).
    norm = 1 / math.sqrt(1 + 1e-5)
    inner = F.relu(F.conv2d(x, block.conv1.weight, stride=2, padding=1) * norm)
    residual = F.conv2d(inner, block.conv2.weight, padding=1) * norm
    kept = torch.cat([x[:, :, ::2, ::2], torch.zeros(2, 2, 4, 4)], 1)
    torch.testing.assert_close(block(x), F.relu(residual + kept))


def test_gradients_reach_every_parameter():
    torch.manual_seed(0)
    model = resnet20(10, (3, 32, 32))
    F.cross_entropy(model(torch.randn(4, 3, 32, 32)), torch.tensor([1, 3, 5, 7])).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


def test_the_head_is_found():
    model = resnet20(10, (3, 32, 32))
    assert find_head(model) == ("fc", model.fc)
