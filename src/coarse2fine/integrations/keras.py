"""The curriculum in Keras 3: a loss, a callback, and a hierarchy from a model.

model.compile("adam", CoarseToFineCrossentropy(hierarchy_from_model(baseline)))
model.fit(x, y, epochs=30, callbacks=[CoarseToFineCallback(epochs=10)])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from .._hierarchy.levels import to_class_indices
from ..curriculum import Curriculum
from ..errors import MissingExtraError, require
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ._curriculum import curriculum_from, warn_if_cut_short

try:
    require("keras", "keras")  # says how to install it where it is missing
except MissingExtraError as error:
    missing = getattr(error.__cause__, "name", None) or ""
    if missing.partition(".")[0] not in ("jax", "openvino", "tensorflow", "torch"):
        raise
    raise ImportError(
        f"Keras is here, but its backend is not ({error.__cause__}); choose one that is, before "
        f'anything imports Keras: os.environ["KERAS_BACKEND"] = "torch".'
    ) from error
import keras  # type: ignore[import-untyped]
from keras import ops

# exp(-1e4) is 0 in every float type, while the number itself is finite in all of them.
NEGLIGIBLE = 1e4


@keras.saving.register_keras_serializable(package="coarse2fine")
class CoarseToFineCrossentropy(keras.losses.SparseCategoricalCrossentropy):  # type: ignore[misc]
    """A drop-in for Keras' SparseCategoricalCrossentropy that can count classes as one.

    It takes the same predictions over the K classes and the same integer labels at every
    level. At the last level, the finest, where it starts, this is Keras' own loss; at those
    before, to which `CoarseToFineCallback` moves it during `fit`, the model is only asked
    for the label's cluster. `model.save` keeps the hierarchy, not the level.

    Args:
        hierarchy: The levels.
        from_logits: Whether the model gives logits, not probabilities. Defaults to False.
        ignore_class: A label that does not count. Defaults to None.
        reduction: Defaults to ``"sum_over_batch_size"``.
        name: Defaults to ``"coarse_to_fine_crossentropy"``.
        dtype: Defaults to None: Keras' ``floatx``.

    Examples:
        >>> loss = CoarseToFineCrossentropy(Hierarchy.from_levels([[0, 0, 1, 1]]))
        >>> label, probabilities = np.array([1]), np.array([[0.6, 0.3, 0.08, 0.02]])
        >>> round(float(loss(label, probabilities)), 4)  # -log(0.3)
        1.204
        >>> loss.level = 0
        >>> round(float(loss(label, probabilities)), 4)  # -log(0.6 + 0.3)
        0.1054
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        from_logits: bool = False,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        name: str = "coarse_to_fine_crossentropy",
        dtype: Any = None,
    ) -> None:
        if not isinstance(hierarchy, Hierarchy):
            raise TypeError(f"hierarchy must be a Hierarchy. Got {type(hierarchy).__name__}.")
        super().__init__(from_logits, ignore_class, reduction, name=name, dtype=dtype)
        self.hierarchy = hierarchy
        self._clusters = ops.convert_to_tensor(np.stack(hierarchy.levels), dtype="int32")
        # Torch's loss checks a level; the variable is for compiled steps to see it change.
        self._criterion = CoarseToFineLoss(hierarchy)
        self._level = keras.Variable(0, dtype="int32", trainable=False, name="level")
        self.level = -1

    @property
    def level(self) -> int:
        """The level in force, from 0, the coarsest; -1 may be set for the finest."""
        return self._criterion.level

    @level.setter
    def level(self, level: int) -> None:
        self._criterion.level = level
        self._level.assign(self.level)

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return the loss of each label at the level in force: equation 1 of the paper."""
        return super().call(y_true, self._merged(y_true, y_pred))

    def _merged(self, y_true: Any, y_pred: Any) -> Any:
        """Return the predictions with all of the label's cluster moved to the label itself."""
        is_label, in_cluster = self._label_and_cluster(y_true, y_pred)
        if self.from_logits:
            inside = ops.where(in_cluster, y_pred, float("-inf"))
            cluster = ops.logsumexp(inside, axis=-1, keepdims=True)
            rest = cluster - NEGLIGIBLE
        else:
            cluster = ops.sum(ops.where(in_cluster, y_pred, 0.0), axis=-1, keepdims=True)
            rest = 0.0
        return ops.where(is_label, cluster, ops.where(in_cluster, rest, y_pred))

    def _label_and_cluster(self, y_true: Any, y_pred: Any) -> tuple[Any, Any]:
        """Return which predictions are of the label, and which of a class in its cluster."""
        classes = self._clusters.shape[-1]
        if y_pred.shape[-1] != classes:
            raise ValueError(
                f"the hierarchy has {classes} classes, so the model must give {classes} values "
                f"for each sample. Got predictions of shape {tuple(y_pred.shape)}."
            )
        label = ops.cast(y_true, "int32")
        if len(y_true.shape) < len(y_pred.shape):
            label = ops.expand_dims(label, axis=-1)
        if self.ignore_class is not None:
            label = ops.where(ops.equal(label, self.ignore_class), 0, label)
        on_cpu = isinstance(label, torch.Tensor) and label.device.type == "cpu"
        if on_cpu and not torch.compiler.is_compiling():  # elsewhere a look would cost time
            to_class_indices(label, classes)
        owner = ops.take(self._clusters, self._level, axis=0)
        is_label = ops.equal(label, ops.arange(classes, dtype="int32"))
        return is_label, ops.equal(ops.take(owner, label), owner)

    def get_config(self) -> dict[str, Any]:
        """Return all that `from_config` needs, as plain values."""
        return {**super().get_config(), "hierarchy": self.hierarchy.to_dict()}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> CoarseToFineCrossentropy:
        """Return the loss that `get_config` described, at the finest level."""
        return cls(**{**config, "hierarchy": Hierarchy.from_dict(config["hierarchy"])})

    def __repr__(self) -> str:
        last = len(self.hierarchy.levels) - 1
        return f"{type(self).__name__}({self.hierarchy!r}, level={self.level} of 0..{last})"


