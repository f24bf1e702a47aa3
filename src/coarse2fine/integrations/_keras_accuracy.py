"""Accuracy in Keras 3 where some labels are no classes."""

from __future__ import annotations

from typing import Any

import keras  # type: ignore[import-untyped]
from keras import ops


@keras.saving.register_keras_serializable(package="coarse2fine")
class ClassAccuracy(keras.metrics.SparseCategoricalAccuracy):  # type: ignore[misc]
    """Keras' SparseCategoricalAccuracy of the samples that are labelled with their class.

    Those labelled with a cluster, or with several candidates, do not count; where none counts
    it is 0.

    Args:
        name: Defaults to ``"class_accuracy"``.
        dtype: Defaults to None: Keras' ``floatx``.

    Examples:
        >>> metric, logits = ClassAccuracy(), [[2.0, 1.0, 0.0]] * 3
        >>> metric.update_state([0, 1, 4], logits)  # 4 is a cluster
        >>> float(metric.result())
        0.5
    """

    def __init__(self, name: str = "class_accuracy", dtype: Any = None) -> None:
        super().__init__(name=name, dtype=dtype)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Count a batch.

        Args:
            y_true: Classes or nodes, or a row of candidates for each prediction.
            y_pred: Probabilities or logits of the K classes.
            sample_weight: Defaults to None: all are 1.
        """
        y_true, y_pred = ops.convert_to_tensor(y_true), ops.convert_to_tensor(y_pred)
        is_mask = len(y_true.shape) == len(y_pred.shape) and y_true.shape[-1] > 1
        label, is_class = _of_mask(y_true) if is_mask else _of_nodes(y_true, y_pred)
        weight = ops.cast(is_class, self.dtype)
        if sample_weight is not None:
            given = ops.convert_to_tensor(sample_weight, dtype=self.dtype)
            rank = len(weight.shape)
            missing = [1] * (rank - len(given.shape))
            weight = weight * ops.reshape(given, (-1, *given.shape[1:rank], *missing))
        super().update_state(label, y_pred, weight)


def _of_nodes(y_true: Any, y_pred: Any) -> tuple[Any, Any]:
    """Return the labels without a last dimension of 1, and which of them are classes."""
    label = ops.reshape(y_true, ops.shape(y_pred)[:-1])
    return label, ops.logical_and(label >= 0, label < y_pred.shape[-1])


def _of_mask(y_true: Any) -> tuple[Any, Any]:
    """Return a candidate of each row, and which rows have no other."""
    mask = ops.cast(y_true, "int32")
    return ops.argmax(mask, axis=-1), ops.equal(ops.sum(mask, axis=-1), 1)
