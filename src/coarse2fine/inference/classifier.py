"""A trained model with all that is needed to use it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import starmap
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._util.text import brief
from ..hierarchy import Hierarchy
from .chunks import FAULTS, Chunk, OnFault
from .objects import chunks_of
from .preprocessing import Preprocessing

TOP = 3  # how many classes a prediction names
_MOST_SAMPLES, _MOST_NUMBERS = 256, 1 << 25  # of a batch
_NAMED = 3  # classes by which a cluster without a name is called
_AHEAD = 2  # batches that are prepared while the model computes


class Guess(NamedTuple):
    """A class, and how probable the model takes it to be.

    Args:
        class_name: The class.
        probability: From 0 to 1.
    """

    class_name: str
    probability: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of one sample.

    Args:
        input: What the sample is called: the path of a file, the sentence itself, the place
            of a row such as ``"new.csv, row 3"``, or the number of an array or image.
        class_name: The most probable class.
        probability: From 0 to 1.
        guesses: The next most probable classes, in order.
        clusters: The names of the class's clusters, coarsest level first; empty without a
            hierarchy.
    """

    input: str
    class_name: str
    probability: float
    guesses: tuple[Guess, ...]
    clusters: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as plain values."""
        return {
            "input": self.input,
            "class": self.class_name,
            "probability": self.probability,
            "guesses": [{"class": name, "probability": share} for name, share in self.guesses],
            "clusters": list(self.clusters),
        }


class Classifier:
    """A trained model, its preprocessing, the names of its classes and their hierarchy.

    `load_classifier` makes one of a run. Inputs may be one sample or several, as follows.

    - Images: paths of image files and folders, images of Pillow's, arrays and tensors (H, W, C)
      or (C, H, W), of bytes or of floats from 0 to 1, one or a batch. Files, Pillow's and bytes
      are brought to the size of the training.
    - Text: strings; tables with a column of text.
    - Tables: pandas and polars frames, Arrow tables, dicts of columns, lists of dicts, whose
      columns are found by their names; arrays (N, F).
    - Paths of csv, json-lines, parquet and .npy files; for text as a `pathlib.Path`.
    - Lists and other iterables of samples, which are read as they are needed.

    Args:
        model: Gives logits, one a class.
        preprocessing: How its inputs are made.
        class_names: Of its outputs.
        hierarchy: Of the classes. Defaults to None.
        description: Says which model it is, in one line. Defaults to nothing.

    Attributes:
        clusters: For each class the names of its clusters, coarsest level first.
    """

    def __init__(
        self,
        model: nn.Module,
        preprocessing: Preprocessing,
        class_names: Sequence[str],
        hierarchy: Hierarchy | None = None,
        description: str = "",
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device).eval()
        self.preprocessing = preprocessing
        self.class_names = tuple(class_names)
        self.hierarchy = hierarchy
        self.description = description
        self.clusters = _clusters_of_classes(hierarchy, self.class_names)

    def __repr__(self) -> str:
        return f"Classifier of {len(self.class_names)} classes of {self.preprocessing.wanted}"

    def predict(self, inputs: Any, batch_size: int | None = None) -> list[str]:
        """Return the name of the most probable class of each sample.

        Args:
            inputs: See `Classifier`.
            batch_size: How many samples the model is given at once. Defaults to None: up to
                256, fewer of large ones.
        """
        found = (logits.argmax(1).tolist() for _, logits in self._outputs(inputs, batch_size))
        return [self.class_names[index] for indices in found for index in indices]

    def predict_proba(self, inputs: Any, batch_size: int | None = None) -> NDArray[np.float32]:
        """Return the probability of each class for each sample, of shape (N, K).

        Args:
            inputs: See `Classifier`.
            batch_size: As for `predict`.
        """
        found = [logits.softmax(1).cpu() for _, logits in self._outputs(inputs, batch_size)]
        empty = torch.zeros(0, len(self.class_names))
        probabilities: NDArray[np.float32] = torch.cat([empty, *found]).numpy()
        return probabilities

    def stream(
        self,
        inputs: Any,
        *,
        top: int = TOP,
        batch_size: int | None = None,
        on_fault: OnFault | None = None,
    ) -> Iterator[Prediction]:
        """Yield what the model says of each sample, in order, as it is computed.

        However many samples there are, only a few batches of them are in memory at a time.

        Args:
            inputs: See `Classifier`.
            top: How many classes a prediction names, the most probable among them. Defaults
                to 3.
            batch_size: As for `predict`.
            on_fault: Called with the name of each sample that cannot be used and with what is
                wrong with it; the sample is left out. Defaults to None: the first such sample
                is an error.

        Raises:
            ValueError: A sample cannot be used; the message names it.
            TypeError: Inputs of another kind than those of the training.
        """
        for batch in self.batches(inputs, top=top, batch_size=batch_size, on_fault=on_fault):
            yield from batch

    def batches(
        self,
        inputs: Any,
        *,
        top: int = TOP,
        batch_size: int | None = None,
        on_fault: OnFault | None = None,
    ) -> Iterator[list[Prediction]]:
        """Yield what `stream` does, a batch at a time."""
        if top < 1:
            raise ValueError(f"top must be at least 1. Got {top}.")
        for names, logits in self._outputs(inputs, batch_size, on_fault):
            yield self._predictions(names, logits, min(top, len(self.class_names)))

    def _predictions(self, names: Sequence[str], logits: Tensor, top: int) -> list[Prediction]:
        shares, classes = logits.softmax(1).topk(top)
        # A list a rank and not one a sample, as making those would take as long as all the rest.
        found, probable = classes.T.tolist(), shares.T.tolist()
        named = [[self.class_names[index] for index in rank] for rank in found]
        others = [map(Guess, *rank) for rank in zip(named[1:], probable[1:], strict=True)]
        guesses = zip(*others, strict=True) if others else [()] * len(names)
        clusters = [self.clusters[index] for index in found[0]]
        rows = zip(names, named[0], probable[0], guesses, clusters, strict=True)
        return list(starmap(Prediction, rows))

    # ------------------------------------------------------------------------------ batches

    def _outputs(
        self, inputs: Any, batch_size: int | None, on_fault: OnFault | None = None
    ) -> Iterator[tuple[Sequence[str], Tensor]]:
        """Yield the names and the logits of each batch."""
        size = self._batch_size() if batch_size is None else batch_size
        if size < 1:
            raise ValueError(f"batch_size must be at least 1. Got {size}.")
        chunks = chunks_of(inputs, self.preprocessing, size, on_fault)
        for names, tensor in _ahead(chunks, self.preprocessing, on_fault):
            if tensor is not None:
                yield names, self._logits(names, tensor)

    def _batch_size(self) -> int:
        return max(1, min(_MOST_SAMPLES, _MOST_NUMBERS // prod(self.preprocessing.input_shape)))

    @torch.inference_mode()
    def _logits(self, names: Sequence[str], tensor: Tensor) -> Tensor:
        inputs = tensor.to(self.device)
        if inputs.dim() == 4 and self.device.type == "cpu":  # as in training
            inputs = inputs.contiguous(memory_format=torch.channels_last)
        logits: Tensor = self.model(self.preprocessing.transform.normalise(inputs)).float()
        if not bool(torch.isfinite(logits.sum())):
            finite = torch.isfinite(logits).all(1)
            for row in torch.nonzero(~finite).flatten().tolist():
                raise ValueError(f"{brief(names[row])}: the model gives a NaN or an infinity.")
        return logits


Prepared = tuple[Sequence[str], Tensor | None]


def _prepared(chunk: Chunk, preprocessing: Preprocessing, on_fault: OnFault | None) -> Prepared:
    """Return the samples that can be used as a tensor; None where there are none."""
    try:
        return chunk.names, preprocessing.tensor(chunk)
    except FAULTS:
        if on_fault is None:
            _raise_first(chunk, preprocessing)
            raise
    usable = [(single, _usable(single, preprocessing, on_fault)) for single in chunk.singles()]
    names = [single.names[0] for single, tensor in usable if tensor is not None]
    tensors = [tensor for _, tensor in usable if tensor is not None]
    return names, _padded(tensors) if tensors else None


def _raise_first(chunk: Chunk, preprocessing: Preprocessing) -> None:
    """Raise what is wrong with the first sample; of a table, a later one may be noticed first."""
    for single in chunk.singles():
        preprocessing.tensor(single)


def _usable(single: Chunk, preprocessing: Preprocessing, on_fault: OnFault) -> Tensor | None:
    try:
        return preprocessing.tensor(single)
    except FAULTS as error:
        on_fault(single.names[0], error)
        return None


def _padded(tensors: Sequence[Tensor]) -> Tensor:
    """Return samples as one tensor; sentences of different lengths are padded by 0."""
    if tensors[0].dim() != 2 or tensors[0].is_floating_point():
        return torch.cat(list(tensors))
    return nn.utils.rnn.pad_sequence([tensor[0] for tensor in tensors], batch_first=True)


def _ahead(
    chunks: Iterator[Chunk], preprocessing: Preprocessing, on_fault: OnFault | None
) -> Iterator[Prepared]:
    """Yield prepared chunks in order, the next ones being prepared by a thread meanwhile."""
    waiting: deque[Callable[[], Prepared]] = deque()
    pool = ThreadPoolExecutor(1)
    try:
        for chunk in chunks:
            prepare = partial(_prepared, chunk, preprocessing, on_fault)
            # With nothing to decode, a thread would slow those of the model by more than it saves.
            is_ready = preprocessing.is_ready(chunk)
            waiting.append(prepare if is_ready else pool.submit(prepare).result)
            if len(waiting) > _AHEAD:
                yield waiting.popleft()()
        while waiting:
            yield waiting.popleft()()
    finally:
        pool.shutdown(cancel_futures=True)


# ------------------------------------------------------------------------------- clusters


def _clusters_of_classes(
    hierarchy: Hierarchy | None, class_names: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return for each class the names of its clusters, coarsest first."""
    if hierarchy is None:
        return [()] * len(class_names)
    depth = len(hierarchy.levels) - 1
    names = [cluster_names(hierarchy, level, class_names) for level in range(depth)]
    levels = [level.tolist() for level in hierarchy.levels[:-1]]
    return [
        tuple(names[level][levels[level][index]] for level in range(depth))
        for index in range(len(class_names))
    ]


def cluster_names(
    hierarchy: Hierarchy, level: int, class_names: Sequence[str] | None = None
) -> list[str]:
    """Return a name for each cluster of a level: its own, or its first classes.

    Args:
        hierarchy: The hierarchy.
        level: One of its levels.
        class_names: Of the classes. Defaults to None: the hierarchy's.

    Examples:
        >>> animals = Hierarchy.from_levels([[0, 0, 0, 0, 1]], ["cat", "dog", "fox", "cow", "car"])
        >>> cluster_names(animals, 0)
        ['cat, dog, fox, …', 'car']
    """
    classes = class_names or hierarchy.class_names or range(hierarchy.num_classes)
    given = None if hierarchy.cluster_names is None else hierarchy.cluster_names[level]
    named = []
    for cluster, members in enumerate(hierarchy.clusters(level)):
        first = [str(classes[index]) for index in members[:_NAMED]]
        listed = ", ".join([*first, "…"] if len(members) > _NAMED else first)
        named.append((given[cluster] if given else "") or listed)
    return named