class CoarseToFineCallback(keras.callbacks.Callback):  # type: ignore[misc]
    """Moves a model's loss from the coarsest to the finest level, epoch by epoch.

    The level is a function of the epoch alone, so `fit(initial_epoch=...)` and
    BackupAndRestore go on where they were. Validation is at the finest level always, so
    `val_loss` means the same all along. History, and the callbacks after this one, find the
    level in the logs as ``curriculum_level``. Training leaves the loss at the finest level.

    Args:
        epochs: T, the length of the curriculum in epochs.
        boundaries: Instead of T, the epochs at which the levels 1, 2, ... begin, one for
            each level but the coarsest.
        loss: The loss to move. Defaults to None: the one that the model is compiled with.

    Attributes:
        loss: The loss; where it was not given, known once `fit` has begun.
        curriculum: Which level at which epoch; known when the loss is.
    """

    loss: CoarseToFineCrossentropy
    curriculum: Curriculum

    def __init__(
        self,
        epochs: int | None = None,
        *,
        boundaries: Iterable[int] | None = None,
        loss: CoarseToFineCrossentropy | None = None,
    ) -> None:
        super().__init__()
        if (epochs is None) == (boundaries is None):
            raise ValueError("give either epochs or boundaries.")
        self._epochs = epochs
        self._boundaries = None if boundaries is None else tuple(boundaries)
        self._given = loss
        if loss is not None:
            self._use(loss)

    @property
    def finest_epoch(self) -> int:
        """The epoch, from 0, at which the finest level begins; known when the loss is."""
        if not hasattr(self, "curriculum"):
            raise ValueError("known only in fit, or with CoarseToFineCallback(..., loss=loss).")
        return self.curriculum.finest_epoch or 0

    def set_model(self, model: Any) -> None:
        """Find the loss in the compiled model; Keras calls this."""
        super().set_model(model)
        _check_backend(model)
        self._use(_loss_of(model, self._given))

    def on_train_begin(self, logs: Any = None) -> None:
        """Warn where training would end before the model is asked for the classes."""
        if self.params:
            warn_if_cut_short(self.params["epochs"], self.curriculum, "epochs")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the level of the epoch."""
        self.loss.level = self.curriculum.level_at(epoch)

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Put the level into the logs."""
        if logs is not None:
            logs["curriculum_level"] = self.curriculum.level_at(epoch)

    def on_test_begin(self, logs: Any = None) -> None:
        """Validate at the finest level."""
        self._level_of_training = self.loss.level
        self.loss.level = -1

    def on_test_end(self, logs: Any = None) -> None:
        """Go back to the level of training."""
        self.loss.level = self._level_of_training

    def on_train_end(self, logs: Any = None) -> None:
        """Leave the loss at the finest level."""
        self.loss.level = -1

    def _use(self, loss: CoarseToFineCrossentropy) -> None:
        if not isinstance(loss, CoarseToFineCrossentropy):
            raise TypeError(f"loss must be a CoarseToFineCrossentropy. Got {type(loss).__name__}.")
        self.loss = loss
        # The curriculum of a torch loss does the arithmetic and the checks.
        self.curriculum = curriculum_from(loss.hierarchy, self._epochs, boundaries=self._boundaries)


