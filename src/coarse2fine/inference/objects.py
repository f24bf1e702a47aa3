"""The samples in Python objects, a few at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from numbers import Number
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from .chunks import Chunk, OnFault, grouped, sliced
from .files import file_chunks
from .images import as_image_batch, is_pil
from .preprocessing import Preprocessing, wrong_kind


def chunks_of(
    inputs: Any, preprocessing: Preprocessing, size: int, on_fault: OnFault | None = None
) -> Iterator[Chunk]:
    """Yield the samples that Python objects hold.

    Args:
        inputs: One sample or several: paths, images of Pillow's, arrays or tensors, sentences,
            frames, Arrow tables or dicts of columns, or an iterable of such samples.
        preprocessing: Of the model.
        size: How many a chunk has at most.
        on_fault: See `file_chunks`.

    Raises:
        TypeError: Inputs of another kind than those of the training.
    """
    is_text = preprocessing.kind == "text"
    if isinstance(inputs, os.PathLike) or (isinstance(inputs, str) and not is_text):
        return file_chunks([Path(inputs)], preprocessing, size, on_fault)
    if isinstance(inputs, str):
        return grouped([(inputs, inputs)], size)
    if is_pil(inputs):
        return grouped([("the image", inputs)], size)
    if is_frame(inputs):
        from .tables import frame_part, table_chunks  # which need pyarrow

        return table_chunks(frame_part(inputs).parts(size), preprocessing)
    if isinstance(inputs, Tensor | np.ndarray) and inputs.ndim and not _is_of_objects(inputs):
        return sliced(_as_batch(inputs, preprocessing), size)
    if isinstance(inputs, bytes | bytearray) or not hasattr(inputs, "__iter__"):
        raise wrong_kind(inputs, preprocessing)
    return _item_chunks(inputs, preprocessing, size, on_fault)


def is_frame(value: Any) -> bool:
    """Return whether something is a table: a frame, an Arrow table or a dict of columns."""
    has_columns = hasattr(value, "columns") or hasattr(value, "column_names")
    return isinstance(value, Mapping) or (has_columns and hasattr(value, "shape"))


def _is_of_objects(array: Tensor | np.ndarray[Any, Any]) -> bool:
    """Whether it holds strings or paths rather than numbers."""
    return isinstance(array, np.ndarray) and array.dtype.kind in "OUT"


def _as_batch(values: Any, preprocessing: Preprocessing) -> Any:
    """Return an array with one row a sample, where it may be a sample by itself."""
    if preprocessing.kind == "image":
        return as_image_batch(values, preprocessing.input_shape)
    one = 1 if preprocessing.kind == "text" else len(preprocessing.input_shape)
    return values[None] if values.ndim == one else values


# --------------------------------------------------------------------------------- items


def _item_chunks(
    inputs: Iterable[Any], preprocessing: Preprocessing, size: int, on_fault: OnFault | None
) -> Iterator[Chunk]:
    """Yield what an iterable of samples holds; the first tells what they are."""
    left = iter(inputs)
    for first in left:
        items = chain([first], left)
        if isinstance(first, Number | np.generic) and not isinstance(first, str):
            return sliced(_as_batch(np.asarray(list(items)), preprocessing), size)
        if isinstance(first, Mapping):
            return _row_chunks(items, preprocessing, size)
        if isinstance(first, list | tuple):
            return grouped(((f"sample {n}", np.asarray(x)) for n, x in enumerate(items)), size)
        if isinstance(first, os.PathLike) or (
            isinstance(first, str) and preprocessing.kind != "text"
        ):
            return file_chunks(map(_path, items), preprocessing, size, on_fault)
        return grouped(_named(items, preprocessing), size)
    return iter(())


def _row_chunks(
    rows: Iterable[Mapping[str, Any]], preprocessing: Preprocessing, size: int
) -> Iterator[Chunk]:
    from .tables import row_parts, table_chunks

    return table_chunks(row_parts(rows, size), preprocessing, is_regular=False)


def _path(item: Any) -> Path:
    if not isinstance(item, str | os.PathLike):
        raise TypeError(f"all inputs must be paths, as the first is. Got {type(item).__name__}.")
    return Path(item)


def _named(items: Iterable[Any], preprocessing: Preprocessing) -> Iterator[tuple[str, Any]]:
    for number, item in enumerate(items):
        if preprocessing.kind == "image" and isinstance(item, str | os.PathLike):
            yield str(item), Path(item)
        else:
            kind = "image" if is_pil(item) else "sample"
            yield (item if isinstance(item, str) else f"{kind} {number}"), item
