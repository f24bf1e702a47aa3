"""The curriculum in Keras 3: a loss, a callback, and a hierarchy from a model.

model.compile("adam", CoarseToFineCrossentropy(hierarchy_from_model(baseline)))
model.fit(x, y, validation_split=0.2, epochs=30, callbacks=[CoarseToFineCallback(patience=5)])
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..curriculum import Curriculum
from ..errors import MissingExtraError, require
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

from ._keras_accuracy import ClassAccuracy
from ._keras_hierarchy import hierarchy_from_model
from ._keras_loss import CoarseToFineCrossentropy

__all__ = [
    "ClassAccuracy",
    "CoarseToFineCallback",
    "CoarseToFineCrossentropy",
    "CoarseToFineEarlyStopping",
    "hierarchy_from_model",
]

_REMEDY = "give fit validation data and validate after every epoch"


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
        self.curriculum = curriculum_from(
            loss.hierarchy,
            self._epochs,
            boundaries=self._boundaries,
            patience=self._patience,
            total_epochs=total_epochs,
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
