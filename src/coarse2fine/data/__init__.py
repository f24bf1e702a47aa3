"""Data sets and sources, each of which yields the same small `Split` objects."""

from __future__ import annotations

from .batches import Batch, Batches, Transform, channel_statistics
from .load import load_data
from .sampling import Data, input_shape, sample
from .sources.text import tokens
from .split import Groups, Kind, LazyInputs, Source, Split

__all__ = [
    "Batch",
    "Batches",
    "Data",
    "Groups",
    "Kind",
    "LazyInputs",
    "Source",
    "Split",
    "Transform",
    "channel_statistics",
    "input_shape",
    "load_data",
    "sample",
    "tokens",
]
