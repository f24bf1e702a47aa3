"""The wide residual networks: their size, their shape inside, what they compute."""

import math

import pytest
import torch
import torch.nn.functional as F

from coarse2fine import find_head
from coarse2fine.models.wide_resnet import WideBlock, WideResNet, wrn_28_10


@pytest.mark.parametrize(("classes", "known"), [(10, 36_479_194), (100, 36_536_884)])
def test_the_parameters_are_as_many_as_known(classes, known):
    with torch.device("meta"):
        model = wrn_28_10(classes, (3, 32, 32))
    assert sum(p.numel() for p in model.parameters()) == known


def test_the_depth_counts_the_layers_on_the_longest_way():
    with torch.device("meta"):
        model = wrn_28_10(10, (3, 32, 32))
    convolutions = [m for m in model.modules() if isinstance(m, torch.nn.Conv2d)]
    assert len([m for m in convolutions if m.kernel_size == (3, 3)]) + 3 == 28
    assert len([m for m in convolutions if m.kernel_size == (1, 1)]) == 3


def test_two_stages_halve_the_resolution():
    seen = []
    with torch.device("meta"):
        model = wrn_28_10(10, (1, 32, 24))
        model.layer3.register_forward_hook(lambda _, __, output: seen.append(output.shape))
        assert model(torch.zeros(2, 1, 32, 24)).shape == (2, 10)
    assert seen == [(2, 640, 8, 6)]


@pytest.mark.parametrize(("inputs", "stride"), [(6, 1), (4, 1), (4, 2)])
def test_a_block_normalises_before_it_convolves(inputs, stride):
    torch.manual_seed(0)
    block, x = WideBlock(inputs, 6, stride).eval(), torch.randn(2, inputs, 8, 8)
    # Norms that have seen nothing divide by √(1 + 1e-5).
    norm = 1 / math.sqrt(1 + 1e-5)
    active = F.relu(x * norm)
    inner = F.relu(F.conv2d(active, block.conv1.weight, stride=stride, padding=1) * norm)
    residual = F.conv2d(inner, block.conv2.weight, padding=1)
    kept = x if inputs == 6 else F.conv2d(active[:, :, ::stride, ::stride], block.shortcut.weight)
    torch.testing.assert_close(block(x), kept + residual)


def test_a_small_one_learns():
    torch.manual_seed(0)
    model = WideResNet(10, 1, 3)
    images, targets = torch.randn(12, 3, 8, 8), torch.arange(12) % 3
    optimiser = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    losses = []
    for _ in range(15):
        losses.append(F.cross_entropy(model(images), targets))
        optimiser.zero_grad()
        losses[-1].backward()
        optimiser.step()
    assert losses[-1] < 0.2 * losses[0]


def test_the_head_is_found():
    model = WideResNet(10, 1, 7)
    assert find_head(model) == ("fc", model.fc)


@pytest.mark.parametrize("depth", [4, 9, 27])
def test_a_depth_that_does_not_divide_into_blocks_is_refused(depth):
    with pytest.raises(ValueError, match=f"depth must be 10, 16, 22, 28, ... Got {depth}"):
        WideResNet(depth, 1, 10)
