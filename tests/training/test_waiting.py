"""A training step never waits for the device, and what was spoiled is named nevertheless.

No GPU is needed: the CPU plays one. To read a number off a device, whatever the way, is the
operation `_local_scalar_dense`; so are the operations whose shapes depend on numbers there.
"""

import sys

import pytest
import torch
from studies import Net, metrics, same_tensors, table, train, weights
from torch.utils._python_dispatch import TorchDispatchMode

from coarse2fine.data import Data
from coarse2fine.methods import METHODS
from coarse2fine.training import evaluation, trainer

WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "is_nonzero")


@pytest.fixture(autouse=True)
def _like_a_gpu(monkeypatch):
    for module in (trainer, evaluation):
        monkeypatch.setattr(module, "looking_waits", lambda _: True)


class Waits(TorchDispatchMode):
    """Counts operations that wait for the device.

    Those of torch's optimisers do not count: they look at the number of steps, which torch
    keeps on the CPU beside weights of any device.
    """

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket.__name__ in WAITING and not _is_in_an_optimiser():
            self.count += 1
        return function(*args, **(kwargs or {}))


def _is_in_an_optimiser():
    frame = sys._getframe()
    while frame is not None:
        if "/torch/optim/" in frame.f_code.co_filename.replace("\\", "/"):
            return True
        frame = frame.f_back
    return False


def waits_in_an_epoch(path, method, monkeypatch, batch_size, **changes):
    """How often the batches of an epoch wait, by the size of a batch."""
    found = []
    whole = trainer.Trainer._train_batches

    def counted(self):
        with Waits() as waits:
            loss = whole(self)
        found.append(waits.count)
        return loss

    monkeypatch.setattr(trainer.Trainer, "_train_batches", counted)
    split = table(64)
    data = Data("table", split, split.take(range(8)), split.take(range(8)))
    train(path, method, data=data, epochs=4, batch_size=batch_size, clip=1.0, **changes)
    monkeypatch.undo()
    return found


@pytest.mark.parametrize("method", ["plain", *METHODS])
def test_no_batch_waits_for_the_device(method, tmp_path, monkeypatch):
    few, many = (
        _waits(tmp_path / str(size), method, monkeypatch, size) for size in (64, 4)
    )  # 1 batch and 16 batches
    assert few == many


def _waits(path, method, monkeypatch, size):
    with monkeypatch.context() as patch:
        for module in (trainer, evaluation):
            patch.setattr(module, "looking_waits", lambda _: True)
        return waits_in_an_epoch(path, method, patch, size)


class Spoiling(Net):
    """Gives infinity in its head from the third epoch's second batch on."""

    calls = 0

    def forward(self, inputs):
        if self.training:
            type(self).calls += 1
        logits = super().forward(inputs)
        return logits * torch.inf if self.training and _is_due(self) else logits


def _is_due(model):
    return float(model.encoder[0].weight.detach().abs().sum()) > Spoiling.limit


def test_what_was_spoiled_is_named_though_it_was_noticed_late(tmp_path):
    plain = train(tmp_path / "plain", epochs=3, learning_rate=0.2, checkpoint_seconds=0.0)
    before = weights(plain)["encoder.0.weight"].abs().sum()
    Spoiling.limit = float(before) * 0.9
    options = {"model": Spoiling, "epochs": 40, "learning_rate": 0.2, "checkpoint_seconds": 0.0}
    with pytest.raises(ValueError, match=r"became .* in epoch \d+ of .*, batch \d+: .*What was"):
        train(tmp_path / "run", **options)
    kept = [line["epoch"] for line in metrics(tmp_path / "run")]
    assert kept == list(range(1, len(kept) + 1))


def test_numbers_are_the_same_as_with_a_look_at_every_batch(tmp_path, monkeypatch):
    late = train(tmp_path / "late")
    monkeypatch.undo()
    assert same_tensors(weights(late), weights(train(tmp_path / "at-once")))
