"""Labels at any level through Hugging Face's Trainer, beside loops by hand."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from node_labels import accuracy_by_hand, losses_by_hand, masks, mixed
from test_transformers import (
    EPOCHS,
    HIERARCHY,
    LEVELS,
    SAMPLES,
    K,
    assert_close,
    loss_in_training,
    make_model,
    make_trainer,
)
from transformers import TrainerCallback

from coarse2fine import CoarseToFineLoss, Curriculum
from coarse2fine.integrations.transformers import STATE_KEY, coarse_to_fine

MANY = 16  # epochs, where it is not known how many a level takes
NODES = mixed(torch.arange(SAMPLES) % K, HIERARCHY)
KINDS = pytest.mark.parametrize("labels", [NODES, masks(NODES, HIERARCHY)], ids=["nodes", "masks"])


def words():
    """They tell the class, more or less."""
    generator = torch.Generator().manual_seed(3)
    noise = torch.randint(8, (SAMPLES, 5), generator=generator)
    return 2 * (torch.arange(SAMPLES) % K)[:, None] + noise


def rows(labels):
    return [{"input_ids": x, "labels": y} for x, y in zip(words(), labels.tolist(), strict=True)]


def trainer_for(folder, labels, *callbacks, length=None, **settings):
    loss, callback = coarse_to_fine(HIERARCHY, **(length or {"epochs": EPOCHS}))
    return make_trainer(folder, rows(labels), [callback, *callbacks], loss=loss, **settings)


def by_hand(labels, epochs, level_of):
    """The weights, and the level of each epoch, all samples at once."""
    model, levels = make_model().train(), []
    for _ in range(epochs):
        logits = model(words()).logits
        levels.append(level_of(levels, logits))
        loss = losses_by_hand(logits, labels, HIERARCHY, levels[-1]).mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= 0.05 * gradient
    return model.state_dict(), levels


@KINDS
@pytest.mark.parametrize(
    "batches",
    [{}, {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 3}],
    ids=["whole", "accumulated"],
)
def test_it_trains_as_a_loop_by_hand_does(tmp_path, labels, batches):
    trainer = trainer_for(tmp_path, labels, **batches)
    trainer.train()
    weights, _ = by_hand(labels, EPOCHS, lambda levels, _: LEVELS[len(levels)])
    assert_close(trainer.model, weights)


class Recording(TrainerCallback):
    """Notes the accuracies that the curriculum goes by."""

    def __init__(self):
        self.accuracies = []

    def on_evaluate(self, _args, state, _control, **_):
        kept = state.stateful_callbacks[STATE_KEY]
        if len(kept["boundaries"]) < len(HIERARCHY.levels) - 1:
            self.accuracies.append(kept["accuracy"])


@KINDS
def test_a_level_lasts_by_the_labels_that_tell_its_clusters(tmp_path, labels):
    curriculum = Curriculum(CoarseToFineLoss(HIERARCHY), patience=2, total_epochs=MANY)
    accuracies = []

    def level_of(levels, logits):
        if levels and not curriculum.is_finest:
            accuracies.append(accuracy_by_hand(logits, labels, HIERARCHY, levels[-1]))
            curriculum.step(accuracies[-1])
        return curriculum.level

    weights, levels = by_hand(labels, MANY, level_of)
    recording = Recording()
    evaluations = {"eval_strategy": "epoch", "per_device_eval_batch_size": 8}
    settings = {"num_train_epochs": MANY, "length": {"patience": 2}} | evaluations
    trainer = trainer_for(tmp_path, labels, recording, **settings)
    trainer.train()
    log = trainer.state.log_history
    assert [entry["curriculum_level"] for entry in log if "loss" in entry] == levels
    assert sorted(set(levels)) == [0, 1, 2]
    assert recording.accuracies == accuracies
    assert_close(trainer.model, weights)


@KINDS
def test_evaluation_counts_each_label_at_its_own_level(tmp_path, labels):
    trainer = trainer_for(tmp_path, labels, per_device_eval_batch_size=8)
    logits = make_model().eval()(words()).logits
    expected = losses_by_hand(logits, labels, HIERARCHY, -1).mean().item()
    assert trainer.evaluate()["eval_loss"] == pytest.approx(expected, rel=1e-4)


def test_metrics_get_the_labels_as_they_are(tmp_path):
    trainer = trainer_for(tmp_path, NODES)
    found = trainer.predict(rows(NODES)).label_ids
    np.testing.assert_array_equal(found, NODES)


def test_tokens_may_be_labelled_at_any_level():
    logits = torch.randn(3, 4, K)
    labels = torch.randint(len(HIERARCHY.nodes), (3, 4))
    flat = losses_by_hand(logits.view(-1, K), labels.view(-1), HIERARCHY, 0)
    torch.testing.assert_close(loss_in_training()((logits,), labels, 12), flat.mean())
    rows = masks(labels.view(-1), HIERARCHY).view(3, 4, K)
    torch.testing.assert_close(loss_in_training()((logits,), rows, 12 * K), flat.mean())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([0, 30]), r"target\[1\] is 30; class indices must lie in 0..5, nodes of"),
        (torch.ones(2, 3, dtype=bool), r"\(a mask\) .* \(2, 6\) must have .* Got \(2, 3\)"),
        (torch.zeros(2, K, dtype=bool), r"target\[0\] has no candidate class"),
        (torch.tensor([[0.5, 0.5, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0]]), "sums to 3; .* be boolean"),
        (torch.ones(2, 6, dtype=torch.int64), "a row of integers for each prediction; candidates"),
    ],
)
def test_labels_that_mean_nothing_are_named(labels, message):
    with pytest.raises(ValueError, match=message):
        loss_in_training()((torch.randn(2, K),), labels)


def test_candidates_that_became_floats_are_named(tmp_path):
    """The collator makes floats of lists in a column of this name."""
    data = [{"input_ids": row["input_ids"], "label": row["labels"]} for row in rows(NODES > 5)]
    for row, mask in zip(data, masks(NODES, HIERARCHY).tolist(), strict=True):
        row["label"] = mask
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    with pytest.raises(ValueError, match="sums to 6; candidates must be boolean, in a column 'lab"):
        make_trainer(tmp_path, data, [callback], loss=loss).train()


@pytest.mark.slow
def test_two_processes_agree_and_train_as_one(tmp_path):
    script = Path(__file__).parent / "transformers_training.py"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, how in (("one", []), ("two", launch)):
        command = [sys.executable, *how, script, tmp_path / name, "any-level"]
        done = subprocess.run(command, timeout=240, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    one, *two = (torch.load(path) for path in sorted(tmp_path.glob("*/weights-*.pt")))
    assert len(two) == 2
    assert sorted(set(one["levels"])) == [0, 1, 2]
    for weights in two:
        assert weights["levels"] == one["levels"]
        for name, weight in weights["model"].items():
            torch.testing.assert_close(weight, one["model"][name], rtol=1e-4, atol=1e-5)
