"""The marginalised loss in Keras 3."""

from __future__ import annotations

import json
from typing import Any

import keras  # type: ignore[import-untyped]
import numpy as np
from keras import ops

from .._tally import Tally
from ..hierarchy import Hierarchy
from ..loss import CoarseToFineLoss
from ._keras_candidates import Candidates

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

    Labels known up to a cluster may be nodes of ``hierarchy.nodes``, mixed with classes, and
    labels of several candidates rows of booleans, as many as classes. A sample counts at the
    coarser of its own node and the level in force.

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
        self._candidates = Candidates(hierarchy, ignore_class)
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
        member, inside = self._candidates(y_true, y_pred, self._level)
        losses = super().call(member, self._merged(member, inside, y_pred))
        if self._tally is not None:
            self._count(self._tally, y_true, y_pred)
        return losses

    def _merged(self, member: Any, inside: Any, y_pred: Any) -> Any:
        """Return the predictions with all of what is right moved to one class of it."""
        if self.from_logits:
            right = ops.where(inside, y_pred, float("-inf"))
            total = ops.logsumexp(right, axis=-1, keepdims=True)
            rest = total - NEGLIGIBLE
        else:
            total = ops.sum(ops.where(inside, y_pred, 0.0), axis=-1, keepdims=True)
            rest = 0.0
        is_member = ops.equal(member, ops.arange(y_pred.shape[-1], dtype="int32"))
        return ops.where(is_member, total, ops.where(inside, rest, y_pred))

    def _count(self, tally: Tally, y_true: Any, y_pred: Any) -> None:
        logits = y_pred if self.from_logits else ops.log(y_pred)
        logits = ops.reshape(logits, (-1, y_pred.shape[-1]))
        if self._candidates.is_mask(y_true, y_pred):
            tally.note(logits, ops.reshape(y_true, (-1, y_pred.shape[-1])).bool())
        else:
            ignored = -100 if self.ignore_class is None else self.ignore_class
            tally.note(logits, ops.reshape(y_true, (-1,)).long(), ignored)

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
