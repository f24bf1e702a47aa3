"""Python objects as data: tensors, arrays, lists and PyTorch's data sets."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from reprlib import repr as short
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset

from ..._util.arrays import IntArray, to_numpy
from ..._util.text import did_you_mean
from ..split import LazyInputs, Source, Split
from .arrays import as_inputs, as_sample, check_samples_finite, check_shape, kind_of
from .labels import are_indices, numbered_classes, places_of
from .text import tokens
from .trees import GivenTree

# The inputs, the labels, which may still be strings, and the sentences that tokens were made from.
Parts = tuple[Tensor | LazyInputs, Any, tuple[str, ...] | None]


class _Classes(NamedTuple):
    """The names of the classes, and the integers that stand for them; None for 0, 1, 2, ...

    Or of nodes, which `kind` says then.
    """

    names: tuple[str, ...]
    numbers: IntArray | None = None
    kind: str = "classes"


def from_python(
    train: Any,
    test: Any = None,
    val: Any = None,
    class_names: Sequence[str] | None = None,
    tree: GivenTree | None = None,
) -> Source:
    """Return the samples that Python objects hold.

    Each of them is a `Split`; a pair (inputs, targets) of tensors, numpy arrays or lists, a
    list of strings being text; or a PyTorch data set that gives pairs (input, target), which
    stays where it is and is read when it is needed. What the data is, is told by its shape
    and type: images (N, C, H, W) of bytes or floats, tables (N, F) of floats or bytes,
    tokens (N, L) of integers, 0 for padding; anything else is ``"other"``. Images from numpy
    and PIL may have their channels last, and those of bytes none.

    Args:
        train: The samples to train on.
        test: Those to test on. Defaults to None.
        val: Those to validate on. Defaults to None.
        class_names: The classes in the order of their targets. Defaults to None: those that
            a data set tells, else the labels in their order: the integers 0, 5 and 10 are
            three classes.
        tree: Whose clusters labels may name too, where they are strings. Defaults to None.

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
    labels = {role: part[1] for role, part in parts.items()}
    classes = _Classes(tuple(map(str, class_names))) if class_names else _classes(train, labels)
    if tree is not None and not isinstance(train, Split) and _are_names(labels):
        classes = _Classes(tree.names(classes.names, class_names), kind=tree.kind)
    splits = {role: _split(given[role], *part, classes, role) for role, part in parts.items()}
    _check_trees(splits)
    samples = {role: split.sample(0) for role, split in splits.items()}
    for role, sample in samples.items():
        _check_alike(sample, samples["train"], role)
    kind = kind_of(samples["train"])
    return Source(kind, splits["train"], splits.get("test"), splits.get("val"))


# -------------------------------------------------------------------------------- inputs


def _parts(data: Any, role: str) -> Parts:
    """Return what a part of the data holds."""
    if not isinstance(data, Split):
        _check_readable(data, role)
    if not len(data):
        raise ValueError(f"{role} has no samples.")
    if isinstance(data, Split):
        return data.inputs, data.targets, data.sentences
    pair = data if isinstance(data, tuple) else _tensors(data)
    if len(pair) == 2:
        inputs, texts = _inputs(pair[0], role)
        return inputs, pair[1], texts
    labels = _dataset_targets(data, role)
    if isinstance(_item(data, 0, role)[0], str):
        texts = tuple(_item(data, row, role)[0] for row in range(len(data)))
        return tokens(texts), labels, texts
    return _DatasetInputs(data, role), labels, None


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


def _inputs(values: Any, role: str) -> tuple[Tensor, tuple[str, ...] | None]:
    """Return inputs as a tensor, and the sentences where they are text."""
    if not isinstance(values, Tensor | list | tuple):
        values = np.asarray(values)
    if not len(values):
        raise ValueError(f"{role} has no samples.")
    if isinstance(values[0], str):
        texts = tuple(values)
        return tokens(texts), texts
    inputs = as_inputs(values, role)
    check_samples_finite(inputs, role)
    if kind_of(inputs[0]) == "text" and int(inputs.min()) < 0:
        raise ValueError(
            f"{role}: rows of integers are tokens, and none may be negative. Give a table as "
            f"floats."
        )
    return inputs, None


