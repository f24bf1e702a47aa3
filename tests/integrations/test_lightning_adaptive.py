"""With patience, Lightning's validations say how long a level lasts."""

import json
import subprocess
import sys
from pathlib import Path

import lightning.pytorch
import pytest
import pytorch_lightning
import torch
from lightning.pytorch.callbacks import LearningRateFinder, ModelCheckpoint
from lightning_tiny import (
    HIERARCHY,
    Resumable,
    Tiny,
    adaptive_loop,
    assert_same_weights,
    fit,
    ignores_warnings,
    make_loader,
    make_trainer,
    module_class,
)

from coarse2fine import CoarseToFineLoss
from coarse2fine.integrations.lightning import CoarseToFineCallback, CoarseToFineEarlyStopping

pytestmark = ignores_warnings
EPOCHS = 14
SCRIPT = Path(__file__).with_name("lightning_ddp.py")


def adaptive(source=HIERARCHY, patience=2, **settings):
    return CoarseToFineCallback(source, patience=patience, **settings)


def levels_by_epoch(module):
    return [level for _, level in sorted(set(module.trained))]


@pytest.mark.parametrize("library", [lightning.pytorch, pytorch_lightning])
@pytest.mark.parametrize("patience", [1, 2])
def test_it_trains_as_a_plain_loop_with_level_accuracy_does(library, patience):
    module, callback = module_class(library)(), adaptive(patience=patience)
    fit(module, callback, library=library, max_epochs=EPOCHS, num_sanity_val_steps=2)
    net, levels = adaptive_loop(EPOCHS, patience)
    assert levels_by_epoch(module) == levels
    assert len(set(levels)) == 3
    assert_same_weights(module.net, net)
    assert callback.curriculum.finest_epoch == levels.index(2)


def test_the_coarse_levels_take_at_most_half_of_the_epochs():
    module = Tiny()
    fit(module, adaptive(patience=50), max_epochs=8)
    assert levels_by_epoch(module) == [0, 0, 1, 1, 2, 2, 2, 2]


def test_of_several_validations_in_an_epoch_the_last_counts():
    module = Tiny()
    fit(module, adaptive(), max_epochs=EPOCHS, val_check_interval=0.25)
    assert levels_by_epoch(module) == adaptive_loop(EPOCHS, 2)[1]


@pytest.mark.filterwarnings("ignore:Training ended at level 0:UserWarning")
def test_a_validation_outside_of_training_does_not_count():
    module, callback = Tiny(), adaptive(patience=50)
    trainer = make_trainer(callback, max_epochs=-1, max_steps=8)
    trainer.fit(module, make_loader(), make_loader())
    before = callback.state_dict()
    trainer.validate(module, make_loader(indices=range(3)))
    assert callback.state_dict() == before


# What torch itself warns of while it compiles.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*isinstance.treespec:FutureWarning")
def test_a_compiled_module_is_counted_too():
    class Bare(Tiny):
        def training_step(self, batch):
            return self.criterion(self.net(batch[0]), batch[1])

        def validation_step(self, batch):
            self.criterion(self.net(batch[0]), batch[1])

    torch.compiler.reset()
    module, callback = Bare(), adaptive()
    compiled = torch.compile(module, backend="eager")
    fit(compiled, callback, max_epochs=EPOCHS, num_sanity_val_steps=1)
    levels = adaptive_loop(EPOCHS, 2)[1]
    assert callback.curriculum.boundaries == (levels.index(1), levels.index(2))


def test_a_search_for_the_learning_rate_comes_before_and_changes_nothing(tmp_path):
    class Searching(Tiny):
        lr = 0.05

    finder = LearningRateFinder(num_training_steps=8, update_attr=False)
    module = Searching()
    fit(module, finder, adaptive(), max_epochs=EPOCHS, default_root_dir=tmp_path)
    assert_same_weights(module.net, adaptive_loop(EPOCHS, 2)[0])


def test_early_stopping_waits_for_the_finest_level():
    stop = CoarseToFineEarlyStopping("val_loss", patience=2, mode="max")  # never better
    module = Tiny()
    trainer = fit(module, stop, adaptive(), max_epochs=30)
    first = adaptive_loop(30, 2)[1].index(2)
    assert trainer.current_epoch == first + 3


def test_training_that_ends_before_the_classes_is_warned_of():
    with pytest.warns(UserWarning, match="Training ended at level 0, before the classes"):
        fit(Tiny(), adaptive(patience=50), max_epochs=-1, max_steps=8)
    fit(Tiny(), adaptive(), fast_dev_run=True)


# -------------------------------------------------------------------------------- resuming


def fit_and_keep(folder, source=HIERARCHY, ckpt_path=None, **when):
    keep = ModelCheckpoint(folder, "{epoch}-{step}", save_top_k=-1, **when)
    module = Tiny()
    settings = {"enable_checkpointing": True, "max_epochs": EPOCHS, "ckpt_path": ckpt_path}
    fit(module, adaptive(source), keep, **settings)
    return module


