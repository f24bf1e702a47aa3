"""A LightningModule and data so small that training takes milliseconds."""

import lightning.pytorch
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Subset, TensorDataset

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, level_accuracy
from coarse2fine.integrations.lightning import CoarseToFineCallback

CLASSES = 6
HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
LEVELS = [0, 0, 1, 1, 2, 2]  # of the epochs, by the boundaries of `make_callback`

ignores_warnings = [
    # On speed, as the loaders of these tests have no workers.
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    # Within Lightning, of what torch has renamed.
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
    # Of files that a test wrote before into the folder.
    pytest.mark.filterwarnings("ignore:Checkpoint directory .* exists and is not empty"),
]


def make_net():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, CLASSES))


def make_data():
    generator = torch.Generator().manual_seed(2)
    targets = torch.arange(24) % CLASSES
    return torch.randn(24, 4, generator=generator) + targets[:, None], targets


class Resumable(DataLoader):
    """Goes on within an epoch, by the two methods that Lightning asks for."""

    seen = 0

    def __iter__(self):
        start = self.seen % len(self)
        for index, batch in enumerate(super().__iter__()):
            if index >= start:
                self.seen = index + 1
                yield batch

    def state_dict(self):
        return {"seen": self.seen}

    def load_state_dict(self, state):
        self.seen = state["seen"]


def make_loader(kind=DataLoader, indices=range(24), batch_size=6):
    return kind(Subset(TensorDataset(*make_data()), indices), batch_size=batch_size)


def module_class(library):
    """The same module for `lightning.pytorch` and for `pytorch_lightning`."""

    class Tiny(library.LightningModule):
        def __init__(self, net=None):
            super().__init__()
            self.net = net or make_net()
            self.criterion = CoarseToFineLoss()
            self.trained = []  # the epoch and the level of every batch
            self.validated = []  # of every validation batch the loss, and what it should be

        def training_step(self, batch):
            self.trained.append((self.current_epoch, self.criterion.level))
            return self.criterion(self.net(batch[0]), batch[1])

        def validation_step(self, batch):
            logits = self.net(batch[0])
            loss = self.criterion(logits, batch[1])
            self.validated.append((loss, F.cross_entropy(logits, batch[1])))
            self.log("val_loss", loss, sync_dist=True)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=0.05)

    return Tiny


Tiny = module_class(lightning.pytorch)


def make_trainer(*callbacks, library=lightning.pytorch, **settings):
    quiet = {
        "accelerator": "cpu",
        "enable_checkpointing": False,
        "enable_model_summary": False,
        "enable_progress_bar": False,
        "logger": False,
        "max_epochs": 6,
        "num_sanity_val_steps": 0,
    }
    return library.Trainer(callbacks=list(callbacks), **(quiet | settings))


def make_callback(source=HIERARCHY, **settings):
    return CoarseToFineCallback(source, **({"boundaries": [2, 4]} | settings))


def fit(module, *callbacks, ckpt_path=None, **settings):
    trainer = make_trainer(*callbacks, **settings)
    trainer.fit(module, make_loader(Resumable), make_loader(), ckpt_path=ckpt_path)
    return trainer


def assert_same_weights(module, other):
    for one, two in zip(module.parameters(), other.parameters(), strict=True):
        assert torch.equal(one, two)


def plain_loop(levels, accumulate=1, hierarchy=HIERARCHY):
    """The network after training by hand, with the level of each epoch given."""
    net, criterion = make_net(), CoarseToFineLoss(hierarchy)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for level in levels:
        criterion.level = level
        for index, (inputs, targets) in enumerate(make_loader(), 1):
            (criterion(net(inputs), targets) / accumulate).backward()
            if index % accumulate == 0:
                optimiser.step()
                optimiser.zero_grad()
    return net


def adaptive_loop(epochs, patience):
    """The network and the level of each epoch, by hand with `level_accuracy`."""
    net, criterion = make_net(), CoarseToFineLoss(HIERARCHY)
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    curriculum = Curriculum(criterion, patience=patience, total_epochs=epochs)
    levels = []
    for _ in range(epochs):
        levels.append(curriculum.level)
        for inputs, targets in make_loader():
            optimiser.zero_grad()
            criterion(net(inputs), targets).backward()
            optimiser.step()
        curriculum.step(level_accuracy(net, make_loader(), criterion))
    return net, levels