def _check_alike(sample: Tensor, other: Tensor, role: str) -> None:
    kind = kind_of(sample)
    if kind != kind_of(other) or (kind != "text" and sample.shape != other.shape):
        raise ValueError(
            f"{role} has inputs of shape {tuple(sample.shape)} ({kind}), but train of shape "
            f"{tuple(other.shape)} ({kind_of(other)})."
        )


# ------------------------------------------------------------------------------- targets


def _split(
    given: Any,
    inputs: Tensor | LazyInputs,
    labels: Any,
    sentences: tuple[str, ...] | None,
    classes: _Classes,
    role: str,
) -> Split:
    names = classes.names
    if not isinstance(given, Split):
        return Split(inputs, _targets(labels, classes, role), names, sentences=sentences)
    if given.class_names != names:
        raise ValueError(
            f"{role} is a Split of the classes {', '.join(given.class_names[:3])}, ..., but there "
            f"are {', '.join(names[:3])}, ...; make all of the same classes."
        )
    return given


def _check_trees(splits: Mapping[str, Split]) -> None:
    """Raise a ValueError where samples are labelled by another tree than those to train on."""
    wanted = splits["train"].hierarchy
    for role, split in splits.items():
        if split.hierarchy is not None and split.hierarchy != wanted:
            raise ValueError(
                f"{role} is a Split whose targets are nodes of another hierarchy than those of "
                f"train; make both of the same hierarchy."
            )


def _are_names(labels: Mapping[str, Any]) -> bool:
    return all(_labels(given, role).dtype.kind == "U" for role, given in labels.items())


def _classes(train: Any, labels: Mapping[str, Any]) -> _Classes:
    if isinstance(train, Split):
        return _Classes(train.class_names)
    arrays = {role: _labels(given, role) for role, given in labels.items()}
    array = arrays.pop("train")
    if array.dtype.kind == "U":
        classes = _Classes(tuple(sorted(set(array.tolist()))))
    elif len(_declared_classes(train)) > array.max():
        classes = _Classes(_declared_classes(train))
    else:
        others = [other for other in arrays.values() if other.dtype.kind != "U"]
        numbers = numbered_classes(array, others, "train")
        classes = _Classes(tuple(map(str, numbers)), None if are_indices(numbers) else numbers)
    if len(classes.names) < 2:
        raise ValueError(
            f"train has one class alone, {classes.names[0]!r}; there must be two or more."
        )
    return classes


def _targets(labels: Any, classes: _Classes, role: str) -> Tensor:
    array, (names, numbers, kind) = _labels(labels, role), classes
    if array.dtype.kind != "U":
        return torch.from_numpy(array if numbers is None else places_of(array, numbers, role))
    places = {name: place for place, name in enumerate(names)}
    for row, label in enumerate(array.tolist()):
        if label not in places:
            raise ValueError(
                f"{role}: the label {label!r} of sample {row} is none of the {len(names)} {kind}."
                f"{did_you_mean(label, names)}"
            )
    return torch.tensor([places[label] for label in array.tolist()])


def _labels(labels: Any, role: str) -> np.ndarray[Any, Any]:
    """Return labels as an array of int64 or strings, one a sample."""
    array = to_numpy(labels)
    if array.ndim != 1:
        raise ValueError(
            f"{role}: there must be one class a sample, of shape (N), as target. Got the shape "
            f"{array.shape}; of one-hot vectors or probabilities take argmax(1)."
        )
    if array.dtype.kind == "O" and all(isinstance(label, str) for label in array):
        array = array.astype(np.str_)
    if array.dtype.kind == "f":
        return _whole(array, role)
    if array.dtype.kind not in "biuU":
        wrong = next((row for row, label in enumerate(array) if not isinstance(label, str)), 0)
        raise TypeError(
            f"{role}: targets must be integers or strings. Got {short(array[wrong])} for sample "
            f"{wrong}."
        )
    return array if array.dtype.kind == "U" else array.astype(np.int64)


