"""Residual networks (He et al., 2016), for small images as for those of ImageNet."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

# Images above this side have the stem for ImageNet, which halves them twice: of CIFAR's 32
# pixels, the four stages, which halve them three more times, would be left with a single one.
_LARGE = 96


def resnet18(num_classes: int, input_shape: tuple[int, int, int]) -> ResNet:
    """Return a `ResNet` of 18 layers: 2, 2, 2 and 2 blocks of two convolutions."""
    return ResNet(BasicBlock, (2, 2, 2, 2), 64, num_classes, input_shape)


def resnet50(num_classes: int, input_shape: tuple[int, int, int]) -> ResNet:
    """Return a `ResNet` of 50 layers: 3, 4, 6 and 3 blocks of three convolutions."""
    return ResNet(Bottleneck, (3, 4, 6, 3), 256, num_classes, input_shape)


class ResNet(nn.Module):
    """A residual network with He's initialisation.

    Images whose shorter side is at most 96 pixels (CIFAR, Tiny-ImageNet) first go through a
    3×3 convolution at full resolution, larger ones (ImageNet) through a 7×7 convolution of
    stride 2 and a max-pooling. Parameters are named as in torchvision, so that its weights
    for ImageNet can be loaded.

    Args:
        block: `BasicBlock` or `Bottleneck`.
        depths: How many blocks there are in each of the four stages.
        width: The channels of the first stage; each further stage has twice as many.
        num_classes: K.
        input_shape: Channels, height and width of an image.

    Attributes:
        fc: The final layer.
    """

    def __init__(
        self,
        block: type[BasicBlock | Bottleneck],
        depths: tuple[int, int, int, int],
        width: int,
        num_classes: int,
        input_shape: tuple[int, int, int],
    ) -> None:
        super().__init__()
        channels, *sides = input_shape
        large = min(sides) > _LARGE
        self.conv1 = nn.Conv2d(channels, 64, 7, 2, 3, bias=False) if large else conv3(channels, 64)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, 2, 1) if large else nn.Identity()
        self.layer1 = stage(block, 64, width, depths[0], 1)
        self.layer2 = stage(block, width, 2 * width, depths[1], 2)
        self.layer3 = stage(block, 2 * width, 4 * width, depths[2], 2)
        self.layer4 = stage(block, 4 * width, 8 * width, depths[3], 2)
        self.fc = nn.Linear(8 * width, num_classes)
        self.apply(init_he_normal)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, of shape (N, num_classes)."""
        features = self.maxpool(F.relu(self.bn1(self.conv1(images))))
        features = self.layer4(self.layer3(self.layer2(self.layer1(features))))
        return self.fc(features.mean((2, 3)))  # type: ignore[no-any-return]


class BasicBlock(nn.Module):
    """Two 3×3 convolutions beside a shortcut.

    Args:
        inputs: Input channels.
        outputs: Output channels.
        stride: Of the first convolution.
        shortcut: Makes the shortcut from these three. Defaults to None: the identity where it
            fits, else a 1×1 convolution.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        shortcut: Callable[[int, int, int], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        self.conv1, self.bn1 = conv3(inputs, outputs, stride), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = conv3(outputs, outputs), nn.BatchNorm2d(outputs)
        self.downsample = (shortcut or _shortcut)(inputs, outputs, stride)

    def forward(self, features: Tensor) -> Tensor:
        """Return the block's features."""
        residual = F.relu(self.bn1(self.conv1(features)))
        residual = self.bn2(self.conv2(residual))
        return F.relu(residual + self.downsample(features))


class Bottleneck(nn.Module):
    """A 3×3 convolution between 1×1 convolutions to a quarter of the channels and back."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        width = outputs // 4
        self.conv1, self.bn1 = conv1(inputs, width), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = conv3(width, width, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = conv1(width, outputs), nn.BatchNorm2d(outputs)
        self.downsample = _shortcut(inputs, outputs, stride)

    def forward(self, features: Tensor) -> Tensor:
        """Return the block's features."""
        residual = F.relu(self.bn1(self.conv1(features)))
        residual = F.relu(self.bn2(self.conv2(residual)))
        residual = self.bn3(self.conv3(residual))
        return F.relu(residual + self.downsample(features))


def conv1(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Return a 1×1 convolution without bias, as batch normalisation follows."""
    return nn.Conv2d(inputs, outputs, 1, stride, bias=False)


def conv3(inputs: int, outputs: int, stride: int = 1) -> nn.Conv2d:
    """Return a 3×3 convolution without bias that keeps the image's size but for the stride."""
    return nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)


def stage(
    block: Callable[[int, int, int], nn.Module], inputs: int, outputs: int, depth: int, stride: int
) -> nn.Sequential:
    """Return a sequence of blocks, the first of which changes channels and resolution.

    Args:
        block: Makes a block from input channels, output channels and stride.
        inputs: Input channels.
        outputs: Output channels.
        depth: How many blocks.
        stride: That of the first block.
    """
    rest = (block(outputs, outputs, 1) for _ in range(depth - 1))
    return nn.Sequential(block(inputs, outputs, stride), *rest)


def init_he_normal(module: nn.Module) -> None:
    """Initialise a convolution by He's normal distribution; leave everything else alone."""
    if isinstance(module, nn.Conv2d):
        nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")


def _shortcut(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    """Return what gives a block's input the shape of its output: often nothing at all."""
    if inputs == outputs and stride == 1:
        return nn.Sequential()  # the identity, and without parameters, as in torchvision
    return nn.Sequential(conv1(inputs, outputs, stride), nn.BatchNorm2d(outputs))
