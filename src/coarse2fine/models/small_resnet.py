"""The small residual networks for CIFAR (He et al., 2016, section 4.2)."""

from __future__ import annotations

from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from .resnet import BasicBlock, conv3, init_he_normal, stage


def resnet20(num_classes: int, input_shape: tuple[int, int, int]) -> SmallResNet:
    """Return a `SmallResNet` of 20 layers: three stages of 3 blocks of two convolutions."""
    return SmallResNet(3, num_classes, input_shape[0])


class SmallResNet(nn.Module):
    """A residual network of three stages of 16, 32 and 64 channels, for small images.

    Its shortcuts have no parameters: where a stage begins, every second pixel is kept, and
    further channels are zero (option A).

    Args:
        blocks: How many there are in each stage; the network has 6 · blocks + 2 layers.
        num_classes: K.
        in_channels: The channels of an image. Defaults to 3.

    Attributes:
        fc: The final layer.
    """

    def __init__(self, blocks: int, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        block = partial(BasicBlock, shortcut=padded_shortcut)
        self.conv1, self.bn1 = conv3(in_channels, 16), nn.BatchNorm2d(16)
        self.layer1 = stage(block, 16, 16, blocks, 1)
        self.layer2 = stage(block, 16, 32, blocks, 2)
        self.layer3 = stage(block, 32, 64, blocks, 2)
        self.fc = nn.Linear(64, num_classes)
        self.apply(init_he_normal)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, of shape (N, num_classes)."""
        features = F.relu(self.bn1(self.conv1(images)))
        features = self.layer3(self.layer2(self.layer1(features)))
        return self.fc(features.mean((2, 3)))  # type: ignore[no-any-return]


class PaddedShortcut(nn.Module):
    """The identity on the pixels that a stride leaves, with further channels that are zero.

    Args:
        more: How many channels to add.
        stride: Keep one pixel out of so many in each direction.
    """

    def __init__(self, more: int, stride: int) -> None:
        super().__init__()
        self.more, self.stride = more, stride

    def forward(self, features: Tensor) -> Tensor:
        """Return the features as the block's output has them."""
        kept = features[:, :, :: self.stride, :: self.stride]
        return F.pad(kept, (0, 0, 0, 0, 0, self.more))


def padded_shortcut(inputs: int, outputs: int, stride: int) -> nn.Module:
    """Return what gives a block's input the shape of its output, without parameters."""
    if inputs == outputs and stride == 1:
        return nn.Sequential()  # the identity
    return PaddedShortcut(outputs - inputs, stride)
