"""Which classes a label leaves open at a level, in Keras 3."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from keras import ops  # type: ignore[import-untyped]

from .._candidates import check_mask, node_slices, spans_at
from .._hierarchy.levels import to_class_indices
from ..hierarchy import Hierarchy


class Candidates:
    """Finds the classes that count as right for classes, nodes and masks.

    The nodes are slices of the classes in a certain order, see `coarse2fine._candidates.Spans`.

    Args:
        hierarchy: The levels.
        ignore_class: A label that does not count, or None.
    """

    def __init__(self, hierarchy: Hierarchy, ignore_class: int | None) -> None:
        nodes = hierarchy.nodes
        places, own = node_slices(nodes)
        spans = [spans_at(places, own, torch.tensor(level)).level for level in hierarchy.levels]
        # A class of each node, which Keras' loss must not take for the ignored one.
        first, last = nodes.order[nodes.starts], nodes.order[nodes.stops - 1]
        self.classes, self.nodes, self.ignore_class = nodes.num_classes, len(nodes), ignore_class
        self._clusters = _constant(np.stack(hierarchy.levels))
        self._places = _constant(places.numpy())
        self._edges = _constant(torch.stack(spans).numpy())
        self._members = _constant(np.where(first == ignore_class, last, first))

    def __call__(self, y_true: Any, y_pred: Any, level: Any) -> tuple[Any, Any]:
        """Return one of the classes that each label leaves open, (..., 1), and all, (..., K).

        Args:
            y_true: Classes or nodes, with or without a last dimension of 1; or a row of
                candidates for each prediction.
            y_pred: The predictions.
            level: A class stands for its whole cluster at this level.
        """
        if self.is_mask(y_true, y_pred):
            return self._of_mask(y_true, level)
        label = ops.cast(y_true, "int32")
        if len(y_true.shape) < len(y_pred.shape):
            label = ops.expand_dims(label, axis=-1)
        return self._of_nodes(label, level)

    def is_mask(self, y_true: Any, y_pred: Any) -> bool:
        """Return whether labels are rows of candidates, refusing shapes that mean nothing."""
        if y_pred.shape[-1] != self.classes:
            raise ValueError(
                f"the hierarchy has {self.classes} classes, so the model must give "
                f"{self.classes} values for each sample. Got predictions of shape "
                f"{tuple(y_pred.shape)}."
            )
        if len(y_true.shape) < len(y_pred.shape) or y_true.shape[-1] == 1:
            return False
        if y_true.shape[-1] != self.classes:
            raise ValueError(
                f"the hierarchy has {self.classes} classes, so a row of candidates needs "
                f"{self.classes} entries. Got labels of shape {tuple(y_true.shape)}."
            )
        return True

    def _of_nodes(self, label: Any, level: Any) -> tuple[Any, Any]:
        ignored = None if self.ignore_class is None else ops.equal(label, self.ignore_class)
        node = label if ignored is None else ops.where(ignored, 0, label)
        if _is_watched(node):
            to_class_indices(node, self.nodes, "labels, classes or nodes of the hierarchy,")
        edges = ops.take(ops.take(self._edges, level, axis=0), ops.squeeze(node, -1), axis=0)
        starts, stops = edges[..., :1], edges[..., 1:]
        inside = ops.logical_and(self._places >= starts, self._places < stops)
        member = ops.take(self._members, node)
        return (member if ignored is None else ops.where(ignored, label, member)), inside

    def _of_mask(self, y_true: Any, level: Any) -> tuple[Any, Any]:
        if self.ignore_class is not None and 0 <= self.ignore_class < self.classes:
            raise ValueError(
                f"ignore_class={self.ignore_class} means nothing for rows of candidates; leave it "
                f"out, and give a row of all classes, whose loss is 0, instead."
            )
        mask = ops.cast(y_true, "bool")
        if _is_watched(mask):
            _check_is_mask(y_true)
            check_mask(ops.reshape(mask, (-1, self.classes)))
        owner = ops.take(self._clusters, level, axis=0)
        by_class = ops.transpose(ops.reshape(ops.cast(mask, "int32"), (-1, self.classes)))
        counts = ops.segment_sum(by_class, owner, num_segments=self.classes)
        inside = ops.transpose(ops.take(counts, owner, axis=0)) > 0
        member = ops.argmax(ops.cast(mask, "int32"), axis=-1, keepdims=True)
        return member, ops.reshape(inside, ops.shape(mask))


def _constant(array: Any) -> Any:
    return ops.convert_to_tensor(array, dtype="int32")


def _is_watched(tensor: Any) -> bool:
    """Return whether a look at the values costs little: not on a GPU, nor in compiled code."""
    on_cpu = isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"
    return on_cpu and not torch.compiler.is_compiling()


def _check_is_mask(y_true: Any) -> None:
    wrong = y_true[(y_true != 0) & (y_true != 1)]
    if len(wrong):
        raise ValueError(
            f"a row of candidates holds only 0 and 1, or booleans; class probabilities are not "
            f"taken. Got {float(wrong[0]):g}."
        )
