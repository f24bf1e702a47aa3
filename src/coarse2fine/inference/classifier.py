"""A trained model with all that is needed to use it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import starmap
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._util.text import brief
from ..hierarchy import Hierarchy
from ..prediction import LevelPredictor
from .ahead import prepared_ahead
from .chunks import OnFault
from .clusters import clusters_of_classes, node_names
from .objects import chunks_of
from .preprocessing import Preprocessing

TOP = 3  # how many classes a prediction names
_MOST_SAMPLES, _MOST_NUMBERS = 256, 1 << 25  # of a batch


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
        answer: The finest class or cluster that the model is sure of, see `LevelPredictor`.
            Defaults to None: the classifier is not calibrated.
    """

    input: str
    class_name: str
    probability: float
    guesses: tuple[Guess, ...]
    clusters: tuple[str, ...]
    answer: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the prediction as plain values."""
        return {
            "input": self.input,
            "class": self.class_name,
            "probability": self.probability,
            "guesses": [{"class": name, "probability": share} for name, share in self.guesses],
            "clusters": list(self.clusters),
            **({} if self.answer is None else {"answer": self.answer}),
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
        level_predictor: Answers with classes or clusters. Defaults to None: `calibrate` makes
            one.

    Attributes:
        clusters: For each class the names of its clusters, coarsest level first.
        node_names: For each node of the hierarchy its name; empty without a hierarchy.
    """

    def __init__(
        self,
        model: nn.Module,
        preprocessing: Preprocessing,
        class_names: Sequence[str],
        hierarchy: Hierarchy | None = None,
        description: str = "",
        level_predictor: LevelPredictor | None = None,
    ) -> None:
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device).eval()
        self.preprocessing = preprocessing
        self.class_names = tuple(class_names)
        self.hierarchy = hierarchy
        self.description = description
        self.level_predictor = level_predictor
        self.node_names = [] if hierarchy is None else node_names(hierarchy)
        self.clusters = clusters_of_classes(hierarchy, self.class_names)

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

    def calibrate(
        self, inputs: Any, labels: Sequence[Any], accuracy: float = 0.95, confidence: float = 0.9
    ) -> LevelPredictor:
        """Find how sure the model must be for the promised share of answers to be right.

        From then on `answer` gives answers, and `stream` too.

        Args:
            inputs: Samples that were used neither to train the model nor to choose it.
            labels: The names of their classes.
            accuracy: The share of answers to be right. Defaults to 0.95.
            confidence: The probability with which that is kept. Defaults to 0.9.
        """
        if self.hierarchy is None:
            raise ValueError("answers at any level need a hierarchy, and the model has none.")
        targets = self._targets(labels, self.hierarchy)
        found = [logits.cpu() for _, logits in self._outputs(inputs, None)]
        logits = torch.cat([torch.zeros(0, len(self.class_names)), *found])
        if len(logits) != len(targets):
            raise ValueError(f"there are {len(logits)} inputs but {len(targets)} labels.")
        predictor = LevelPredictor(self.hierarchy, accuracy, confidence).fit(logits, targets)
        self.level_predictor = predictor
        return predictor

    def answer(self, inputs: Any, batch_size: int | None = None) -> list[str]:
        """Return for each sample the finest class or cluster that the model is sure of.

        Args:
            inputs: See `Classifier`.
            batch_size: As for `predict`.
        """
        if self.level_predictor is None:
            raise ValueError("the model is not calibrated yet; call calibrate first.")
        found = (self._answers(logits) for _, logits in self._outputs(inputs, batch_size))
        return [str(name) for names in found for name in names]

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
        answers = self._answers(logits)
        rows = zip(names, named[0], probable[0], guesses, clusters, answers, strict=True)
        return list(starmap(Prediction, rows))

    def _answers(self, logits: Tensor) -> list[str] | list[None]:
        if self.level_predictor is None:
            return [None] * len(logits)
        return [self.node_names[node] for node in self.level_predictor.predict(logits).tolist()]

    def _targets(self, labels: Sequence[Any], hierarchy: Hierarchy) -> list[int]:
        places = {name: place for place, name in enumerate(self.class_names)}
        for at, label in enumerate(labels):
            if str(label) not in places:
                raise ValueError(
                    f"labels[{at}] is {brief(label)!r}, which is not one of the model's "
                    f"{len(places)} classes.{hierarchy.nodes.no_class(str(label))}"
                )
        return [places[str(label)] for label in labels]

    # ------------------------------------------------------------------------------ batches

    def _outputs(
        self, inputs: Any, batch_size: int | None, on_fault: OnFault | None = None
    ) -> Iterator[tuple[Sequence[str], Tensor]]:
        """Yield the names and the logits of each batch."""
        size = self._batch_size() if batch_size is None else batch_size
        if size < 1:
            raise ValueError(f"batch_size must be at least 1. Got {size}.")
        chunks = chunks_of(inputs, self.preprocessing, size, on_fault)
        for names, tensor in prepared_ahead(chunks, self.preprocessing, on_fault):
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