def _whole(labels: np.ndarray[Any, Any], role: str) -> IntArray:
    """Return floats as integers, as libraries make floats of integers where one is missing."""
    wrong = np.flatnonzero(~(np.abs(labels) < 2**53) | (labels % 1 != 0))
    if len(wrong):
        raise TypeError(
            f"{role}: targets must be integers or strings. Got {labels.dtype}, such as "
            f"{labels[wrong[0]]} for sample {wrong[0]}."
        )
    return labels.astype(np.int64)


# ---------------------------------------------------------------- PyTorch's data sets


class _DatasetInputs:
    """`LazyInputs` of a data set that gives pairs (input, target)."""

    def __init__(self, dataset: Any, role: str) -> None:
        self.dataset, self.role = dataset, role
        self.shape = self._sample(0, None).shape

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        sample = self._sample(row, rng)
        check_shape(sample, self.shape, self.role, row)
        check_samples_finite(sample.unsqueeze(0), self.role, first=row)
        return sample

    def _sample(self, row: int, rng: np.random.Generator | None) -> Tensor:
        value = _item(self.dataset, row, self.role, rng)[0]
        return as_sample(value, f"{self.role}: sample {row}")


def _item(
    dataset: Any, row: int, role: str, rng: np.random.Generator | None = None
) -> tuple[Any, Any]:
    """Return a pair (input, target) of a data set.

    Transforms draw from the global generators of torch, numpy and Python. These are seeded for
    each item, by `rng` or else by the row, so that an item depends on neither the order of
    reading nor the number of workers, and are put back as they were.
    """
    with _seeded(row if rng is None else int(rng.integers(2**32))):
        item = dataset[row]
    if not isinstance(item, tuple | list) or len(item) != 2:
        what = f"{len(item)} values" if isinstance(item, tuple | list) else type(item).__name__
        raise TypeError(f"{role}: sample {row} must be a pair (input, target). Got {what}.")
    return item[0], item[1]


def _dataset_targets(dataset: Any, role: str) -> Any:
    """Return the targets of a data set: those it declares, or else those of all its items."""
    declared = _declared_targets(dataset)
    ends = {0, len(dataset) - 1}
    if declared is not None and all(
        _same(declared[row], _item(dataset, row, role)[1]) for row in ends
    ):
        return declared
    return [_plain(_item(dataset, row, role)[1]) for row in range(len(dataset))]


def _declared_classes(dataset: Any) -> tuple[str, ...]:
    """Return the names of the classes that a data set declares, none if it does not."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    classes = getattr(dataset, "classes", ())
    return tuple(map(str, classes)) if isinstance(classes, list | tuple) else ()


def _declared_targets(dataset: Any) -> list[Any] | None:
    """Return what the attributes of a data set say, which a transform of targets may belie."""
    if isinstance(dataset, Subset):
        inner = _declared_targets(dataset.dataset)
        return None if inner is None else [inner[row] for row in dataset.indices]
    if isinstance(dataset, ConcatDataset):
        parts = [_declared_targets(part) for part in dataset.datasets]
        return None if None in parts else [one for part in parts for one in part or ()]
    if getattr(dataset, "target_transform", None) is not None:
        return None
    for name in ("targets", "labels"):
        declared = getattr(dataset, name, None)
        if isinstance(declared, list | tuple | np.ndarray | Tensor) and len(declared) == len(
            dataset
        ):
            return [_plain(value) for value in declared]
    return None


def _plain(value: Any) -> Any:
    """Return a number that is wrapped by torch or numpy as Python's own."""
    is_wrapped = isinstance(value, Tensor | np.ndarray | np.generic)
    return value.item() if is_wrapped and not value.shape else value


def _same(declared: Any, given: Any) -> bool:
    given = _plain(given)
    return type(declared) is type(given) and isinstance(declared, int | str) and declared == given


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.default_generator.manual_seed(seed)  # not torch.manual_seed, which reaches for GPUs
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        random.setstate(before[2])