def hierarchy_from_model(
    model: Any, class_names: Sequence[str] | None = None, *, head: str | None = None
) -> Hierarchy:
    """Cluster the classes of a trained Keras classifier by its final layer's kernel.

    Args:
        model: The classifier. Its final layer, the last that has weights, must be a Dense
            layer or a 1×1 convolution.
        class_names: Defaults to None.
        head: The name of the final layer where it is another one. Defaults to None.
    """
    layer = _final_layer(model) if head is None else model.get_layer(head)
    if not _is_linear(layer):
        raise ValueError(
            f"the final layer {layer.name!r} ({type(layer).__name__}) is no Dense layer or 1×1 "
            f"convolution; name another, head=..., or give Hierarchy.from_embeddings a matrix."
        )
    kernel = ops.convert_to_numpy(ops.convert_to_tensor(layer.kernel, dtype="float32"))
    vectors = kernel.reshape(-1, kernel.shape[-1]).T
    return Hierarchy.from_embeddings(vectors, class_names=class_names)


def _final_layer(model: Any) -> Any:
    if len(getattr(model, "outputs", None) or ()) > 1:
        raise ValueError("the model has several outputs; name the layer that is meant: head=...")
    layers = [layer for layer in _innermost(model) if layer.weights]
    if not layers:
        raise ValueError("no layer of the model has weights yet; build the model and train it.")
    return layers[-1]


def _innermost(layer: Any) -> list[Any]:
    if not isinstance(layer, keras.Model):
        return [layer]
    return [inner for part in layer.layers for inner in _innermost(part)]


def _is_linear(layer: Any) -> bool:
    convolutions = keras.layers.Conv1D, keras.layers.Conv2D, keras.layers.Conv3D
    if isinstance(layer, convolutions):
        return layer.groups == 1 and all(size == 1 for size in layer.kernel_size)
    return isinstance(layer, keras.layers.Dense)


def _loss_of(model: Any, given: CoarseToFineCrossentropy | None) -> CoarseToFineCrossentropy:
    losses = {id(loss): loss for loss in keras.tree.flatten(model.loss)}
    found = [loss for loss in losses.values() if isinstance(loss, CoarseToFineCrossentropy)]
    if given is not None:
        found = [loss for loss in found if loss is given]
    if not found:
        which = "a CoarseToFineCrossentropy" if given is None else "the loss that the callback has"
        raise ValueError(f"the model is not compiled with {which}; its loss is {model.loss!r}.")
    if len(found) > 1:
        raise ValueError(
            f"the model is compiled with {len(found)} losses that have levels; use one callback "
            f"for each: CoarseToFineCallback(..., loss=loss)."
        )
    return found[0]


def _check_backend(model: Any) -> None:
    if keras.config.backend() == "jax" and model.jit_compile and not model.run_eagerly:
        raise ValueError("jitted JAX steps see no change of level; compile with jit_compile=False.")
