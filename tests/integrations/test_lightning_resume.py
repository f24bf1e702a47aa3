"""What Lightning's checkpoints keep of the curriculum, and two processes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning.pytorch.callbacks import EMAWeightAveraging, ModelCheckpoint
from lightning.pytorch.strategies import SingleDeviceStrategy
from lightning_tiny import (
    HIERARCHY,
    Tiny,
    assert_same_weights,
    fit,
    ignores_warnings,
    make_callback,
    make_loader,
    make_trainer,
    plain_loop,
)
from torch import nn

from coarse2fine import CoarseToFineLoss, Hierarchy

pytestmark = ignores_warnings
SCRIPT = Path(__file__).with_name("lightning_ddp.py")


def fit_and_keep(folder, source=HIERARCHY, ckpt_path=None, strategy="auto", **when):
    module = Tiny()
    keep = ModelCheckpoint(folder, "{epoch}-{step}", save_top_k=-1, **when)
    settings = {"enable_checkpointing": True, "strategy": strategy, "ckpt_path": ckpt_path}
    return module, fit(module, make_callback(source), keep, **settings)


class Late(SingleDeviceStrategy):
    """Restores as late as FSDP and DeepSpeed do."""

    restore_checkpoint_after_setup = True


@pytest.mark.parametrize("strategy", ["auto", "late"])
@pytest.mark.parametrize(
    ("when", "name", "rest_of_third"),
    [
        ({}, "epoch=2-step=12.ckpt", [(3, 1)] * 4),
        ({"every_n_train_steps": 1}, "epoch=3-step=14.ckpt", [(3, 1)] * 2),
        ({"save_on_train_epoch_end": False}, "epoch=3-step=16.ckpt", []),
    ],
    ids=["after an epoch", "within an epoch", "after a validation"],
)
def test_a_resumed_training_equals_the_uninterrupted_to_the_bit(
    tmp_path, when, name, rest_of_third, strategy
):
    whole, _ = fit_and_keep(tmp_path, **when)
    how = Late(torch.device("cpu")) if strategy == "late" else "auto"
    gone = tmp_path / "gone.ckpt"  # the checkpoint has the hierarchy
    resumed, trainer = fit_and_keep(tmp_path, gone, tmp_path / name, how, **when)
    assert resumed.trained == rest_of_third + [(4, 2)] * 4 + [(5, 2)] * 4
    assert_same_weights(resumed, whole)
    assert trainer.callback_metrics["curriculum_level"] == 2


def test_a_checkpoint_has_the_level_and_the_hierarchy_as_plain_values(tmp_path):
    fit_and_keep(tmp_path)
    content = torch.load(tmp_path / "epoch=2-step=12.ckpt", weights_only=True)
    state = content["callbacks"]["CoarseToFineCallback"]
    assert state == {"hierarchy": HIERARCHY.to_dict(), "boundaries": [2, 4]}
    assert content["state_dict"]._metadata["criterion"]["level"] == 1
    module = Tiny.load_from_checkpoint(tmp_path / "epoch=2-step=12.ckpt")
    assert torch.equal(module.net[2].weight, content["state_dict"]["net.2.weight"])


def test_what_was_only_validated_does_not_stay(tmp_path):
    fit(Tiny(), make_callback()).save_checkpoint(tmp_path / "fit.ckpt")
    other = Hierarchy.from_levels([[0, 1, 0, 1, 0, 1], [0, 1, 2, 3, 0, 1]])
    callback, module = make_callback(other), Tiny()
    trainer = make_trainer(callback)
    trainer.validate(module, make_loader(), ckpt_path=tmp_path / "fit.ckpt")
    trainer.fit(module, make_loader(), make_loader())
    assert callback.curriculum.criterion.hierarchy == other


# ------------------------------------------------------------------------- two processes


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    finished = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder)], capture_output=True, text=True, timeout=200
    )
    assert finished.returncode == 0, finished.stderr
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.slow
def test_two_processes_have_rank_zeros_hierarchy_and_train_as_one(ranks):
    pairs = Hierarchy.from_levels([[0, 0, 1, 1, 2, 2]])
    net = plain_loop([0, 0, 1, 1], hierarchy=pairs)
    for rank in ranks:
        assert Hierarchy.from_dict(rank["whole"]["hierarchy"]) == pairs
        assert rank["whole"]["trained"] == [[e, e // 2] for e in range(4) for _ in range(4)]
        assert rank["whole"]["logged"] == 1
        torch.testing.assert_close(torch.tensor(rank["whole"]["weight"]), net[2].weight.data)


@pytest.mark.slow
def test_two_processes_resume_from_the_checkpoint_alone(ranks):
    for rank in ranks:
        assert rank["resumed"]["trained"] == [[e, e // 2] for e in range(1, 4) for _ in range(4)]
        assert rank["resumed"]["weight"] == rank["whole"]["weight"]


@pytest.mark.slow
def test_an_error_of_rank_zero_ends_both_processes_training(ranks):
    assert "FileNotFoundError" in ranks[0]["failed"]
    assert ranks[1]["failed"].startswith("RuntimeError: rank zero could not make the hierarchy: ")
    assert ranks[1]["failed"].endswith(ranks[0]["failed"])


def test_another_length_than_the_checkpoint_s_is_warned_of(tmp_path):
    fit(Tiny(), make_callback()).save_checkpoint(tmp_path / "stopped.ckpt")
    callback = make_callback(epochs=3, boundaries=None)
    with pytest.warns(UserWarning, match=r"begin at the epochs \(2, 4\), not at \(1, 2\)"):
        fit(Tiny(), callback, ckpt_path=tmp_path / "stopped.ckpt", max_epochs=7)
    assert callback.curriculum.boundaries == (2, 4)


class TwoLosses(Tiny):
    """A loss more, and normed layers behind both."""

    def __init__(self):
        super().__init__()
        self.second = CoarseToFineLoss()
        del self.net
        self.net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 6))

    def training_step(self, batch):
        logits = self.net(batch[0])
        return self.criterion(logits, batch[1]) + self.second(logits, batch[1])


def test_every_loss_may_have_a_curriculum_of_its_own(tmp_path):
    callbacks = [
        make_callback(criterion="criterion"),
        make_callback(criterion="second", boundaries=[1, 3]),
    ]
    trainer = fit(TwoLosses(), *callbacks)
    trainer.save_checkpoint(tmp_path / "two.ckpt")
    callbacks = [make_callback(criterion=name) for name in ("criterion", "second")]
    with pytest.warns(UserWarning, match="training goes on with those of the checkpoint"):
        fit(TwoLosses(), *callbacks, ckpt_path=tmp_path / "two.ckpt", max_epochs=7)
    assert [one.curriculum.boundaries for one in callbacks] == [(2, 4), (1, 3)]


def test_weights_are_averaged_as_without_the_curriculum():
    """A hierarchy that comes when training starts does not disturb the average's buffers."""
    module = TwoLosses()
    averaging = EMAWeightAveraging(decay=0.5)
    fit(module, averaging, make_callback(criterion="criterion"))
    assert module.criterion.hierarchy == HIERARCHY
    assert all(torch.isfinite(weight).all() for weight in module.parameters())