@pytest.mark.parametrize(
    "when",
    [{}, {"every_n_train_steps": 3}, {"save_on_train_epoch_end": False}],
    ids=["after an epoch", "within an epoch", "after a validation"],
)
def test_a_resumed_training_equals_the_uninterrupted_to_the_bit(tmp_path, when):
    whole = fit_and_keep(tmp_path, **when)
    steps = {int(path.stem.split("=")[-1]): path for path in tmp_path.glob("*.ckpt")}
    if "every_n_train_steps" in when:  # after an epoch, but before its validation: see below
        steps = {step: path for step, path in steps.items() if step % 4}
    for step in sorted(steps)[:-1:2]:
        resumed = fit_and_keep(tmp_path, tmp_path / "gone.ckpt", steps[step], **when)
        assert resumed.trained == whole.trained[step:]
        assert_same_weights(resumed, whole)


def test_a_checkpoint_from_before_the_validation_costs_an_epoch_and_says_so(tmp_path):
    when = {"every_n_train_steps": 4}
    whole = fit_and_keep(tmp_path, **when)
    with pytest.warns(UserWarning, match="between the end of epoch 1 and its validation"):
        resumed = fit_and_keep(tmp_path, ckpt_path=tmp_path / "epoch=1-step=8.ckpt", **when)
    levels = levels_by_epoch(resumed)
    assert levels[-1] == 2
    assert levels != levels_by_epoch(whole)[2:]


def test_a_checkpoint_of_the_other_kind_is_refused(tmp_path):
    fixed = CoarseToFineCallback(HIERARCHY, epochs=3)
    fit(Tiny(), fixed).save_checkpoint(tmp_path / "fixed.ckpt")
    fit(Tiny(), adaptive()).save_checkpoint(tmp_path / "adaptive.ckpt")
    with pytest.raises(ValueError, match="a curriculum with a fixed length, and this one has pati"):
        fit(Tiny(), adaptive(), ckpt_path=tmp_path / "fixed.ckpt", max_epochs=7)
    with pytest.raises(ValueError, match="with patience; give that to the callback too"):
        fit(Tiny(), fixed, ckpt_path=tmp_path / "adaptive.ckpt", max_epochs=7)


# ---------------------------------------------------------------------------------- errors


class Silent(Tiny):
    """Validates by another loss."""

    def validation_step(self, batch):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))


MISSING = "needs the validation accuracy after each epoch, and there is none of epoch 0; let"


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Tiny, {"limit_val_batches": 0}),
        (Tiny, {"check_val_every_n_epoch": 2}),
        (Tiny, {"check_val_every_n_epoch": None, "val_check_interval": 6}),
        (Silent, {}),
    ],
)
def test_an_epoch_that_is_not_validated_is_an_error(kind, settings):
    with pytest.raises(ValueError, match=MISSING):
        fit(kind(), adaptive(), **settings)


@pytest.mark.filterwarnings("ignore:You defined a `validation_step` but have no")
def test_without_a_loader_to_validate_on_nothing_is_trained():
    module = Tiny()
    with pytest.raises(ValueError, match=MISSING):
        make_trainer(adaptive()).fit(module, make_loader(Resumable))
    assert module.trained == []


@pytest.mark.parametrize(
    "lengths", [{}, {"epochs": 3, "boundaries": [1, 2]}, {"epochs": 3, "patience": 2}]
)
def test_exactly_one_length_is_given(lengths):
    with pytest.raises(ValueError, match="exactly one of epochs, boundaries and patience"):
        CoarseToFineCallback(HIERARCHY, **lengths)


def test_too_few_epochs_for_the_levels_are_an_error():
    with pytest.raises(ValueError, match="they would never be reached"):
        fit(Tiny(), adaptive(), max_epochs=2)


def test_validations_in_an_epoch_are_no_sign_of_a_forgotten_step():
    """However many there are in the first one; warnings are errors here."""
    module = Tiny()
    fit(module, adaptive(patience=1), val_check_interval=0.25)
    assert isinstance(module.criterion, CoarseToFineLoss)


# --------------------------------------------------------------------------- two processes


@pytest.mark.slow
def test_two_processes_agree_and_train_as_one(tmp_path):
    command = [sys.executable, str(SCRIPT), str(tmp_path), "adaptive"]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    net, levels = adaptive_loop(EPOCHS, 2)
    for rank in (0, 1):
        seen = json.loads((tmp_path / f"rank{rank}.json").read_text())
        assert [level for _, level in seen["whole"]["trained"][::4]] == levels
        assert seen["resumed"]["weight"] == seen["whole"]["weight"]
        weight = torch.tensor(seen["whole"]["weight"])
        torch.testing.assert_close(weight, net[2].weight.data, rtol=1e-4, atol=1e-5)
