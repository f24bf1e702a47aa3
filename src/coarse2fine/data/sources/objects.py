"""Python objects as data: tensors, arrays, lists and PyTorch's data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset

from ..split import LazyInputs, Source, Split
from .arrays import as_inputs, check_finite, kind_of
from .text import tokens
from .torch_datasets import DatasetInputs, dataset_targets, declared_classes, item_of

Parts = tuple[Tensor | LazyInputs, Any]


def from_python(
    train: Any, test: Any = None, val: Any = None, class_names: Sequence[str] | None = None
) -> Source:
    """Return the samples that Python objects hold.

    Each of them is a `Split`; a pair (inputs, targets) of tensors, numpy arrays or lists, a
    list of strings being text; or a PyTorch data set that gives pairs (input, target), which
    stays where it is and is read when it is needed. What the data is, is told by its shape
    and type: images (N, C, H, W) of bytes or floats, tables (N, F) of floats or bytes,
    tokens (N, L) of integers, 0 for padding; anything else is ``"other"``. Bytes from numpy
    and PIL may have their channels last, or none.

    Args:
        train: The samples to train on.
        test: Those to test on. Defaults to None.
        val: Those to validate on. Defaults to None.
        class_names: The classes in the order of their targets. Defaults to None: those that
            a data set tells, sorted labels where targets are strings, else 0, 1, ...

    Raises:
        TypeError: An object of another kind, or one that can be read in order only.
        ValueError: Samples of several shapes, NaN or infinity in one, or targets that are no
            classes.

    Examples:
        >>> from_python((["my card is lost", "hello", "lost it"], ["card", "talk", "card"])).kind
        'text'
    """
    given = {"train": train, "test": test, "val": val}
    parts = {role: _parts(data, role) for role, data in given.items() if data is not None}
    names = tuple(map(str, class_names or _class_names(train, parts["train"][1])))
    splits = {role: _split(given[role], *part, names, role) for role, part in parts.items()}
    samples = {role: _first_sample(split.inputs) for role, split in splits.items()}
    for role, sample in samples.items():
        _check_alike(sample, samples["train"], role)
    kind = kind_of(samples["train"])
    return Source(kind, splits["train"], splits.get("test"), splits.get("val"))


# -------------------------------------------------------------------------------- inputs


def _parts(data: Any, role: str) -> Parts:
    """Return the inputs and the labels, which may still be strings."""
    if not isinstance(data, Split):
        _check_readable(data, role)
    if not len(data):
        raise ValueError(f"{role} has no samples.")
    if isinstance(data, Split):
        return data.inputs, data.targets
    pair = data if isinstance(data, tuple) else _tensors(data)
    if len(pair) == 2:
        return _inputs(pair[0], role), pair[1]
    labels = dataset_targets(data, role)
    if isinstance(item_of(data, 0, role)[0], str):
        return tokens([item_of(data, row, role)[0] for row in range(len(data))]), labels
    return DatasetInputs(data, role), labels


def _tensors(data: Any) -> tuple[Tensor, ...]:
    """Return the tensors that a data set, or that of which it is a part, is made of."""
    if isinstance(data, Subset):
        return tuple(tensor[data.indices] for tensor in _tensors(data.dataset))
    return data.tensors if isinstance(data, TensorDataset) else ()


def _check_readable(data: Any, role: str) -> None:
    wanted = "a pair (inputs, targets) or a data set of pairs (input, target)"
    if isinstance(data, DataLoader):
        raise TypeError(f"{role} must be {wanted}, not a DataLoader; give its .dataset.")
    if isinstance(data, IterableDataset):
        raise TypeError(
            f"{role} must be {wanted} that can be read in any order, not an IterableDataset; "
            f"give list(dataset)."
        )
    is_other = isinstance(data, Tensor | np.ndarray | str | Mapping) or hasattr(data, "iloc")
    if is_other or not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
        raise TypeError(f"{role} must be {wanted}. Got {type(data).__name__}.")


def _inputs(values: Any, role: str) -> Tensor:
    if not isinstance(values, Tensor | list | tuple):
        values = np.asarray(values)
    if not len(values):
        raise ValueError(f"{role} has no samples.")
    if isinstance(values[0], str):
        return tokens(list(values))
    inputs = as_inputs(values, role)
    check_finite(inputs, role)
    if kind_of(inputs[0]) == "text" and int(inputs.min()) < 0:
        raise ValueError(
            f"{role}: rows of integers are tokens, and none may be negative. Give a table as "
            f"floats."
        )
    return inputs


def _first_sample(inputs: Tensor | LazyInputs) -> Tensor:
    return inputs[0] if isinstance(inputs, Tensor) else inputs.read(0, None)


def _check_alike(sample: Tensor, other: Tensor, role: str) -> None:
    kind = kind_of(sample)
    if kind != kind_of(other) or (kind != "text" and sample.shape != other.shape):
        raise ValueError(
            f"{role} has inputs of shape {tuple(sample.shape)} ({kind}), but train of shape "
            f"{tuple(other.shape)} ({kind_of(other)})."
        )


# ------------------------------------------------------------------------------- targets


def _split(
    given: Any, inputs: Tensor | LazyInputs, labels: Any, names: tuple[str, ...], role: str
) -> Split:
    if not isinstance(given, Split):
        return Split(inputs, _targets(labels, names, role), names)
    if given.class_names != names:
        raise ValueError(
            f"{role} is a Split of the classes {', '.join(given.class_names[:3])}, ..., but there "
            f"are {', '.join(names[:3])}, ...; make all of the same classes."
        )
    return given


def _class_names(train: Any, labels: Any) -> tuple[str, ...]:
    if isinstance(train, Split):
        return train.class_names
    array = _labels(labels, "train")
    names = tuple(sorted(set(array.tolist()))) if array.dtype.kind == "U" else ()
    if not names:
        count = int(array.max()) + 1
        declared = declared_classes(train)
        names = declared if len(declared) >= count else tuple(map(str, range(count)))
    if len(names) < 2:
        raise ValueError(f"train has one class alone, {names[0]!r}; there must be two or more.")
    return names


def _targets(labels: Any, names: tuple[str, ...], role: str) -> Tensor:
    array = _labels(labels, role)
    if array.dtype.kind != "U":
        return torch.from_numpy(array.astype(np.int64))
    places = {name: place for place, name in enumerate(names)}
    for row, label in enumerate(array.tolist()):
        if label not in places:
            raise ValueError(
                f"{role}: the label {label!r} of sample {row} is none of the {len(names)} classes."
            )
    return torch.tensor([places[label] for label in array.tolist()])


def _labels(labels: Any, role: str) -> np.ndarray[Any, Any]:
    """Return labels as an array of integers or strings, one a sample."""
    array = labels.detach().cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{role}: there must be one class a sample, of shape (N), as target. Got the shape "
            f"{array.shape}; of one-hot vectors or probabilities take argmax(1)."
        )
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array):
        array = array.astype(np.str_)
    if array.dtype.kind not in "biuU":
        raise TypeError(f"{role}: targets must be integers or strings. Got {array.dtype}.")
    return array
