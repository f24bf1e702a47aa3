"""With patience, Keras' validations say how long a level lasts."""

import os

import numpy as np
import pytest
import torch

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, coarse_cross_entropy
from coarse2fine._tally import Tally

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from test_keras import HIERARCHY, SparseCrossentropy, logits_loss, make_model  # noqa: E402

from coarse2fine.integrations.keras import (  # noqa: E402
    CoarseToFineCallback,
    CoarseToFineCrossentropy,
    CoarseToFineEarlyStopping,
)

# Keras' own variables lack an argument that numpy asks for.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
EPOCHS, PATIENCE = 16, 2


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(48) % 12
    return (rng.normal(size=(12, 5))[y] + rng.normal(size=(48, 5))).astype("float32"), y


@pytest.fixture(scope="module")
def valid(data):
    rng = np.random.default_rng(1)
    return data[0] + 0.5 * rng.normal(size=(48, 5)).astype("float32"), data[1]


def fit(model, data, valid, epochs=EPOCHS, callbacks=(), patience=PATIENCE, **options):
    """The history of a training with patience."""
    every = [CoarseToFineCallback(patience=patience), *callbacks]
    options = {"validation_data": valid, "verbose": 0, "shuffle": False} | options
    return model.fit(*data, 16, epochs, callbacks=every, **options).history


def by_hand(data, valid, epochs=EPOCHS, patience=PATIENCE):
    """The weights and the level of each epoch, in plain torch."""
    parts = [torch.from_numpy(w).requires_grad_() for w in make_model(logits_loss()).get_weights()]
    curriculum = Curriculum(CoarseToFineLoss(HIERARCHY), patience=patience, total_epochs=epochs)
    (inputs, labels), (unseen, truth) = (map(torch.from_numpy, pair) for pair in (data, valid))
    levels = []

    def logits(x):
        return (x @ parts[0] + parts[1]).tanh() @ parts[2] + parts[3]

    for _ in range(epochs):
        levels.append(curriculum.level)
        clusters = torch.tensor(HIERARCHY.levels[curriculum.level])
        for batch in torch.arange(len(labels)).split(16):
            loss = coarse_cross_entropy(logits(inputs[batch]), labels[batch], clusters)
            gradients = torch.autograd.grad(loss, parts)
            with torch.no_grad():
                for part, gradient in zip(parts, gradients, strict=True):
                    part -= 0.5 * gradient
        tally = Tally(clusters)
        tally.note(logits(unseen), truth)
        curriculum.step(tally.accuracy())
    return [part.detach().numpy() for part in parts], levels


