"""From what a person has to what the model takes, as in training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._util.text import brief
from ..data import Kind, Transform, tokens
from ..data.sources.arrays import as_inputs
from .chunks import Chunk
from .images import image_tensor

_NAMED = {
    "image": "images",
    "text": "sentences",
    "table": "rows of a table",
    "other": "arrays",
}


@dataclass(frozen=True)
class Preprocessing:
    """What a model was trained on, and how its inputs are made.

    Args:
        kind: What the inputs are, see `Source`.
        input_shape: Of one sample.
        transform: What a batch goes through last. Defaults to nothing.
        columns: Of a table, in order. Defaults to none: the table was an array.
        text: The column of the text in tables. Defaults to None: found by its name.
        target: The column of the classes, which is left out. Defaults to None: found by its
            name.
        share: Of an image, the part of the largest centred crop's sides that is kept.
            Defaults to 1.0.
    """

    kind: Kind
    input_shape: tuple[int, ...]
    transform: Transform = field(default_factory=Transform)
    columns: tuple[str, ...] = ()
    text: str | None = None
    target: str | None = None
    share: float = 1.0

    @property
    def wanted(self) -> str:
        """What the model takes, in words."""
        shape = "×".join(map(str, self.input_shape))
        if self.kind == "text":
            return _NAMED[self.kind]
        if self.kind == "table":
            return f"{_NAMED[self.kind]}, {shape} numbers each"
        return f"{_NAMED[self.kind]} of {shape}"

    def is_ready(self, chunk: Chunk) -> bool:
        """Return whether samples are numbers already, as many as the model takes of each."""
        if not isinstance(chunk.values, np.ndarray | Tensor):
            return False
        return prod(chunk.values.shape[1:]) == prod(self.input_shape)

    def tensor(self, chunk: Chunk) -> Tensor:
        """Return samples as a tensor, before its transform.

        Raises:
            ValueError: A sample cannot be used; the message names it.
            TypeError: A sample is of another kind than those of the training.
        """
        if self.kind == "image":
            inputs = image_tensor(chunk.values, chunk.names, self.input_shape, self.share)
        elif self.kind == "text":
            inputs = _text_tensor(chunk)
        else:
            inputs = self._numbers(chunk)
        _check_finite(inputs, chunk.names)
        return inputs

    def _numbers(self, chunk: Chunk) -> Tensor:
        from ..data.sources.table_reader import Table

        if isinstance(chunk.values, Table):
            from .tables import table_features

            return table_features(chunk.values, self)
        inputs = as_inputs(chunk.values, chunk.names[0])
        if tuple(inputs.shape[1:]) != self.input_shape:
            found = "×".join(map(str, inputs.shape[1:])) or "a single number"
            raise ValueError(f"{chunk.names[0]} is of {found}, but the model takes {self.wanted}.")
        return inputs if self.kind == "other" else inputs.float()


def _text_tensor(chunk: Chunk) -> Tensor:
    if isinstance(chunk.values, np.ndarray | Tensor):
        inputs = as_inputs(chunk.values, chunk.names[0])
        if inputs.dim() != 2 or inputs.is_floating_point() or int(inputs.min()) < 0:
            raise ValueError(
                f"{chunk.names[0]}: the model takes sentences, or rows of integers from 0 on as "
                f"coarse2fine.data.tokens makes them."
            )
        return inputs
    for sentence, name in zip(chunk.values, chunk.names, strict=True):
        if sentence is None:
            raise ValueError(f"{brief(name)}: the text is missing; fill it in or remove the row.")
        if not isinstance(sentence, str):
            kind = type(sentence).__name__
            raise TypeError(f"{brief(name)}: the model takes sentences. Got {kind}.")
    return tokens(chunk.values)


def _check_finite(inputs: Tensor, names: Sequence[str]) -> None:
    if not inputs.is_floating_point():
        return
    sums = inputs.flatten(start_dim=1).sum(dim=1, dtype=torch.float64)
    for row in torch.nonzero(~torch.isfinite(sums)).flatten().tolist():
        raise ValueError(f"{names[row]} holds NaN or infinity; correct it or leave it out.")


def wrong_kind(given: Any, preprocessing: Preprocessing) -> TypeError:
    """Return what to say of inputs of another kind than those of the training."""
    what = given if isinstance(given, str) else f"a {type(given).__name__}"
    return TypeError(f"the model takes {preprocessing.wanted}. Got {brief(what)}.")
