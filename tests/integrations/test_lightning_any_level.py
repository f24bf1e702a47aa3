"""Labels at any level through Lightning, beside a loop by hand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch import Callback
from lightning_tiny import (
    HIERARCHY,
    LEVELS,
    Resumable,
    Tiny,
    ignores_warnings,
    make_callback,
    make_data,
    make_net,
    make_trainer,
)
from node_labels import accuracy_by_hand, losses_by_hand, masks, mixed
from torch.utils.data import DataLoader, TensorDataset

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy
from coarse2fine.integrations.lightning import CoarseToFineCallback

pytestmark = ignores_warnings
EPOCHS = 16
NODES = mixed(make_data()[1], HIERARCHY)
KINDS = pytest.mark.parametrize("labels", [NODES, masks(NODES, HIERARCHY)], ids=["nodes", "masks"])


class Mixed(Tiny):
    """Its loss knows the hierarchy, as the first validation comes before training."""

    def __init__(self):
        super().__init__()
        self.criterion = CoarseToFineLoss(HIERARCHY)

    def validation_step(self, batch):
        self.log("val_loss", self.criterion(self.net(batch[0]), batch[1]))


def loader(labels, kind=DataLoader, batch_size=6):
    return kind(TensorDataset(make_data()[0], labels), batch_size=batch_size)


def fit(module, labels, *callbacks, **settings):
    trainer = make_trainer(*callbacks, num_sanity_val_steps=2, **settings)
    trainer.fit(module, loader(labels, Resumable), loader(labels, batch_size=10))
    return trainer


def by_hand(labels, epochs, level_of):
    """The network, and the level of each epoch."""
    net, inputs, levels = make_net(), make_data()[0], []
    optimiser = torch.optim.Adam(net.parameters(), lr=0.05)
    for _ in range(epochs):
        levels.append(level_of(levels, net(inputs)))
        for rows in torch.arange(24).split(6):
            optimiser.zero_grad()
            losses_by_hand(net(inputs[rows]), labels[rows], HIERARCHY, levels[-1]).mean().backward()
            optimiser.step()
    return net, levels


def assert_close(module, net):
    for one, two in zip(module.net.parameters(), net.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-4)


@KINDS
def test_it_trains_as_a_loop_by_hand_does(labels):
    module = Mixed()
    fit(module, labels, make_callback())
    net, _ = by_hand(labels, 6, lambda levels, _: LEVELS[len(levels)])
    assert_close(module, net)


def adaptive_by_hand(labels):
    """The network, the level of each epoch, and the accuracies at the coarse ones."""
    curriculum = Curriculum(CoarseToFineLoss(HIERARCHY), patience=2, total_epochs=EPOCHS)
    accuracies = []

    def level_of(levels, logits):
        if levels and not curriculum.is_finest:
            accuracies.append(accuracy_by_hand(logits, labels, HIERARCHY, levels[-1]))
            curriculum.step(accuracies[-1])
        return curriculum.level

    return *by_hand(labels, EPOCHS, level_of), accuracies


class Recording(Callback):
    """Notes the accuracies that the curriculum goes by."""

    def __init__(self, curriculum):
        self.curriculum, self.accuracies = curriculum, []

    def on_validation_end(self, *_):
        if self.curriculum.curriculum and not self.curriculum.curriculum.is_finest:
            self.accuracies.append(self.curriculum.state_dict()["accuracy"])


@KINDS
def test_a_level_lasts_by_the_labels_that_tell_its_clusters(labels):
    net, levels, accuracies = adaptive_by_hand(labels)
    module, callback = Mixed(), CoarseToFineCallback(HIERARCHY, patience=2)
    recording = Recording(callback)
    fit(module, labels, callback, recording, max_epochs=EPOCHS)
    assert [level for _, level in sorted(set(module.trained))] == levels
    assert sorted(set(levels)) == [0, 1, 2]
    assert recording.accuracies == accuracies
    assert_close(module, net)


@KINDS
def test_validation_counts_each_label_at_its_own_level(labels):
    module = Mixed()
    (metrics,) = make_trainer().validate(module, loader(labels, batch_size=24), verbose=False)
    expected = losses_by_hand(module.net(make_data()[0]), labels, HIERARCHY, -1).mean()
    assert metrics["val_loss"] == pytest.approx(expected.item(), rel=1e-5)


def test_no_curriculum_is_needed():
    module = Mixed()
    module.criterion.level = -1
    fit(module, NODES)
    net, _ = by_hand(NODES, 6, lambda *_: 2)
    assert_close(module, net)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (NODES + 10, r"target\[\d\] is \d\d; class indices must lie in 0..5, nodes of"),
        (
            torch.ones(24, 5, dtype=bool),
            r"\(a mask\) .* \(10, 6\). Got \(10, 5\)",
        ),
    ],
    ids=["nodes", "masks"],
)
def test_labels_of_another_hierarchy_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        fit(Mixed(), labels, make_callback())


def test_a_hierarchy_of_other_classes_is_named():
    other = make_callback(Hierarchy.from_levels([[0, 0, 1, 1]]), boundaries=[2])
    with pytest.raises(ValueError, match=r"level has 4 classes, so the logits need 4 .*\(6, 6\)"):
        fit(Mixed(), NODES, other)


@pytest.mark.slow
def test_two_processes_agree_and_train_as_one(tmp_path):
    """The first has the classes, the other all that is known less finely."""
    script = Path(__file__).with_name("lightning_ddp.py")
    command = [sys.executable, str(script), str(tmp_path), "any-level"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    net, levels, _ = adaptive_by_hand(NODES)
    for rank in (0, 1):
        seen = json.loads((tmp_path / f"rank{rank}.json").read_text())["whole"]
        assert [level for _, level in seen["trained"][::4]] == levels
        weight = torch.tensor(seen["weight"])
        torch.testing.assert_close(weight, net[2].weight.data, rtol=1e-3, atol=1e-4)