@pytest.mark.parametrize("patience", [1, 2])
def test_fit_trains_as_a_loop_by_hand_does(data, valid, patience):
    model = make_model(logits_loss())
    history = fit(model, data, valid, patience=patience)
    weights, levels = by_hand(data, valid, patience=patience)
    assert history["curriculum_level"] == levels
    assert sorted(set(levels)) == [0, 1, 2]
    for found, expected in zip(model.get_weights(), weights, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert model.loss.level == 2


def test_the_validation_loss_stays_that_of_the_classes(data, valid):
    fine = SparseCrossentropy(from_logits=True, name="fine")
    model = make_model(logits_loss(), metrics=[keras.metrics.MeanMetricWrapper(fine, "fine")])
    history = fit(model, data, valid, 6)
    np.testing.assert_allclose(history["val_loss"], history["val_fine"], rtol=1e-5)


def test_the_coarse_levels_take_at_most_half_of_the_epochs(data, valid):
    history = fit(make_model(logits_loss()), data, valid, 8, patience=50)
    assert history["curriculum_level"] == [0, 0, 1, 1, 2, 2, 2, 2]


@pytest.mark.parametrize("shape", [(8,), (8, 1), (4, 3)])
@pytest.mark.parametrize("from_logits", [True, False])
def test_the_loss_counts_what_is_right_at_a_level(shape, from_logits):
    places = shape[:-1] if shape[-1] == 1 else shape
    logits, labels = torch.randn(*places, 12), torch.randint(0, 12, shape)
    labels.view(-1)[0] = 3
    loss = CoarseToFineCrossentropy(HIERARCHY, from_logits, ignore_class=3)
    clusters = torch.tensor(HIERARCHY.levels[0])
    loss._tally = Tally(clusters)
    loss(labels, logits if from_logits else logits.softmax(-1))
    counted = labels.reshape(-1) != 3
    mass = logits.reshape(-1, 12)[counted].softmax(-1) @ torch.eye(2)[clusters]
    hits = mass.argmax(1) == clusters[labels.reshape(-1)[counted]]
    assert loss._tally.accuracy() == pytest.approx(hits.float().mean().item())


class Peeking(keras.callbacks.Callback):
    """Looks at other samples after every epoch."""

    def __init__(self, samples, curriculum):
        super().__init__()
        self.samples, self.curriculum = samples, curriculum

    def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
        self.model.evaluate(*self.samples, verbose=0, callbacks=[self.curriculum])
        self.model.predict(self.samples[0], verbose=0, callbacks=[self.curriculum])


def test_what_is_evaluated_beside_does_not_count(data, valid):
    curriculum = CoarseToFineCallback(patience=PATIENCE)
    peeking = Peeking((data[0][:1], data[1][:1]), curriculum)
    model = make_model(logits_loss())
    options = {"validation_data": valid, "verbose": 0, "shuffle": False}
    history = model.fit(*data, 16, EPOCHS, callbacks=[curriculum, peeking], **options).history
    assert history["curriculum_level"] == by_hand(data, valid)[1]


# ---------------------------------------------------------------- stopping and going on


class Interruption(keras.callbacks.Callback):
    def __init__(self, epoch):
        super().__init__()
        self.epoch = epoch

    def on_epoch_begin(self, epoch, logs=None):  # noqa: ARG002
        if epoch == self.epoch:
            raise KeyboardInterrupt


@pytest.mark.parametrize("way", ["backup", "checkpoint", "weights"])
@pytest.mark.parametrize("epoch", [1, 4, 7, 9])
def test_an_interrupted_fit_goes_on_where_it_was(data, valid, tmp_path, way, epoch):
    whole = make_model(logits_loss())
    levels = fit(whole, data, valid)["curriculum_level"]
    keeper = {
        "backup": keras.callbacks.BackupAndRestore(str(tmp_path)),
        "checkpoint": keras.callbacks.ModelCheckpoint(str(tmp_path / "last.keras")),
        "weights": keras.callbacks.ModelCheckpoint(
            str(tmp_path / "last.weights.h5"), save_weights_only=True
        ),
    }[way]
    with pytest.raises(KeyboardInterrupt):
        fit(make_model(logits_loss()), data, valid, callbacks=[keeper, Interruption(epoch)])
    model, options = make_model(logits_loss()), {"initial_epoch": epoch}
    if way == "backup":
        options = {"callbacks": [keeper]}
    elif way == "checkpoint":
        model = keras.models.load_model(tmp_path / "last.keras")
    else:
        model.load_weights(tmp_path / "last.weights.h5")
    assert fit(model, data, valid, **options)["curriculum_level"] == levels[epoch:]
    for weights, expected in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_array_equal(weights, expected)


def test_a_second_fit_goes_on_or_begins_anew(data, valid):
    model = make_model(logits_loss(), rate=0.0)  # nothing improves
    first = fit(model, data, valid, 8)["curriculum_level"]
    assert first == [0, 0, 1, 1, 2, 2, 2, 2]
    assert fit(model, data, valid, 10, initial_epoch=8)["curriculum_level"] == [2, 2]
    assert fit(model, data, valid, 8)["curriculum_level"] == first


def test_weights_go_to_and_from_models_with_another_loss(data, valid, tmp_path):
    model, plain = make_model(logits_loss()), make_model(SparseCrossentropy(from_logits=True))
    fit(model, data, valid, 6)
    model.save_weights(tmp_path / "c.weights.h5")
    plain.load_weights(tmp_path / "c.weights.h5")
    plain.save_weights(tmp_path / "p.weights.h5")
    model.load_weights(tmp_path / "p.weights.h5")
    for weights, expected in zip(plain.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(weights, expected)


@pytest.mark.parametrize("length", [{"patience": 2}, {"epochs": 9}])
def test_early_stopping_waits_for_the_finest_level(data, valid, length):
    stopping = CoarseToFineEarlyStopping(patience=2)
    model = make_model(logits_loss(), rate=0.0)  # never better
    callbacks = [stopping, CoarseToFineCallback(**length)]
    options = {"validation_data": valid, "verbose": 0, "callbacks": callbacks}
    model.fit(*data, 16, 20, **options)
    assert stopping.stopped_epoch == 6 + 2


def test_early_stopping_of_a_baseline_is_keras(data, valid):
    stopping = CoarseToFineEarlyStopping(patience=2)
    model = make_model(SparseCrossentropy(from_logits=True), rate=0.0)
    options = {"validation_data": valid, "verbose": 0, "callbacks": [stopping]}
    model.fit(*data, 16, 20, **options)
    assert stopping.stopped_epoch == 2


# ---------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("options", [{"validation_data": None}, {"validation_freq": 2}])
def test_an_epoch_that_is_not_validated_is_an_error(data, valid, options):
    with pytest.raises(ValueError, match="there is none of epoch 0; give fit validation data and"):
        fit(make_model(logits_loss()), data, valid, **options)


def test_a_later_epoch_without_a_state_is_an_error(data, valid):
    with pytest.raises(ValueError, match="fit begins at epoch 3, but the model has no state of"):
        fit(make_model(logits_loss()), data, valid, initial_epoch=3)
    loss = logits_loss()
    fit(make_model(loss), data, valid, 6)
    other = CoarseToFineCrossentropy(Hierarchy.from_levels([[0] * 6 + [1] * 6]), from_logits=True)
    other._kept = loss._kept
    with pytest.raises(ValueError, match="patience through these levels"):
        fit(make_model(other), data, valid, initial_epoch=3)


def test_another_backend_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "tensorflow")
    with pytest.raises(ValueError, match="patience needs the torch backend.*give epochs=T"):
        CoarseToFineCallback(patience=3).set_model(make_model(logits_loss()))


def test_training_that_ends_before_the_classes_is_warned_of(data, valid):
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):  # noqa: ARG002
            self.model.stop_training = True

    with pytest.warns(UserWarning, match="Training ended at level 0, before the classes"):
        fit(make_model(logits_loss()), data, valid, callbacks=[Stop()])


def test_the_first_epoch_at_the_finest_level_is_known_once_it_has_begun(data, valid):
    loss = logits_loss()
    callback = CoarseToFineCallback(patience=PATIENCE, loss=loss)
    assert callback.finest_epoch is None
    model = make_model(loss)
    model.fit(*data, 16, EPOCHS, validation_data=valid, verbose=0, callbacks=[callback])
    assert callback.finest_epoch is not None
    assert callback.curriculum.is_finest
