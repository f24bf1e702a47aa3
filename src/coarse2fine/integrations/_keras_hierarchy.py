"""A hierarchy from the final layer of a Keras model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras  # type: ignore[import-untyped]
from keras import ops

from ..hierarchy import Hierarchy


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
