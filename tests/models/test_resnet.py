"""The residual networks: their size, their shape inside, what they compute."""

import math

import pytest
import torch
import torch.nn.functional as F

from coarse2fine import find_head
from coarse2fine.models.resnet import BasicBlock, Bottleneck, resnet18, resnet50

BOTH = pytest.mark.parametrize("build", [resnet18, resnet50])


def parameters(model):
    return sum(p.numel() for p in model.parameters())


def on_paper(bottleneck, depths, classes, stem):
    """The number of parameters, counted from the description: 2 more a channel for its norm."""
    total, inputs = 3 * 64 * stem**2 + 2 * 64, 64
    for stage, depth in enumerate(depths):
        width = 64 * 2**stage
        outputs = 4 * width if bottleneck else width
        for block in range(depth):
            if bottleneck:
                total += inputs * width + 9 * width**2 + width * outputs + 2 * (2 * width + outputs)
            else:
                total += 9 * inputs * width + 9 * width**2 + 4 * width
            if block == 0 and inputs != outputs:
                total += inputs * outputs + 2 * outputs
            inputs = outputs
    return total + (inputs + 1) * classes


@pytest.mark.parametrize(
    ("build", "classes", "side", "known"),
    [
        (resnet18, 10, 32, 11_173_962),
        (resnet18, 100, 32, 11_220_132),
        (resnet50, 10, 32, 23_520_842),
        (resnet18, 1000, 224, 11_689_512),
        (resnet50, 1000, 224, 25_557_032),
    ],
)
def test_the_parameters_are_as_many_as_known(build, classes, side, known):
    with torch.device("meta"):
        model = build(classes, (3, side, side))
    depths = (2, 2, 2, 2) if build is resnet18 else (3, 4, 6, 3)
    assert known == on_paper(build is resnet50, depths, classes, 7 if side > 96 else 3)
    assert parameters(model) == known


@BOTH
@pytest.mark.parametrize(
    ("size", "steps"),
    [((32, 32), 8), ((96, 200), 8), ((97, 97), 32), ((224, 224), 32)],
)
def test_large_images_are_made_smaller_by_the_stem(build, size, steps):
    seen = []
    with torch.device("meta"):
        model = build(10, (1, *size))
        model.layer4.register_forward_hook(lambda _, __, output: seen.append(output.shape[2:]))
        assert model(torch.zeros(2, 1, *size)).shape == (2, 10)
    assert seen == [tuple(math.ceil(side / steps) for side in size)]


def test_a_basic_block_adds_its_convolutions_to_the_shortcut():
    torch.manual_seed(0)
    block, x = BasicBlock(4, 6, 2).eval(), torch.randn(2, 4, 8, 8)
    # Norms that have seen nothing divide by √(1 + 1e-5).
    norm = 1 / math.sqrt(1 + 1e-5)
    inner = F.relu(F.conv2d(x, block.conv1.weight, stride=2, padding=1) * norm)
    residual = F.conv2d(inner, block.conv2.weight, padding=1) * norm
    kept = F.conv2d(x[:, :, ::2, ::2], block.downsample[0].weight) * norm
    torch.testing.assert_close(block(x), F.relu(residual + kept))


def test_a_bottleneck_keeps_its_input_where_the_form_is_the_same():
    torch.manual_seed(0)
    block, x = Bottleneck(16, 16, 1).eval(), torch.randn(2, 16, 5, 5)
    norm = 1 / math.sqrt(1 + 1e-5)
    inner = F.relu(torch.einsum("oi,nihw->nohw", block.conv1.weight[:, :, 0, 0], x) * norm)
    inner = F.relu(F.conv2d(inner, block.conv2.weight, padding=1) * norm)
    residual = torch.einsum("oi,nihw->nohw", block.conv3.weight[:, :, 0, 0], inner) * norm
    torch.testing.assert_close(block(x), F.relu(x + residual))
    assert block.conv2.weight.shape == (4, 4, 3, 3)


def test_convolutions_start_as_he_proposes():
    torch.manual_seed(0)
    for layer in resnet18(10, (3, 32, 32)).modules():
        if isinstance(layer, torch.nn.Conv2d):
            fan_out = layer.out_channels * layer.kernel_size[0] ** 2
            expected = math.sqrt(2 / fan_out)
            assert layer.weight.std().item() == pytest.approx(expected, rel=0.07)
            assert layer.bias is None


@BOTH
def test_the_head_is_found(build):
    model = build(10, (3, 32, 32))
    assert find_head(model) == ("fc", model.fc)


def test_parameters_are_named_as_in_torchvision():
    with torch.device("meta"):
        names = set(resnet50(10, (3, 224, 224)).state_dict())
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.downsample.0.weight",
        "layer1.0.downsample.1.bias",
        "layer3.5.conv3.weight",
        "layer4.2.bn3.num_batches_tracked",
        "fc.bias",
    } < names
    assert len(names) == 53 + 53 * 5 + 2
