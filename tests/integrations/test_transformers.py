"""The curriculum in Hugging Face's Trainer, held against loops written out in plain torch."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.modeling_outputs import TokenClassifierOutput

from coarse2fine import Hierarchy, coarse_cross_entropy
from coarse2fine.integrations.transformers import CoarseToFineEarlyStopping, coarse_to_fine

K, SAMPLES, EPOCHS = 6, 20, 6
HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
LEVELS = [0, 0, 1, 1, 2, 2]  # of the epochs, with T = 6


def make_model():
    torch.manual_seed(1)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2}
    layers = {"num_hidden_layers": 1, "hidden_dropout_prob": 0.0, "initializer_range": 0.3}
    config = BertConfig(
        vocab_size=20,
        num_labels=K,
        max_position_embeddings=8,
        attention_probs_dropout_prob=0.0,
        **sizes,
        **layers,
    )
    return BertForSequenceClassification(config)


@pytest.fixture
def data():
    words = torch.randint(20, (SAMPLES, 5))
    return [
        {"input_ids": row, "labels": index % K}
        for index, row in enumerate(words)  # every class, and more of the first ones
    ]


def make_trainer(folder, data, callbacks=(), model=None, **settings):
    defaults = {
        "num_train_epochs": EPOCHS,
        "per_device_train_batch_size": SAMPLES,
        "learning_rate": 0.05,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "max_grad_norm": 0.0,
        "logging_strategy": "epoch",
        "save_strategy": "no",
        "report_to": "none",
        "use_cpu": True,
        "disable_tqdm": True,
    }
    loss = settings.pop("loss", None)
    arguments = TrainingArguments(folder, **defaults | settings)
    return Trainer(
        make_model() if model is None else model,
        arguments,
        train_dataset=data,
        eval_dataset=data,
        compute_loss_func=loss,
        callbacks=list(callbacks),
    )


def inputs_and_labels(data):
    return torch.stack([row["input_ids"] for row in data]), torch.tensor(
        [row["labels"] for row in data]
    )


def weights_by_hand(data, levels=LEVELS, **options):
    """Plain gradient descent on the definition of the loss, all samples at once."""
    model = make_model().train()
    inputs, labels = inputs_and_labels(data)
    for level in levels:
        logits = model(inputs).logits
        clusters = HIERARCHY.levels[level]
        loss = coarse_cross_entropy(logits, labels, clusters, **options)
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():
            for weight, gradient in zip(model.parameters(), gradients, strict=True):
                weight -= 0.05 * gradient
    return model.state_dict()


def assert_close(model, expected):
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weight, expected[name], rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize(
    "batches",
    [
        {},
        {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 3},  # 8, 8 and 4
    ],
    ids=["whole", "accumulated"],
)
def test_trains_as_the_loop_written_by_hand(tmp_path, data, batches):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(tmp_path, data, [callback], loss=loss, **batches)
    trainer.train()
    assert_close(trainer.model, weights_by_hand(data))


def test_takes_label_smoothing_from_the_arguments(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(tmp_path, data, [callback], loss=loss, label_smoothing_factor=0.2)
    trainer.train()
    assert_close(trainer.model, weights_by_hand(data, label_smoothing=0.2))


def test_its_own_label_smoothing_goes_before_that_of_the_arguments(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS, label_smoothing=0.0)
    make_trainer(tmp_path, data, [callback], loss=loss, label_smoothing_factor=0.2)
    assert loss.criterion.label_smoothing == 0.0


def test_a_callback_that_is_added_later_takes_label_smoothing_too(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    settings = {"loss": loss, "label_smoothing_factor": 0.2}
    trainer = make_trainer(tmp_path, data, **settings)
    trainer.add_callback(callback)
    trainer.train()
    assert_close(trainer.model, weights_by_hand(data, label_smoothing=0.2))


def loss_in_training(**options):
    """The loss by itself, as if the callback had begun the training."""
    loss, _ = coarse_to_fine(HIERARCHY, epochs=EPOCHS, **options)
    loss.has_callback = True
    return loss


def test_weights_classes(data):
    weight = torch.tensor([1.0, 2.0, 3.0, 1.0, 2.0, 3.0])
    loss = loss_in_training(weight=weight)
    logits, (_, labels) = torch.randn(SAMPLES, K), inputs_and_labels(data)
    expected = coarse_cross_entropy(
        logits, labels, HIERARCHY.levels[0], weight=weight, reduction="sum"
    )
    torch.testing.assert_close(loss({"logits": logits}, labels, 40), expected / 40)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_evaluation_is_that_of_the_trainer_on_the_classes(tmp_path, data, smoothing):
    """At the coarsest level, with batches of 8, 8 and 4."""
    settings = {"label_smoothing_factor": smoothing, "per_device_eval_batch_size": 8}
    plain = make_trainer(tmp_path, data, **settings)
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(tmp_path, data, [callback], loss=loss, **settings)
    found = trainer.evaluate()["eval_loss"]
    assert loss.criterion.level == 0
    assert found == pytest.approx(plain.evaluate()["eval_loss"], rel=1e-5)


def test_the_level_is_logged(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(tmp_path, data, [callback], loss=loss, eval_strategy="epoch")
    trainer.train()
    log = trainer.state.log_history
    for kind in ("loss", "eval_loss"):
        assert [entry["curriculum_level"] for entry in log if kind in entry] == LEVELS


class StoppingError(Exception):
    """Stands for whatever ends a training early."""


class Stopping(TrainerCallback):
    """Ends a training after some optimiser steps, past the checkpoint of the last."""

    def __init__(self, step):
        self.step = step

    def on_step_begin(self, _args, state, _control, **_):
        if state.global_step == self.step:
            raise StoppingError


@pytest.mark.parametrize("step", [3, 6, 7])  # an epoch has two: in its middle, and between two
def test_a_resumed_training_ends_with_the_same_bits(tmp_path, data, step, caplog):
    def trainer_of(folder, hierarchy, *callbacks):
        loss, callback = coarse_to_fine(hierarchy, epochs=EPOCHS)
        batches = {"per_device_train_batch_size": 10, "save_strategy": "steps", "save_steps": 1}
        settings = {"loss": loss, "optim": "adamw_torch", **batches}
        return make_trainer(folder, data, [callback, *callbacks], **settings)

    whole = trainer_of(tmp_path / "whole", HIERARCHY)
    whole.train()
    with pytest.raises(StoppingError):
        trainer_of(tmp_path / "resumed", HIERARCHY, Stopping(step)).train()
    # The baseline may have come out differently by then: the checkpoint's hierarchy counts.
    other = Hierarchy.from_levels([[0, 1, 1, 1, 1, 1]])
    resumed = trainer_of(tmp_path / "resumed", other)
    with caplog.at_level(logging.WARNING, logger="coarse2fine"):
        resumed.train(resume_from_checkpoint=True)
    assert "curriculum of the checkpoint" in caplog.text
    expected = whole.model.state_dict()
    assert all(torch.equal(w, expected[name]) for name, w in resumed.model.state_dict().items())
    logged = [entry for entry in resumed.state.log_history if "loss" in entry]
    assert all(entry["curriculum_level"] == LEVELS[int(entry["epoch"]) - 1] for entry in logged)


def test_steps_of_the_optimiser_count_by_choice(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, steps=6)
    settings = {"per_device_train_batch_size": 5, "num_train_epochs": 2, "logging_steps": 1}
    trainer = make_trainer(
        tmp_path, data, [callback], loss=loss, **settings, logging_strategy="steps"
    )
    trainer.train()
    levels = [e["curriculum_level"] for e in trainer.state.log_history if "loss" in e]
    assert levels == [0, 0, 1, 1, 2, 2, 2, 2]


def test_boundaries_of_ones_own(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, boundaries=[1, 4])
    trainer = make_trainer(tmp_path, data, [callback], loss=loss)
    trainer.train()
    levels = [e["curriculum_level"] for e in trainer.state.log_history if "loss" in e]
    assert levels == [0, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(("early_stopping", "epochs"), [("plain", 3), ("finest", 6)])
def test_early_stopping_counts_from_the_finest_level(tmp_path, data, early_stopping, epochs):
    """With a learning rate of zero nothing improves on the first evaluation."""
    kinds = {"plain": EarlyStoppingCallback, "finest": CoarseToFineEarlyStopping}
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(
        tmp_path,
        data,
        [callback, kinds[early_stopping](early_stopping_patience=2)],
        loss=loss,
        num_train_epochs=10,
        learning_rate=0.0,
        eval_strategy="epoch",
        save_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="loss",
    )
    trainer.train()
    assert trainer.state.epoch == epochs


def test_without_a_curriculum_early_stopping_is_hugging_face_s(tmp_path, data):
    settings = {"learning_rate": 0.0, "eval_strategy": "epoch", "save_strategy": "epoch"}
    best = {"load_best_model_at_end": True, "metric_for_best_model": "loss"}
    stopping = CoarseToFineEarlyStopping(early_stopping_patience=2)
    trainer = make_trainer(tmp_path, data, [stopping], **settings, **best)
    trainer.train()
    assert trainer.state.epoch == 3


def test_half_of_the_pair_is_refused(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    with pytest.raises(ValueError, match="other half .* compute_loss_func=loss"):
        make_trainer(tmp_path, data, [callback]).train()
    loss, _ = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    trainer = make_trainer(tmp_path, data, loss=loss)
    with pytest.raises(ValueError, match="other half .* callbacks=\\[callback\\]"):
        trainer.train()


@pytest.mark.parametrize(
    ("length", "message"),
    [
        ({"epochs": 9}, "num_train_epochs is 6, but .* only after 6"),
        ({"steps": 12}, "max_steps is 6"),
    ],
)
def test_a_training_that_ends_before_the_classes_are_reached_is_warned_of(
    tmp_path, data, length, message
):
    loss, callback = coarse_to_fine(HIERARCHY, **length)
    with pytest.warns(UserWarning, match=message):
        make_trainer(tmp_path, data, [callback], loss=loss).train()


def test_a_training_can_be_repeated_by_the_same_pair(tmp_path, data):
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    for _ in range(2):
        trainer = make_trainer(tmp_path, data, [callback], loss=loss)
        trainer.train()
        assert_close(trainer.model, weights_by_hand(data))


# ------------------------------------------------------------------------ the loss by itself


def test_tokens_are_classified_like_sentences():
    logits, labels = torch.randn(3, 4, K), torch.randint(K, (3, 4))
    labels[0, 2:] = -100
    loss = loss_in_training()
    clusters = torch.from_numpy(HIERARCHY.levels[0].copy())
    counted = labels != -100
    probabilities = logits[counted].softmax(-1)
    alike = clusters == clusters[labels[counted]][:, None]
    losses = -(probabilities * alike).sum(-1).log()
    output = TokenClassifierOutput(logits=logits)
    torch.testing.assert_close(loss(output, labels, counted.sum()), losses.mean())
    torch.testing.assert_close(loss(output, labels, 2 * counted.sum()), losses.mean() / 2)
    for outputs in ((logits,), logits):
        torch.testing.assert_close(loss(outputs, labels), losses.mean())


def test_a_model_without_logits_is_named():
    outputs = {"last_hidden_state": torch.randn(2, 3), "pooled": torch.randn(2, 3)}
    with pytest.raises(ValueError, match="gives no 'logits', but last_hidden_state, pooled"):
        loss_in_training()(outputs, torch.tensor([0, 1]))


@pytest.mark.filterwarnings("ignore:num_train_epochs is 1:UserWarning")  # is enough here
def test_class_probabilities_are_counted_as_the_trainer_counts_them(tmp_path, data):
    """As mixup gives them; the Trainer counts K items for each sample."""
    inputs, labels = inputs_and_labels(data)
    shares = 0.7 * F.one_hot(labels, K) + 0.3 * F.one_hot(labels.flip(0), K)
    rows = [{"input_ids": x, "labels": y} for x, y in zip(inputs, shares, strict=True)]
    loss, callback = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    batches = {"per_device_train_batch_size": 8, "gradient_accumulation_steps": 3}
    trainer = make_trainer(tmp_path, rows, [callback], loss=loss, num_train_epochs=1, **batches)
    trainer.train()
    logits = make_model()(inputs).logits
    expected = coarse_cross_entropy(logits, shares, HIERARCHY.levels[0]).item()
    (logged,) = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert logged == pytest.approx(expected, rel=1e-4)


def test_a_batch_without_labels_is_named():
    loss, _ = coarse_to_fine(HIERARCHY, epochs=EPOCHS)
    with pytest.raises(ValueError, match="the batch has no labels"):
        loss({"logits": torch.randn(2, K)}, None)


def test_the_hierarchy_may_come_from_a_model_or_a_file(tmp_path):
    baseline = make_model()
    expected = Hierarchy.from_classifier(baseline)
    expected.save(tmp_path / "hierarchy.json")
    for source in (baseline, tmp_path / "hierarchy.json", str(tmp_path / "hierarchy.json")):
        loss, _ = coarse_to_fine(source, epochs=EPOCHS)
        assert loss.criterion.hierarchy == expected
    with pytest.raises(TypeError, match="must be a Hierarchy, a nested dict, a trained "):
        coarse_to_fine(3, epochs=EPOCHS)
    for path in (tmp_path, "bert-base-uncased"):
        with pytest.raises(FileNotFoundError, match="load that and give it in place of the path"):
            coarse_to_fine(path, epochs=EPOCHS)


# --------------------------------------------------------------------------- two processes


@pytest.mark.slow
def test_two_processes_train_as_one_with_the_hierarchy_of_the_first(tmp_path):
    script = Path(__file__).parent / "transformers_training.py"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for name, how in (("one", []), ("two", launch)):
        command = [sys.executable, *how, script, tmp_path / name]
        subprocess.run(command, check=True, timeout=120, env=environment, capture_output=True)
    one, *two = (torch.load(path) for path in sorted(tmp_path.glob("*/weights-*.pt")))
    assert len(two) == 2
    for weights in two:
        assert weights["levels"] == one["levels"] == LEVELS
        assert weights["hierarchy"] == one["hierarchy"] == HIERARCHY.to_dict()
        for name, weight in weights["model"].items():
            torch.testing.assert_close(weight, one["model"][name], rtol=1e-4, atol=1e-5)
