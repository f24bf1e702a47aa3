"""Wide residual networks (Zagoruyko and Komodakis, 2016), in the form without dropout."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from .resnet import conv1, conv3, init_he_normal, stage


def wrn_28_10(num_classes: int, input_shape: tuple[int, int, int]) -> WideResNet:
    """Return a `WideResNet` of depth 28 and width 10."""
    return WideResNet(28, 10, num_classes, input_shape[0])


class WideResNet(nn.Module):
    """A residual network of three stages of wide pre-activation blocks, for small images.

    Args:
        depth: How many layers there are: 6 · n + 4 for n blocks a stage.
        width: How many times the 16, 32 and 64 channels of the stages.
        num_classes: K.
        in_channels: The channels of an image. Defaults to 3.

    Attributes:
        fc: The final layer.
    """

    def __init__(self, depth: int, width: int, num_classes: int, in_channels: int = 3) -> None:
        super().__init__()
        if depth < 10 or (depth - 4) % 6:
            raise ValueError(f"depth must be 10, 16, 22, 28, ... Got {depth}.")
        blocks, channels = (depth - 4) // 6, (16, 16 * width, 32 * width, 64 * width)
        self.conv1 = conv3(in_channels, channels[0])
        self.layer1 = stage(WideBlock, channels[0], channels[1], blocks, 1)
        self.layer2 = stage(WideBlock, channels[1], channels[2], blocks, 2)
        self.layer3 = stage(WideBlock, channels[2], channels[3], blocks, 2)
        self.bn = nn.BatchNorm2d(channels[3])
        self.fc = nn.Linear(channels[3], num_classes)
        self.apply(init_he_normal)

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits, of shape (N, num_classes)."""
        features = self.layer3(self.layer2(self.layer1(self.conv1(images))))
        return self.fc(F.relu(self.bn(features)).mean((2, 3)))  # type: ignore[no-any-return]


class WideBlock(nn.Module):
    """Two 3×3 convolutions, each after batch normalisation and ReLU, beside a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(inputs), conv3(inputs, outputs, stride)
        self.bn2, self.conv2 = nn.BatchNorm2d(outputs), conv3(outputs, outputs)
        self.shortcut = None if inputs == outputs else conv1(inputs, outputs, stride)

    def forward(self, features: Tensor) -> Tensor:
        """Return the block's features."""
        active = F.relu(self.bn1(features))
        residual = self.conv2(F.relu(self.bn2(self.conv1(active))))
        # As in the authors' release: a shortcut with weights reads the normalised input, one
        # without is the identity, so that gradients reach the first block undisturbed.
        kept = features if self.shortcut is None else self.shortcut(active)
        return residual + kept  # type: ignore[no-any-return]
