"""With patience, the Trainer's evaluations say how long a level lasts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_transformers import (
    HIERARCHY,
    SAMPLES,
    K,
    Stopping,
    StoppingError,
    assert_close,
    inputs_and_labels,
    make_model,
    make_trainer,
)
from torch import nn
from torch.utils.data import IterableDataset
from transformers import TrainerCallback

from coarse2fine import (
    CoarseToFineLoss,
    Curriculum,
    Hierarchy,
    coarse_cross_entropy,
    level_accuracy,
)
from coarse2fine.integrations.transformers import (
    STATE_KEY,
    CoarseToFineEarlyStopping,
    coarse_to_fine,
)

EPOCHS, PATIENCE = 14, 2


@pytest.fixture
def data():
    """Words that tell the class, more or less."""
    generator = torch.Generator().manual_seed(3)
    labels = torch.arange(SAMPLES) % K
    words = 2 * labels[:, None] + torch.randint(8, (SAMPLES, 5), generator=generator)
    return [{"input_ids": x, "labels": y} for x, y in zip(words, labels.tolist(), strict=True)]


def adaptive_trainer(folder, data, *callbacks, hierarchy=HIERARCHY, patience=PATIENCE, **settings):
    loss, callback = coarse_to_fine(hierarchy, patience=patience)
    settings = {"num_train_epochs": EPOCHS, "eval_strategy": "epoch"} | settings
    return make_trainer(folder, data, [callback, *callbacks], loss=loss, **settings)


def levels_of(trainer):
    return [e["curriculum_level"] for e in trainer.state.log_history if "loss" in e]


class Logits(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, inputs):
        return self.model(inputs).logits


def by_hand(data, epochs=EPOCHS, patience=PATIENCE, evaluated=None):
    """The weights and the level of each epoch, all samples at once."""
    model = make_model().train()
    inputs, labels = inputs_and_labels(data)
    batches = [inputs_and_labels(evaluated or data)]
    criterion = CoarseToFineLoss(HIERARCHY)
    curriculum, levels = Curriculum(criterion, patience=patience, total_epochs=epochs), []
    for _ in range(epochs):
        levels.append(curriculum.level)
        clusters = HIERARCHY.levels[curriculum.level]
        loss = coarse_cross_entropy(model(inputs).logits, labels, clusters)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= 0.05 * gradient
        curriculum.step(level_accuracy(Logits(model), batches, criterion))
    return model.state_dict(), levels


@pytest.mark.parametrize("patience", [1, 2])
def test_trains_as_the_loop_written_by_hand(tmp_path, data, patience):
    trainer = adaptive_trainer(tmp_path, data, patience=patience, per_device_eval_batch_size=8)
    trainer.train()
    weights, levels = by_hand(data, patience=patience)
    assert levels_of(trainer) == levels
    assert sorted(set(levels)) == [0, 1, 2]
    assert_close(trainer.model, weights)


def test_the_coarse_levels_take_at_most_half_of_the_epochs(tmp_path, data):
    trainer = adaptive_trainer(tmp_path, data, patience=50, num_train_epochs=8)
    trainer.train()
    assert levels_of(trainer) == [0, 0, 1, 1, 2, 2, 2, 2]


def test_several_sets_to_evaluate_on_count_together(tmp_path, data):
    trainer = adaptive_trainer(tmp_path, data)
    trainer.eval_dataset = {"some": data[:3], "others": data[3:]}
    trainer.train()
    assert levels_of(trainer) == by_hand(data)[1]


class Peeking(TrainerCallback):
    """Looks at test samples after every evaluation, and predicts others."""

    is_busy = False

    def on_evaluate(self, _args, _state, _control, **_):
        if not self.is_busy:
            self.is_busy = True
            self.trainer.evaluate(self.samples, metric_key_prefix="test")
            self.trainer.predict(self.samples)
            self.is_busy = False


class Recording(TrainerCallback):
    """Notes how the accuracy has gone so far, at every step."""

    def __init__(self):
        self.plateaus = []

    def on_step_begin(self, _args, state, _control, **_):
        self.plateaus.append(state.stateful_callbacks[STATE_KEY]["plateau"])


def test_what_is_evaluated_beside_does_not_count(tmp_path, data):
    plain, beside, peeking = Recording(), Recording(), Peeking()
    adaptive_trainer(tmp_path, data, plain).train()
    trainer = adaptive_trainer(tmp_path, data, beside, peeking, eval_on_start=True)
    peeking.trainer, peeking.samples = trainer, data[:1]
    trainer.train()
    assert beside.plateaus == plain.plateaus


def test_a_training_can_be_repeated_by_the_same_pair(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, patience=PATIENCE)
    settings = {"num_train_epochs": EPOCHS, "eval_strategy": "epoch", "loss": loss}
    for _ in range(2):
        trainer = make_trainer(tmp_path, data, [callback], **settings)
        trainer.train()
        assert levels_of(trainer) == by_hand(data)[1]


def test_early_stopping_counts_from_the_finest_level(tmp_path, data):
    """With a learning rate of zero nothing improves on the first evaluation of a level."""
    trainer = adaptive_trainer(
        tmp_path,
        data,
        CoarseToFineEarlyStopping(early_stopping_patience=2),
        num_train_epochs=20,
        learning_rate=0.0,
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="loss",
    )
    trainer.train()
    # Three epochs at either coarse level, the first of them the best; then as many at the finest.
    assert levels_of(trainer) == [0] * 3 + [1] * 3 + [2] * 2
    assert trainer.state.epoch == 8


# -------------------------------------------------------------------------------- resuming


@pytest.mark.parametrize("saves", [{"save_strategy": "epoch"}, {"save_steps": 1}])
@pytest.mark.parametrize("step", [3, 6, 9, 12])  # an epoch has two
def test_a_resumed_training_ends_with_the_same_bits(tmp_path, data, step, saves):
    def trainer_of(folder, *callbacks, hierarchy=HIERARCHY):
        saving = {"save_strategy": "steps", **saves, "per_device_train_batch_size": 10}
        settings = {"optim": "adamw_torch", "learning_rate": 0.01, "hierarchy": hierarchy}
        return adaptive_trainer(folder, data, *callbacks, **settings, **saving)

    whole = trainer_of(tmp_path / "whole")
    whole.train()
    with pytest.raises(StoppingError):
        trainer_of(tmp_path / "resumed", Stopping(step)).train()
    # The baseline may have come out differently by then: the checkpoint's hierarchy counts.
    other = Hierarchy.from_levels([[0, 1, 1, 1, 1, 1]])
    resumed = trainer_of(tmp_path / "resumed", hierarchy=other)
    resumed.train(resume_from_checkpoint=True)
    expected = whole.model.state_dict()
    assert all(torch.equal(w, expected[name]) for name, w in resumed.model.state_dict().items())
    assert evaluated(resumed) == evaluated(whole)
    assert sorted(set(levels_of(whole))) == [0, 1, 2]


def evaluated(trainer):
    """The level that each evaluation was after, by the epoch."""
    log = trainer.state.log_history
    return {entry["epoch"]: entry["curriculum_level"] for entry in log if "eval_loss" in entry}


def test_a_checkpoint_of_the_other_kind_is_refused(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=4)
    trainer = make_trainer(tmp_path, data, [callback], loss=loss, save_strategy="epoch")
    trainer.train()
    resumed = adaptive_trainer(tmp_path, data)
    with pytest.raises(ValueError, match="with a fixed length, and this one has patience; go on"):
        resumed.train(resume_from_checkpoint=True)


# ---------------------------------------------------------------------------------- errors


class Stream(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


MISSING = 'there is none of epoch 0; give the Trainer an eval_dataset and .*eval_strategy="epoch"'


@pytest.mark.parametrize(
    "settings",
    [{"eval_strategy": "no"}, {"eval_strategy": "steps", "eval_steps": 2}],
)
def test_without_an_evaluation_after_each_epoch_nothing_is_trained(tmp_path, data, settings):
    trainer = adaptive_trainer(tmp_path, data, **settings)
    with pytest.raises(ValueError, match=MISSING):
        trainer.train()
    assert trainer.state.global_step == 0


def test_a_stream_has_no_epochs(tmp_path, data):
    with pytest.raises(ValueError, match=f"{MISSING}.*no streamed data set"):
        adaptive_trainer(tmp_path, Stream(data), max_steps=9).train()


# --------------------------------------------------------------------------- two processes


@pytest.mark.slow
def test_two_processes_agree_and_train_as_one(tmp_path):
    script = Path(__file__).parent / "transformers_training.py"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, how in (("one", []), ("two", launch)):
        command = [sys.executable, *how, script, tmp_path / name, "adaptive"]
        done = subprocess.run(command, timeout=240, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    one, *two = (torch.load(path) for path in sorted(tmp_path.glob("*/weights-*.pt")))
    assert len(two) == 2
    assert sorted(set(one["levels"])) == [0, 1, 2]
    for weights in two:
        assert weights["levels"] == one["levels"]
        for name, weight in weights["model"].items():
            torch.testing.assert_close(weight, one["model"][name], rtol=1e-4, atol=1e-5)
