"""The curriculum in Keras 3: a loss, a callback, and a hierarchy from a model.

model.compile("adam", CoarseToFineCrossentropy(hierarchy_from_model(baseline)))
model.fit(x, y, validation_split=0.2, epochs=30, callbacks=[CoarseToFineCallback(patience=5)])
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .._hierarchy.levels import to_class_indices
from .._tally import Tally
from ..curriculum import Curriculum
from ..errors import MissingExtraError, require
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ._curriculum import check_one_length, curriculum_from, warn_if_coarse, warn_if_cut_short
from ._pace import Pace

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

from ._keras_hierarchy import hierarchy_from_model

__all__ = [
    "CoarseToFineCallback",
    "CoarseToFineCrossentropy",
    "CoarseToFineEarlyStopping",
    "hierarchy_from_model",
]

_REMEDY = "give fit validation data and validate after every epoch"
# exp(-1e4) is 0 in every float type, while the number itself is finite in all of them.
NEGLIGIBLE = 1e4


@keras.saving.register_keras_serializable(package="coarse2fine")
class CoarseToFineCrossentropy(keras.losses.SparseCategoricalCrossentropy):  # type: ignore[misc]
    """A drop-in for Keras' SparseCategoricalCrossentropy that can count classes as one.

    It takes the same predictions over the K classes and the same integer labels at every
    level. At the last level, the finest, where it starts, this is Keras' own loss; at those
    before, to which `CoarseToFineCallback` moves it during `fit`, the model is only asked
    for the label's cluster. `model.save` keeps the hierarchy, not the level, and where an
    adaptive curriculum is.

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
        self._tally: Tally | None = None  # of what is validated, while somebody wants to know
        self._kept: dict[str, Any] | None = None  # where an adaptive curriculum is

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
        losses = super().call(y_true, self._merged(y_true, y_pred))
        if self._tally is not None:
            logits = y_pred if self.from_logits else ops.log(y_pred)
            labels = ops.reshape(y_true, (-1,)).long()
            ignored = -100 if self.ignore_class is None else self.ignore_class
            self._tally.note(ops.reshape(logits, (len(labels), -1)), labels, ignored)
        return losses

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

    # Keras keeps these with a model's weights, so that all its checkpoints have them.

    def save_own_variables(self, store: Any) -> None:
        """Write where an adaptive curriculum is, if there is one."""
        if self._kept is not None:
            store["curriculum"] = np.frombuffer(json.dumps(self._kept).encode(), np.uint8)

    def load_own_variables(self, store: Any) -> None:
        """Read where an adaptive curriculum was."""
        if "curriculum" in store.keys():  # noqa: SIM118, as the store has no `in`
            self._kept = json.loads(np.asarray(store["curriculum"]).tobytes())

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

    Validation is at the finest level always, so `val_loss` means the same all along. History,
    and the callbacks after this one, find the level in the logs as ``curriculum_level``.
    Training leaves the loss at the finest level.

    With `epochs` or `boundaries` the level is a function of the epoch alone. With `patience` it
    depends on the validation accuracies at the levels, which are kept with the model's weights.
    So `fit(initial_epoch=...)` and BackupAndRestore go on where they were.

    Args:
        epochs: T, the length of the curriculum in epochs.
        boundaries: Instead of T, the epochs at which the levels 1, 2, ... begin, one for
            each level but the coarsest.
        patience: Instead of either, leave a coarse level once its validation accuracy has not
            improved for so many epochs. The coarse levels take at most half of the epochs of
            `fit`. Needs Keras' torch backend.
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
        patience: int | None = None,
        loss: CoarseToFineCrossentropy | None = None,
    ) -> None:
        super().__init__()
        check_one_length(epochs=epochs, boundaries=boundaries, patience=patience)
        self._epochs = epochs
        self._boundaries = None if boundaries is None else tuple(boundaries)
        self._patience = patience
        self._pace: Pace | None = None  # with patience, while `fit` goes on
        self._is_aside = False  # whether somebody evaluates beside the validation of `fit`
        self._given = loss
        if loss is not None:
            self._use(loss)

    @property
    def finest_epoch(self) -> int | None:
        """The epoch, from 0, at which the finest level begins; known when the loss is.

        None with `patience`, until it has begun.
        """
        if not hasattr(self, "curriculum"):
            raise ValueError("known only in fit, or with CoarseToFineCallback(..., loss=loss).")
        return self.curriculum.finest_epoch

    def set_model(self, model: Any) -> None:
        """Find the loss in the compiled model; Keras calls this."""
        super().set_model(model)
        _check_backend(model, self._patience)
        loss = _loss_of(model, self._given)
        if self._pace is not None and loss is self.loss:
            self._is_aside = True
        else:
            self._use(loss)

    def on_train_begin(self, logs: Any = None) -> None:
        """Warn where training would end before the model is asked for the classes."""
        self._pace, self._is_aside = None, False
        if self.params:
            warn_if_cut_short(self.params["epochs"], self.curriculum, "epochs")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Set the level of the epoch."""
        if self._patience is None:
            self.loss.level = self.curriculum.level_at(epoch)
            return
        if self._pace is None:  # by now the callbacks that restore weights have done so
            self._pace = self._begun(epoch)
        self._pace.begin_epoch(epoch)
        self.loss.level = self.curriculum.level
        self.loss._kept = self._pace.state_dict()

    def _begun(self, epoch: int) -> Pace:
        """Return the pace of an adaptive curriculum that begins, or goes on, at an epoch."""
        loss, total = self.loss, (self.params or {}).get("epochs")
        self._use(loss, total)
        pace = Pace(self.curriculum, epoch, _REMEDY)
        if epoch:
            if loss._kept is None or loss._kept["hierarchy"] != loss.hierarchy.to_dict():
                raise ValueError(
                    f"fit begins at epoch {epoch}, but the model has no state of a curriculum with "
                    f"patience through these levels; load it, or its weights, from a file that "
                    f"was saved in that training, or begin at epoch 0."
                )
            pace.load_state_dict(loss._kept)
        return pace

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        """Put the level into the logs."""
        if logs is not None:
            logs["curriculum_level"] = self.loss.level

    def on_test_begin(self, logs: Any = None) -> None:
        """Validate at the finest level; with patience, count what is right at that of training."""
        self._level_of_training = self.loss.level
        self.loss.level = -1
        if self._pace is not None and not self._is_aside:
            self.loss._tally = self._pace.tally("cpu")

    def on_test_end(self, logs: Any = None) -> None:
        """Go back to the level of training."""
        self.loss.level = self._level_of_training
        tally, self.loss._tally, self._is_aside = self.loss._tally, None, False
        if self._pace is not None and tally is not None:
            self._pace.accuracy = tally.accuracy()
            self.loss._kept = self._pace.state_dict()

    def on_predict_end(self, logs: Any = None) -> None:
        """Nothing that counts was evaluated."""
        self._is_aside = False

    def on_train_end(self, logs: Any = None) -> None:
        """Leave the loss at the finest level."""
        self.loss.level, self._pace = -1, None
        warn_if_coarse(self.curriculum)

    def _use(self, loss: CoarseToFineCrossentropy, total_epochs: int | None = None) -> None:
        if not isinstance(loss, CoarseToFineCrossentropy):
            raise TypeError(f"loss must be a CoarseToFineCrossentropy. Got {type(loss).__name__}.")
        self.loss = loss
        # The curriculum of a torch loss does the arithmetic and the checks.
        lengths = {"boundaries": self._boundaries, "patience": self._patience}
        self.curriculum = curriculum_from(
            loss.hierarchy,
            self._epochs,
            **lengths,
            total_epochs=total_epochs,  # type: ignore[arg-type]
        )


class CoarseToFineEarlyStopping(keras.callbacks.EarlyStopping):  # type: ignore[misc]
    """Early stopping that checks nothing before the finest level.

    At a coarse level the model is not yet asked for the classes, so what is measured on them
    may well stand still. It takes what Keras' ``EarlyStopping`` takes and, where no loss has
    levels, does what that does: a baseline may have it too.
    """

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Check after an epoch of the finest level."""
        if all(loss.level == len(loss.hierarchy.levels) - 1 for loss in _losses_of(self.model)):
            super().on_epoch_end(epoch, logs)


def _losses_of(model: Any) -> list[CoarseToFineCrossentropy]:
    """Return the losses with levels that a model is compiled with."""
    losses = {id(loss): loss for loss in keras.tree.flatten(model.loss)}
    return [loss for loss in losses.values() if isinstance(loss, CoarseToFineCrossentropy)]


def _loss_of(model: Any, given: CoarseToFineCrossentropy | None) -> CoarseToFineCrossentropy:
    found = _losses_of(model)
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


def _check_backend(model: Any, patience: int | None) -> None:
    if patience is not None and keras.config.backend() != "torch":
        raise ValueError(
            "patience needs the torch backend of Keras, as the loss takes notes in validation; "
            "give epochs=T in place of it."
        )
    if keras.config.backend() == "jax" and model.jit_compile and not model.run_eagerly:
        raise ValueError("jitted JAX steps see no change of level; compile with jit_compile=False.")
