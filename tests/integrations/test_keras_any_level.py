"""Labels at any level in Keras, beside their definition and loops by hand."""

import os

import numpy as np
import pytest
import torch
from node_labels import accuracy_by_hand, losses_by_hand, masks, mixed
from torch._dynamo.testing import CompileCounterWithBackend

from coarse2fine import CoarseToFineLoss, Curriculum

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from test_keras import HIERARCHY, logits_loss, make_model  # noqa: E402

from coarse2fine.integrations.keras import (  # noqa: E402
    ClassAccuracy,
    CoarseToFineCallback,
    CoarseToFineCrossentropy,
)

# Keras' own variables lack an argument that numpy asks for.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
EPOCHS = 16
EVERY_NODE = torch.arange(len(HIERARCHY.nodes))
NODES = mixed(torch.arange(48) % 12, HIERARCHY)
BOTH = ["nodes", "masks"]


def of_kind(kind, labels):
    return labels if kind == "nodes" else masks(labels, HIERARCHY)


@pytest.fixture(scope="module")
def inputs():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(48, 5))
    return (rng.normal(size=(12, 5))[np.arange(48) % 12] + noise).astype("float32")


# ----------------------------------------------------------------------------- the loss


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
@pytest.mark.parametrize("kind", BOTH)
def test_values_and_gradients_are_those_of_the_definition(level, from_logits, kind):
    logits = torch.randn(len(EVERY_NODE), 12, requires_grad=True)
    loss = CoarseToFineCrossentropy(HIERARCHY, from_logits, reduction="sum")
    loss.level = level
    found = loss(of_kind(kind, EVERY_NODE), logits if from_logits else logits.softmax(-1))
    expected = losses_by_hand(logits, EVERY_NODE, HIERARCHY, level).sum()
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, logits)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", [(19, 1), (1, 19), (1, 19, 1)], ids=str)
def test_nodes_and_masks_may_have_any_shape(shape):
    places = shape[:-1] if shape[-1] == 1 else shape
    logits, loss = torch.randn(*places, 12), logits_loss()
    loss.level = 1
    expected = losses_by_hand(logits.view(-1, 12), EVERY_NODE, HIERARCHY, 1).mean()
    torch.testing.assert_close(loss(EVERY_NODE.view(shape), logits), expected)
    rows = masks(EVERY_NODE, HIERARCHY).view(*places, 12)
    torch.testing.assert_close(loss(rows, logits), expected)


@pytest.mark.parametrize("ignored", [-1, 3, 14, 15])
def test_an_ignored_label_is_no_member_of_a_cluster(ignored):
    """Class 3 is the first of clusters too, and these must count."""
    logits, kept = torch.randn(len(EVERY_NODE), 12), ignored != EVERY_NODE
    loss = logits_loss(ignore_class=ignored, reduction="sum")
    for level in range(3):
        loss.level = level
        expected = losses_by_hand(logits[kept], EVERY_NODE[kept], HIERARCHY, level).sum()
        torch.testing.assert_close(loss(EVERY_NODE, logits), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's own, as it compiles
@pytest.mark.parametrize("kind", BOTH)
def test_compiled_code_sees_the_level_change_without_recompilation(kind):
    logits, labels, loss = torch.randn(19, 12), of_kind(kind, EVERY_NODE), logits_loss()
    loss(labels, logits)  # Keras' name scopes begin with the first call
    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(loss, backend=counter, fullgraph=True)
    for level in (0, 1, 2, 0):
        loss.level = level
        expected = losses_by_hand(logits, EVERY_NODE, HIERARCHY, level).mean()
        torch.testing.assert_close(compiled(labels, logits), expected)
    assert counter.frame_count == 1


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        (torch.tensor([0, 19]), {}, r"nodes of the hierarchy, must lie in 0..18. Got 19 at pos"),
        (torch.ones(2, 11), {}, r"row of candidates needs 12 entries. Got labels .* \(2, 11\)"),
        (torch.zeros(2, 12), {}, r"target\[0\] has no candidate class"),
        (torch.full((2, 12), 0.5), {}, "class probabilities are not taken. Got 0.5"),
        (torch.ones(2, 12), {"ignore_class": 3}, "ignore_class=3 means nothing for rows of"),
    ],
)
def test_labels_that_mean_nothing_are_named(labels, options, message):
    with pytest.raises(ValueError, match=message):
        logits_loss(**options)(labels, torch.zeros(2, 12))


# ------------------------------------------------------------------------------ training


