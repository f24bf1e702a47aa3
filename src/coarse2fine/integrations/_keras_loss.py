"""The marginalised loss in Keras 3."""

from __future__ import annotations

import json
from typing import Any

import keras  # type: ignore[import-untyped]
import numpy as np
import torch
from keras import ops

from .._hierarchy.levels import to_class_indices
from .._tally import Tally
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss

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
