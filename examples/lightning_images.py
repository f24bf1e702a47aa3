"""Images in Lightning: a module trained without the curriculum, then the same one with it.

Digits in three colours, anywhere in the image: 30 classes, many of them alike. The baseline's
checkpoint gives the hierarchy. Both begin with the same weights and are trained for as many
epochs.

    python examples/lightning_images.py
"""

import logging
import tempfile
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from coarse2fine import CoarseToFineLoss
from coarse2fine.integrations.lightning import CoarseToFineCallback

EPOCHS, T = 30, 10  # in all, and of the curriculum
COLOURS = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.5, 0.5, 0.5]])

logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", ".*does not have many workers")  # the data is in memory


def make_data():
    """Return training and test images, made from different digits."""
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.zeros(len(digits.images), 3, 3, 14, 14)  # digit, its three colours, an RGB image
    for index, image in enumerate(torch.from_numpy(digits.images / 16).float()):
        for colour in range(3):
            row, column = torch.randint(7, (2,))
            place = x[index, colour, :, row : row + 8, column : column + 8]
            place.copy_(COLOURS[colour, :, None, None] * image)
    y = torch.from_numpy(digits.target)[:, None] + 10 * torch.arange(3)
    order = torch.randperm(len(x))
    parts = order[:600], order[600:]
    return [TensorDataset(x[part].flatten(0, 1), y[part].flatten()) for part in parts]


class Classifier(LightningModule):
    """A small network; nothing in it depends on whether there is a curriculum."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
            nn.Flatten(), nn.Linear(64 * 4 * 4, 30),
        )  # fmt: skip
        self.criterion = CoarseToFineLoss()  # plain cross-entropy, until the callback comes

    def training_step(self, batch):
        """Return the loss of a batch, at the level in force."""
        x, y = batch
        return self.criterion(self.net(x), y)

    def test_step(self, batch):
        """Log how many of the batch are right."""
        x, y = batch
        self.log("accuracy", (self.net(x).argmax(1) == y).float().mean())

    def configure_optimizers(self):
        """Return the optimiser."""
        return torch.optim.Adam(self.parameters(), lr=3e-3)


def train(*callbacks):
    """Return the trainer when it is done, and the accuracy on the test images."""
    training, test = make_data()
    torch.manual_seed(1)
    module = Classifier()
    trainer = Trainer(
        max_epochs=EPOCHS,
        callbacks=list(callbacks),
        accelerator="cpu",
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=False,
        logger=False,
    )
    trainer.fit(module, DataLoader(training, batch_size=64, shuffle=True))
    (metrics,) = trainer.test(module, DataLoader(test, batch_size=512), verbose=False)
    return trainer, metrics["accuracy"]


def main():
    with tempfile.TemporaryDirectory() as folder:
        baseline = Path(folder) / "baseline.ckpt"
        trainer, without = train()
        trainer.save_checkpoint(baseline)
        callback = CoarseToFineCallback(baseline, epochs=T)
        _, with_it = train(callback)
    print(f"test accuracy {without:.1%} without, {with_it:.1%} with the curriculum")
    clusters = callback.curriculum.criterion.hierarchy.num_clusters
    print(f"levels of {clusters} clusters from epochs {(0, *callback.curriculum.boundaries)}")


if __name__ == "__main__":
    main()
