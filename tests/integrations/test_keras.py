"""The Keras loss, callback and hierarchy, on Keras' torch backend."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch._dynamo.testing import CompileCounterWithBackend

from coarse2fine import Hierarchy, MissingExtraError, coarse_cross_entropy

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = pytest.importorskip("keras")

from coarse2fine.integrations.keras import (  # noqa: E402
    CoarseToFineCallback,
    CoarseToFineCrossentropy,
    hierarchy_from_model,
)

# Keras' own variables lack an argument that numpy asks for.
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")

HIERARCHY = Hierarchy.from_levels([[0] * 6 + [1] * 6, np.arange(12) // 3], list("abcdefghijkl"))
SparseCrossentropy = keras.losses.SparseCategoricalCrossentropy


@pytest.fixture(autouse=True)
def _seeded_keras():
    keras.utils.set_random_seed(0)


@pytest.fixture
def data():
    return torch.randn(48, 5).numpy(), torch.randint(0, 12, (48,)).numpy()


def make_model(loss, rate=0.5, metrics=()):
    keras.utils.set_random_seed(1)
    hidden, head = keras.layers.Dense(8, activation="tanh"), keras.layers.Dense(12, name="head")
    model = keras.Sequential([keras.Input((5,)), hidden, head])
    model.compile(keras.optimizers.SGD(rate), loss, metrics=list(metrics))
    return model


def logits_loss(**options):
    return CoarseToFineCrossentropy(HIERARCHY, from_logits=True, **options)


def fit(model, data, epochs=6, **options):
    options = {"callbacks": [CoarseToFineCallback(epochs=6)], **options}
    return model.fit(*data, 16, epochs, verbose=0, shuffle=False, **options).history


# ----------------------------------------------------------------------------- the loss


@pytest.mark.parametrize("level", range(3))
@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
@pytest.mark.parametrize("shape", [(8,), (8, 1), (4, 3), (4, 3, 1)], ids=str)
def test_values_and_gradients_are_those_of_the_function(level, from_logits, shape):
    places = shape[:-1] if shape[-1] == 1 else shape
    logits = torch.randn(*places, 12, requires_grad=True)
    labels = torch.randint(0, 12, shape)
    loss = CoarseToFineCrossentropy(HIERARCHY, from_logits)
    loss.level = level
    found = loss(labels, logits if from_logits else logits.softmax(-1))
    expected = coarse_cross_entropy(logits.view(-1, 12), labels.ravel(), HIERARCHY.levels[level])
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, logits)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"from_logits": True},
        {"from_logits": False},
        {"from_logits": True, "reduction": "sum"},
        {"from_logits": True, "reduction": None},
        {"from_logits": True, "ignore_class": 3},
        {"from_logits": False, "ignore_class": -1},
    ],
    ids=str,
)
def test_at_the_finest_level_it_is_the_loss_of_keras(options):
    predictions, labels = torch.rand(8, 12) + 0.01, torch.tensor([3, 1, 3, 11, 0, 5, 7, 2])
    labels[0] = options.get("ignore_class", 3)
    loss = CoarseToFineCrossentropy(HIERARCHY, **options)
    assert isinstance(loss, SparseCrossentropy)
    assert loss.level == 2  # where it starts
    for weight in (None, torch.rand(8).tolist()):
        expected = SparseCrossentropy(**options)(labels, predictions, weight)
        assert torch.equal(loss(labels, predictions, weight), expected)


@pytest.mark.parametrize("ignored", [-1, 3, 255])
def test_an_ignored_label_counts_at_no_level(ignored):
    logits, labels = torch.randn(8, 12), torch.tensor([ignored, 1, 4, 11, 0, 5, 7, ignored])
    loss = logits_loss(ignore_class=ignored)
    for level, clusters in enumerate(HIERARCHY.levels):
        loss.level = level
        expected = coarse_cross_entropy(logits, labels, clusters, ignore_index=ignored)
        torch.testing.assert_close(loss(labels, logits), expected)


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_huge_logits_give_the_exact_loss(scale):
    logits, labels = scale * torch.randn(64, 12), torch.randint(0, 12, (64,))
    loss = logits_loss(reduction=None)
    for level, clusters in enumerate(HIERARCHY.levels):
        loss.level = level
        expected = coarse_cross_entropy(logits.double(), labels, clusters, reduction="none")
        torch.testing.assert_close(loss(labels, logits), expected.float())


@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")  # torch's own, as it compiles
def test_compiled_code_sees_the_level_change_without_recompilation():
    logits, labels, loss = torch.randn(8, 12), torch.randint(0, 12, (8,)), logits_loss()
    loss(labels, logits)  # Keras' name scopes begin with the first call
    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")
    compiled = torch.compile(loss, backend=counter, fullgraph=True)
    for level in (0, 1, 2, 0):
        loss.level = level
        expected = coarse_cross_entropy(logits, labels, HIERARCHY.levels[level])
        torch.testing.assert_close(compiled(labels, logits), expected)
    assert counter.frame_count == 1


def test_bad_use_is_named():
    loss = logits_loss()
    with pytest.raises(ValueError, match=r"level must lie in 0\.\.2, or be -1. Got 3"):
        loss.level = 3
    with pytest.raises(TypeError, match="level must be an integer. Got 1.0"):
        loss.level = 1.0
    with pytest.raises(ValueError, match=r"has 12 classes.* Got predictions of shape \(4, 10\)"):
        loss(torch.zeros(4), torch.zeros(4, 10))
    for wrong in (19, -1):  # 12 is the root, 13 to 18 are the clusters
        with pytest.raises(ValueError, match=rf"lie in 0\.\.18. Got {wrong} at position 1"):
            loss(torch.tensor([3, wrong]), torch.zeros(2, 12))
    with pytest.raises(TypeError, match="hierarchy must be a Hierarchy. Got list"):
        CoarseToFineCrossentropy([[0, 0, 1]])


def test_a_model_saved_at_a_coarse_level_is_loaded_at_the_finest(data, tmp_path):
    options = {"ignore_class": -1, "reduction": "sum", "name": "coarse"}
    loss, path = logits_loss(**options), tmp_path / "{epoch}.keras"
    keeper = keras.callbacks.ModelCheckpoint(path)
    fit(make_model(loss, rate=0.01), data, callbacks=[CoarseToFineCallback(6), keeper])
    loaded = keras.models.load_model(tmp_path / "1.keras")
    logits = loaded.predict(data[0], verbose=0)
    expected = SparseCrossentropy(from_logits=True, **options)(data[1], logits)
    assert loaded.evaluate(*data, 48, verbose=0) == pytest.approx(float(expected), rel=1e-5)
    assert loaded.loss.get_config() == loss.get_config()
    assert repr(loaded.loss).endswith("num_clusters=(2, 4, 12)), level=2 of 0..2)")


# ------------------------------------------------------------------------- the callback


def trained_by_hand(data, levels, weights):
    """The same model, trained in plain torch."""
    weights_at_first = make_model(logits_loss()).get_weights()
    inputs, labels = (torch.from_numpy(part) for part in data)
    parameters = [torch.from_numpy(array).requires_grad_() for array in weights_at_first]
    for level in levels:
        for batch in torch.arange(len(labels)).split(16):
            first, bias, second, offset = parameters
            logits = (inputs[batch] @ first + bias).tanh() @ second + offset
            losses = coarse_cross_entropy(
                logits, labels[batch], HIERARCHY.levels[level], reduction="none"
            )
            gradients = torch.autograd.grad((losses * weights[batch]).mean(), parameters)
            with torch.no_grad():
                for part, gradient in zip(parameters, gradients, strict=True):
                    part -= 0.5 * gradient
    return [part.detach().numpy() for part in parameters]


@pytest.mark.parametrize("weighting", [None, "class_weight", "sample_weight"])
def test_fit_trains_as_a_loop_by_hand_does(data, weighting):
    by_class = np.linspace(0.5, 2, 12, dtype="float32")
    weights = np.ones(48, "float32") if weighting is None else by_class[data[1]]
    options = {"class_weight": dict(enumerate(by_class.tolist())), "sample_weight": weights}
    model = make_model(logits_loss())
    fit(model, data, **{weighting: options[weighting]} if weighting else {})
    expected = trained_by_hand(data, [0, 0, 1, 1, 2, 2], torch.from_numpy(weights))
    for found, by_hand in zip(model.get_weights(), expected, strict=True):
        np.testing.assert_allclose(found, by_hand, rtol=1e-4, atol=1e-5)


def test_without_the_callback_fit_trains_on_the_classes(data):
    losses = logits_loss(), SparseCrossentropy(from_logits=True)
    found, expected = (fit(make_model(loss), data, 3, callbacks=[])["loss"] for loss in losses)
    assert found == pytest.approx(expected, rel=1e-6)


def test_validation_is_at_the_finest_level_and_the_history_has_the_level(data):
    fine = SparseCrossentropy(from_logits=True, name="fine")
    model = make_model(logits_loss(), metrics=[keras.metrics.MeanMetricWrapper(fine, "fine")])
    history = fit(model, data, 4, validation_data=data, callbacks=[CoarseToFineCallback(3)])
    assert history["curriculum_level"] == [0, 1, 2, 2]
    np.testing.assert_allclose(history["val_loss"], history["val_fine"], rtol=1e-5)
    same = np.isclose(history["loss"], history["fine"], rtol=1e-5)
    assert same.tolist() == [False, False, True, True]


def test_training_leaves_the_finest_level_even_when_cut_short(data):
    model = make_model(logits_loss())
    with pytest.warns(UserWarning, match="epochs is 4, but .* begins only after 4; raise epochs"):
        fit(model, data, 4)
    assert model.loss.level == 2
    model.loss.level = 0
    model.evaluate(*data, verbose=0, callbacks=[CoarseToFineCallback(boundaries=[2, 5])])
    assert model.loss.level == 0


class Interruption(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):  # noqa: ARG002
        if epoch == 3:
            raise KeyboardInterrupt


@pytest.mark.parametrize("way", ["backup", "checkpoint"])
def test_an_interrupted_fit_goes_on_where_it_was(data, tmp_path, way):
    whole = make_model(logits_loss())
    fit(whole, data)
    keeper = {
        "backup": keras.callbacks.BackupAndRestore(str(tmp_path)),
        "checkpoint": keras.callbacks.ModelCheckpoint(str(tmp_path / "last.keras")),
    }[way]
    callbacks = [CoarseToFineCallback(6), keeper]
    with pytest.raises(KeyboardInterrupt):
        fit(make_model(logits_loss()), data, callbacks=[*callbacks, Interruption()])
    if way == "backup":
        model = make_model(logits_loss())
        history = fit(model, data, callbacks=callbacks)
    else:
        model = keras.models.load_model(tmp_path / "last.keras")
        history = fit(model, data, initial_epoch=3, callbacks=callbacks)
    assert history["curriculum_level"] == [1, 2, 2]
    for weights, expected in zip(model.get_weights(), whole.get_weights(), strict=True):
        np.testing.assert_allclose(weights, expected, rtol=1e-5, atol=1e-6)


def test_early_stopping_can_wait_for_the_finest_level(data):
    loss = logits_loss()
    curriculum = CoarseToFineCallback(epochs=9, loss=loss)
    assert curriculum.finest_epoch == 6
    stopping = keras.callbacks.EarlyStopping(patience=2, start_from_epoch=curriculum.finest_epoch)
    model = make_model(loss, rate=0.0)  # never better
    fit(model, data, 20, validation_data=data, callbacks=[curriculum, stopping])
    assert stopping.stopped_epoch == 6 + 2


def test_of_several_outputs_the_one_with_levels_is_moved(data):
    inputs = keras.Input((5,))
    heads = {"a": keras.layers.Dense(12)(inputs), "b": keras.layers.Dense(1)(inputs)}
    model = keras.Model(inputs, heads)
    loss = logits_loss()
    model.compile("sgd", {"a": loss, "b": "mse"})
    callback = CoarseToFineCallback(boundaries=[1, 2])
    history = model.fit(
        data[0], {"a": data[1], "b": data[0][:, :1]}, epochs=3, verbose=0, callbacks=[callback]
    ).history
    assert callback.loss is loss
    assert history["curriculum_level"] == [0, 1, 2]
    model.compile("sgd", {"a": loss, "b": logits_loss()})
    with pytest.raises(ValueError, match="2 losses that have levels; use one callback for each"):
        CoarseToFineCallback(3).set_model(model)


@pytest.mark.parametrize("arguments", [{}, {"epochs": 3, "boundaries": [1, 2]}])
def test_either_a_length_or_boundaries_are_given(arguments):
    with pytest.raises(ValueError, match="give exactly one of epochs, boundaries and patience"):
        CoarseToFineCallback(**arguments)


def test_a_model_with_another_loss_is_refused(monkeypatch):
    plain = make_model("sparse_categorical_crossentropy")
    with pytest.raises(ValueError, match="not compiled with a CoarseToFineCr.*sparse_categorical"):
        CoarseToFineCallback(3).set_model(plain)
    with pytest.raises(ValueError, match="not compiled with the loss that the callback has"):
        CoarseToFineCallback(3, loss=logits_loss()).set_model(make_model(logits_loss()))
    with pytest.raises(TypeError, match="loss must be a CoarseToFineCrossentropy. Got str"):
        CoarseToFineCallback(3, loss="mse")
    with pytest.raises(ValueError, match=r"known only in fit, or with .*loss=loss"):
        _ = CoarseToFineCallback(3).finest_epoch
    jitted = make_model(logits_loss())
    jitted.jit_compile = True
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="JAX.*compile with jit_compile=False"):
        CoarseToFineCallback(3).set_model(jitted)


# ------------------------------------------------------------------------ the hierarchy


def test_a_hierarchy_comes_from_the_final_layer():
    dense, layers = make_model(None), keras.layers
    kernel = dense.get_weights()[2]
    expected = Hierarchy.from_embeddings(kernel.T, class_names=list("abcdefghijkl"))
    pixels = keras.Sequential([keras.Input((4, 4, 8)), layers.Conv2D(12, 1)])
    pixels.layers[0].kernel.assign(kernel[None, None])
    nested = keras.Sequential([dense, layers.Dropout(0.1), layers.Softmax()])
    for model in (dense, pixels, nested):
        assert hierarchy_from_model(model, list("abcdefghijkl")) == expected
    forked = keras.Model(dense.inputs, [dense.outputs[0], layers.Dense(3)(dense.outputs[0])])
    assert hierarchy_from_model(forked, list("abcdefghijkl"), head="head") == expected
    with pytest.raises(ValueError, match="several outputs; name the layer"):
        hierarchy_from_model(forked)


def test_a_model_without_a_linear_final_layer_is_named():
    dense, layers = make_model(None), keras.layers
    normed = keras.Sequential([dense, layers.BatchNormalization(name="norm")])
    with pytest.raises(ValueError, match=r"'norm' \(BatchNormalization\) is no Dense layer or 1×1"):
        hierarchy_from_model(normed)
    wide = keras.Sequential([keras.Input((4, 4, 8)), layers.Conv2D(12, 3, name="wide")])
    with pytest.raises(ValueError, match=r"final layer 'wide' \(Conv2D\)"):
        hierarchy_from_model(wide)
    with pytest.raises(ValueError, match="no layer of the model has weights yet"):
        hierarchy_from_model(keras.Sequential([layers.Dense(12)]))


# -------------------------------------------------------------------------- what is missing


def test_without_keras_the_pip_line_is_given(monkeypatch):
    monkeypatch.setitem(sys.modules, "keras", None)
    monkeypatch.delitem(sys.modules, "coarse2fine.integrations.keras")
    with pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[keras\]'"):
        importlib.import_module("coarse2fine.integrations.keras")


@pytest.mark.skipif(bool(importlib.util.find_spec("tensorflow")), reason="it is installed")
def test_without_the_backend_of_keras_the_way_to_choose_another_is_given():
    ended = subprocess.run(
        [sys.executable, "-c", "import coarse2fine.integrations.keras"],
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "No module named 'tensorflow'); choose one that is, before" in ended.stderr