def by_hand(inputs, labels, epochs, level_of):
    """The weights, and the level of each epoch, in plain torch."""
    parts = [torch.from_numpy(w).requires_grad_() for w in make_model(logits_loss()).get_weights()]
    inputs, levels = torch.from_numpy(inputs), []

    def logits(x):
        return (x @ parts[0] + parts[1]).tanh() @ parts[2] + parts[3]

    for _ in range(epochs):
        levels.append(level_of(levels, logits(inputs)))
        for rows in torch.arange(48).split(16):
            losses = losses_by_hand(logits(inputs[rows]), labels[rows], HIERARCHY, levels[-1])
            gradients = torch.autograd.grad(losses.mean(), parts)
            with torch.no_grad():
                for part, gradient in zip(parts, gradients, strict=True):
                    part -= 0.5 * gradient
    return [part.detach().numpy() for part in parts], levels


class Recording(keras.callbacks.Callback):
    """Notes the accuracies that the curriculum goes by."""

    def __init__(self):
        super().__init__()
        self.accuracies = []

    def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
        if self.model.loss.level < 2:
            self.accuracies.append(self.model.loss._kept["accuracy"])


@pytest.mark.parametrize("kind", BOTH)
def test_a_level_lasts_by_the_labels_that_tell_its_clusters(inputs, kind):
    labels, accuracies = of_kind(kind, NODES), []
    curriculum = Curriculum(CoarseToFineLoss(HIERARCHY), patience=2, total_epochs=EPOCHS)

    def level_of(levels, logits):
        if levels and not curriculum.is_finest:
            accuracies.append(accuracy_by_hand(logits, labels, HIERARCHY, levels[-1]))
            curriculum.step(accuracies[-1])
        return curriculum.level

    weights, levels = by_hand(inputs, labels, EPOCHS, level_of)
    model, recording = make_model(logits_loss()), Recording()
    data = inputs, labels.numpy()
    callbacks = [CoarseToFineCallback(patience=2), recording]
    options = {"validation_data": data, "verbose": 0, "shuffle": False, "callbacks": callbacks}
    history = model.fit(*data, 16, EPOCHS, **options).history
    assert history["curriculum_level"] == levels
    assert sorted(set(levels)) == [0, 1, 2]
    assert recording.accuracies == accuracies
    for found, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


def test_no_curriculum_is_needed(inputs):
    weights, _ = by_hand(inputs, NODES, 3, lambda *_: 2)
    model = make_model(logits_loss())
    model.fit(inputs, NODES.numpy(), 16, 3, verbose=0, shuffle=False)
    for found, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


# --------------------------------------------------------------------------- the accuracy


@pytest.mark.parametrize("kind", BOTH)
def test_the_accuracy_is_that_of_the_samples_with_a_class(inputs, kind):
    labels = of_kind(kind, NODES)
    model = make_model(logits_loss(), metrics=[ClassAccuracy()])
    history = model.fit(inputs, labels.numpy(), 16, 2, validation_data=(inputs, labels), verbose=0)
    logits = torch.from_numpy(model.predict(inputs, verbose=0))
    expected = accuracy_by_hand(logits, NODES, HIERARCHY, -1)
    assert history.history["val_class_accuracy"][-1] == pytest.approx(expected)


@pytest.mark.parametrize("shape", [(8,), (8, 1), (4, 2), (4, 2, 1)], ids=str)
def test_the_accuracy_weights_samples_as_that_of_keras_does(shape):
    places = shape[:-1] if shape[-1] == 1 else shape
    labels, scores = torch.arange(8).view(shape) + 5, torch.eye(12)[[5, 6, 0, 8, 0, 0, 0, 0]]
    is_class = labels.reshape(places) < 12  # all but the last
    for weight in (torch.rand(places), torch.rand(places[0]), torch.rand(*places, 1)):
        own, plain = ClassAccuracy(), keras.metrics.SparseCategoricalAccuracy()
        own.update_state(labels, scores.view(*places, 12), weight)
        each = weight.reshape(*weight.shape[: len(places)], *[1] * (len(places) - weight.dim()))
        plain.update_state(labels, scores.view(*places, 12), each * is_class)
        assert float(own.result()) == pytest.approx(float(plain.result()))


def test_the_accuracy_is_saved_with_a_model(inputs, tmp_path):
    model = make_model(logits_loss(), metrics=[ClassAccuracy(name="known")])
    model.fit(inputs, NODES.numpy(), verbose=0)
    model.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    found, expected = (
        m.evaluate(inputs, NODES.numpy(), verbose=0, return_dict=True) for m in (again, model)
    )
    assert found["known"] == expected["known"] > 0
