"""Training with classes divided among processes: as by one, and gone on with by any number."""

import pytest
import torch
import torch.distributed.checkpoint as dcp
from together import run_together
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from coarse2fine import (
    CoarseToFineLinearLoss,
    Curriculum,
    Hierarchy,
    level_accuracy,
    linear_loss,
)

CLASSES, FEATURES = 13, 6
LEVELS = [[0] * 7 + [1] * 6, [0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3, 3]]
SAMPLES = torch.randn(39, 8, generator=torch.Generator().manual_seed(2))
TARGETS = torch.arange(39) % CLASSES


class Training:
    """An encoder in DistributedDataParallel, and a layer whose classes are divided."""

    def __init__(self, mesh):
        torch.manual_seed(0)
        self.encoder = nn.Sequential(nn.Linear(8, FEATURES), nn.Tanh())
        self.criterion = CoarseToFineLinearLoss(
            FEATURES, CLASSES, Hierarchy.from_levels(LEVELS), bias=True, mesh=mesh
        )
        self.curriculum = Curriculum(self.criterion, patience=1, total_epochs=8)
        self.parallel = DistributedDataParallel(self.encoder)
        groups = [{"params": part.parameters()} for part in (self.encoder, self.criterion)]
        self.optimiser = torch.optim.AdamW(groups, lr=0.01)
        self.mesh, self.accuracies = mesh, []

    def own(self, samples):
        """The part of this process, of uneven ones."""
        rank, processes = self.mesh.get_rank(), self.mesh.size()
        return samples[2 * rank : 2 * rank + 2 if rank < processes - 1 else None]

    def train(self, epochs):
        for _ in range(epochs):
            for batch in torch.arange(39).split(13):
                rows = self.own(batch)
                self.optimiser.zero_grad()
                self.criterion(self.parallel(SAMPLES[rows]), TARGETS[rows]).backward()
                self.optimiser.step()
            batches = [(self.own(SAMPLES), self.own(TARGETS))]
            self.accuracies.append(level_accuracy(self.encoder, batches, self.criterion))
            self.curriculum.step(self.accuracies[-1])

    def outcome(self):
        with torch.no_grad():
            logits = self.criterion.linear(self.encoder(self.own(SAMPLES)))
        parts = self.criterion.linear.weight.full_tensor(), *self.encoder.parameters()
        states = [self.optimiser.state[part]["exp_avg"] for part in self.criterion.parameters()]
        return {
            "weights": [part.detach() for part in parts],
            "moments": [state.full_tensor() for state in states],
            "held": [len(state.to_local()) for state in states],
            "logits": logits,
            "accuracies": self.accuracies,
            "boundaries": self.curriculum.boundaries,
        }

    def state(self):
        """What a checkpoint holds."""
        model = nn.ModuleDict({"encoder": self.encoder, "criterion": self.criterion})
        weights, moments = get_state_dict(model, self.optimiser)
        return {"model": weights, "optimiser": moments, "curriculum": self.curriculum.state_dict()}

    def load(self, folder):
        state = self.state()
        dcp.load(state, checkpoint_id=folder)
        model = nn.ModuleDict({"encoder": self.encoder, "criterion": self.criterion})
        set_state_dict(
            model,
            self.optimiser,
            model_state_dict=state["model"],
            optim_state_dict=state["optimiser"],
        )
        self.curriculum.load_state_dict(state["curriculum"])


def train(mesh, epochs, before=None, after=None):
    """Train, from a checkpoint and to one if they are given."""
    linear_loss._COUNTED = 3 * CLASSES
    training = Training(mesh)
    if before is not None:
        training.load(before)
    training.train(epochs)
    if after is not None:
        dcp.save(training.state(), checkpoint_id=after)
    return training.outcome()


def assert_same(found, expected):
    """That processes with a part each hold what one process holds."""
    for one in found:
        for name in ("weights", "moments", "accuracies", "boundaries"):
            torch.testing.assert_close(one[name], expected[name], rtol=1e-4, atol=1e-5, msg=name)
    logits = torch.cat([one["logits"] for one in found])
    torch.testing.assert_close(logits, expected["logits"], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("processes", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("process_group")
def test_several_processes_train_as_one_does(processes):
    one = train(init_device_mesh("cpu", (1,)), 5)
    found = run_together(processes, train, 5)
    assert len(one["boundaries"]) == 2
    assert len(set(one["accuracies"])) > 2
    assert_same(found, one)
    held = [outcome["held"] for outcome in found]
    assert held == {2: [[7, 7], [6, 6]], 4: [[4, 4], [4, 4], [4, 4], [1, 1]]}[processes]


@pytest.mark.slow
def test_a_checkpoint_of_two_processes_is_gone_on_with_by_four_and_then_by_one(tmp_path):
    (expected,) = run_together(1, train, 9)
    run_together(2, train, 3, None, tmp_path / "two")
    run_together(4, train, 3, tmp_path / "two", tmp_path / "four")
    (found,) = run_together(1, train, 3, tmp_path / "four")
    assert found["accuracies"] == pytest.approx(expected["accuracies"][6:])
    assert_same([found | {"accuracies": expected["accuracies"]}], expected)
