"""The small interface that every data source meets: inputs, targets, index, class names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from ..hierarchy import Hierarchy

Kind = Literal["image", "text", "table", "other"]

ROLES = {
    "train": ("train", "training"),
    "test": ("test",),
    "val": ("validation", "valid", "val", "dev"),
}
"""What files, folders and the hub call the samples to train, to test and to validate on."""


@runtime_checkable
class LazyInputs(Protocol):
    """Inputs that are read when they are needed, since they do not all fit in memory."""

    def __len__(self) -> int:
        """Return the number of samples."""

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        """Return one sample; all have the same shape.

        Args:
            row: Which sample.
            rng: Randomness for augmentation, a function of seed, epoch and row alone, or
                None for none, as in evaluation.
        """


@dataclass(frozen=True)
class Split:
    """Samples with their classes, or with labels of any depth.

    Args:
        inputs: One row a sample: uint8 images (N, C, H, W), float columns (N, F), integer
            tokens (N, L) with 0 for padding, or anything else a model takes; or `LazyInputs`.
        targets: The class of each sample, integers from 0; with a `hierarchy` its node, which
            may be a cluster.
        class_names: The names of the K classes.
        index: The place of each sample in its source. Defaults to None: 0, 1, 2, ...
        sentences: The text that tokens were made from, one a sample. Defaults to None: it is
            not known, or the inputs are no text.
        hierarchy: The tree of the classes, of which targets are nodes, see `Nodes`. Defaults to
            None: targets are classes.

    Examples:
        >>> split = Split(torch.zeros(3, 5), torch.tensor([0, 1, 1]), ("cat", "dog"))
        >>> split.take([2, 0]).index
        tensor([2, 0])
    """

    inputs: Tensor | LazyInputs
    targets: Tensor
    class_names: tuple[str, ...]
    index: Tensor = field(default=None)  # type: ignore[assignment]
    sentences: tuple[str, ...] | None = None
    hierarchy: Hierarchy | None = None

    def __post_init__(self) -> None:
        targets = torch.as_tensor(self.targets)
        if targets.dim() != 1 or targets.is_floating_point():
            raise ValueError(
                f"targets must be integers of shape (N). Got {targets.dtype} of shape "
                f"{tuple(targets.shape)}."
            )
        index = torch.arange(len(targets)) if self.index is None else torch.as_tensor(self.index)
        given = {"inputs": self.inputs, "index": index, "sentences": self.sentences}
        for what, values in given.items():
            if values is not None and len(values) != len(targets):
                raise ValueError(f"there are {len(values)} {what} but {len(targets)} targets.")
        object.__setattr__(self, "targets", targets.long())
        object.__setattr__(self, "index", index.long())
        object.__setattr__(self, "class_names", tuple(map(str, self.class_names)))
        self._check_targets()

    def _check_targets(self) -> None:
        """Raise a ValueError where a target is no class, and no node of the hierarchy."""
        classes = len(self.class_names)
        tree = self.hierarchy
        if tree is not None and tree.num_classes != classes:
            raise ValueError(
                f"the hierarchy has {tree.num_classes} classes, but class_names has {classes}."
            )
        known = f"0..{classes - 1}, one of the {classes} classes"
        if tree is not None:
            known += f", or be a node of the hierarchy, up to {len(tree.nodes) - 1}"
        wrong = torch.nonzero((self.targets < 0) | (self.targets >= self.num_labels)).flatten()
        if len(wrong):
            raise ValueError(
                f"targets must lie in {known}. Got {int(self.targets[wrong[0]])} for sample "
                f"{int(self.index[wrong[0]])}."
            )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def num_labels(self) -> int:
        """How many labels there can be: the classes, or all nodes of the hierarchy."""
        return len(self.class_names) if self.hierarchy is None else len(self.hierarchy.nodes)

    @property
    def has_class(self) -> Tensor:
        """Which samples are labelled with a class, and not only with a cluster."""
        return self.targets < len(self.class_names)

    @property
    def num_with_class(self) -> int:
        """How many samples are labelled with a class."""
        return int(self.has_class.sum())

    def with_class(self) -> Split:
        """Return the samples that are labelled with a class."""
        if self.hierarchy is None:
            return self
        has_class = self.has_class
        found = self if bool(has_class.all()) else self.take(has_class.nonzero().flatten())
        return replace(found, hierarchy=None)

    def sample(self, row: int) -> Tensor:
        """Return the input of one sample, without augmentation."""
        return self.inputs[row] if isinstance(self.inputs, Tensor) else self.inputs.read(row, None)

    def take(self, rows: Sequence[int] | np.ndarray[Any, Any] | Tensor) -> Split:
        """Return the samples at the given rows, in that order."""
        rows = torch.as_tensor(rows, dtype=torch.int64)
        inputs = self.inputs
        picked = inputs[rows] if isinstance(inputs, Tensor) else _LazySubset(inputs, rows)
        texts = self.sentences
        sentences = None if texts is None else tuple(texts[row] for row in rows.tolist())
        return replace(
            self,
            inputs=picked,
            targets=self.targets[rows],
            index=self.index[rows],
            sentences=sentences,
        )


@dataclass(frozen=True)
class Groups:
    """Groups of classes that the makers of a data set gave its samples, beside their classes.

    Args:
        labels: The group of each sample to train on, integers from 0.
        names: The names of the groups.
    """

    labels: Tensor
    names: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """What a data source gives: its samples as it divides them.

    Args:
        kind: What the inputs are: ``"image"``, ``"text"``, ``"table"`` or ``"other"``.
        train: The samples to train on.
        test: The samples to test on. Defaults to None: the source has no such division.
        val: The samples to validate on. Defaults to None: a share of `train` is taken.
        columns: The names of a table's columns. Defaults to none.
        groups: Of the classes. Defaults to None: the data has none.
    """

    kind: Kind
    train: Split
    test: Split | None = None
    val: Split | None = None
    columns: tuple[str, ...] = ()
    groups: Groups | None = None

    def own_hierarchy(self) -> Hierarchy:
        """Return the tree of its labels or of its groups; a ValueError where it has neither."""
        if self.train.hierarchy is not None:
            return self.train.hierarchy
        if self.groups is None:
            raise ValueError(
                "the data has no hierarchy of its own, as cifar100 has; give hierarchy= a file, "
                "or leave it out."
            )
        groups, classes = self.groups.names, self.train.class_names
        both = torch.stack([self.groups.labels, self.train.targets])
        coarse, fine = np.unique(both.numpy(), axis=1)
        labels = {
            "coarse_label": [groups[group] for group in coarse],
            "fine_label": [classes[target] for target in fine],
        }
        return Hierarchy.from_taxonomy(labels, classes)

    @property
    def num_coarse(self) -> int:
        """How many samples are labelled with a cluster instead of a class."""
        parts = (self.train, self.val, self.test)
        return sum(len(part) - part.num_with_class for part in parts if part is not None)


def check_class_indices(labels: np.ndarray[Any, Any], num_classes: int, name: str) -> None:
    """Raise a ValueError where a file has a label that is none of its classes.

    Args:
        labels: In the order of the file.
        num_classes: How many classes it has.
        name: What to call the file.
    """
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        raise ValueError(
            f"{name}: labels must lie in 0..{num_classes - 1}, one of the {num_classes} classes. "
            f"Got {labels[wrong[0]]} in row {wrong[0] + 1}."
        )


class _LazySubset:
    """Some rows of lazy inputs."""

    def __init__(self, inputs: LazyInputs, rows: Tensor) -> None:
        self.inputs, self.rows = inputs, rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_plain(self) -> bool:
        return bool(getattr(self.inputs, "is_plain", False))

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        return self.inputs.read(int(self.rows[row]), rng)
