"""All methods on images that are read from files while they train, for any number of readers.

python tests/integration/image_comparison.py IMAGES OUT WORKERS
"""

import sys
from pathlib import Path

import torch
from killing import METHOD_SETTINGS, METHODS
from PIL import Image
from torch import nn

from coarse2fine import fit
from coarse2fine.data import Split
from coarse2fine.data.sources.image_sources import LazyImages

CLASSES, SIZE = 5, 12


class Net(nn.Sequential):
    """With dropout and batch norm, whose states must be the same too."""

    def __init__(self, num_classes):
        layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2)]
        super().__init__(*layers, nn.Flatten(), nn.Dropout(0.2), nn.Linear(32, num_classes))


def draw(folder, count=70):
    """Write images of noise, brighter for higher classes."""
    generator = torch.Generator().manual_seed(5)
    for number in range(count):
        noise = torch.randint(0, 120, (SIZE + 4, SIZE + 4, 3), generator=generator)
        pixels = (noise + 25 * (number % CLASSES)).to(torch.uint8).numpy()
        Image.fromarray(pixels).save(folder / f"{number:03d}.png")


def images(folder):
    """The images of a folder, none of them read yet."""
    files = sorted(Path(folder).glob("*.png"))
    targets = torch.arange(len(files)) % CLASSES
    return Split(LazyImages(files, (SIZE, SIZE)), targets, tuple("abcde"))


def compare(folder, out, workers, seeds=(0,)):
    return fit(
        images(folder),
        model=Net,
        methods=METHODS,
        method_settings=METHOD_SETTINGS,
        out=out,
        seeds=seeds,
        accelerator="cpu",
        epochs=2,
        curriculum_epochs=1,
        batch_size=10,
        learning_rate=0.01,
        max_levels=2,
        patience=0,
        workers=workers,
    )


if __name__ == "__main__":
    torch.set_num_threads(1)
    compare(sys.argv[1], sys.argv[2], int(sys.argv[3]))
