"""From a source to training, validation and test samples: the same for a seed everywhere."""

from __future__ import annotations

import hashlib
import json
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .._util.arrays import Array, IntArray
from .._util.text import brief
from ..nodes import Nodes
from .split import Kind, Source, Split


@dataclass(frozen=True)
class Data:
    """The samples of one seed.

    Args:
        kind: What the inputs are, see `Source`.
        train: To train on.
        val: To validate on; empty where no share was asked for.
        test: To test on.
        columns: The names of a table's columns. Defaults to none.
    """

    kind: Kind
    train: Split
    val: Split
    test: Split
    columns: tuple[str, ...] = ()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the K classes."""
        return self.train.class_names

    def with_class(self) -> dict[str, list[int]]:
        """Return how many samples of each part have a class, and how many there are.

        Where all samples have one, there is nothing to say.
        """
        parts = {"train": self.train, "val": self.val, "test": self.test}
        counts = {role: [part.num_with_class, len(part)] for role, part in parts.items()}
        return counts if any(some < every for some, every in counts.values()) else {}

    def fingerprint(self) -> str:
        """Return a short text that changes where the samples do."""
        digest = hashlib.blake2b(repr(self.class_names).encode(), digest_size=16)
        if self.train.hierarchy is not None:  # which says what the targets mean
            digest.update(json.dumps(self.train.hierarchy.to_dict()).encode())
        for split in (self.train, self.val, self.test):
            digest.update(split.targets.numpy().tobytes() + split.index.numpy().tobytes())
            inputs = split.inputs
            if isinstance(inputs, Tensor):  # what is read lazily would take too long
                digest.update(repr((inputs.shape, inputs.dtype)).encode())
                digest.update(np.ascontiguousarray(inputs.numpy()).data)
        return digest.hexdigest()


def sample(
    source: Source,
    *,
    train_size: int | float | None = None,
    val_share: float = 0.2,
    test_share: float = 0.2,
    seed: int = 0,
    stratify: bool = True,
) -> Data:
    """Divide a source into training, validation and test samples.

    Args:
        source: What was loaded.
        train_size: How many samples to take of those to train on, the validation share
            included, the same number of every class as far as there are so many; or a
            fraction of them, at most 1.0. Each cluster that samples are labelled with counts
            like a class. Defaults to None: all.
        val_share: The share of these that is for validation, where the source has no
            validation samples of its own. Defaults to 0.2, as in the paper.
        test_share: The share of all samples that is for testing, where the source has no
            test samples of its own. Defaults to 0.2.
        seed: Of every choice; it gives the same samples on every machine. Defaults to 0.
        stratify: Whether every class keeps its share of the validation and test samples, and
            at least one sample to train on. Defaults to True; False draws from all samples
            alike, as the paper does.
    """
    rng = np.random.RandomState(seed)  # its stream is the one that numpy promises to keep
    train, test = source.train, source.test
    if test is None:
        _check_share(test_share, "test_share")
        train, test = _divide(train, test_share, rng, stratify)
        if not len(test):
            raise ValueError(
                "there are no test samples, and test_share leaves none; give it as 0.2, say."
            )
    if train_size is not None:
        counts = np.bincount(train.targets, minlength=train.num_labels)
        wanted = _wanted(train_size, counts, len(train.class_names))
        shares = class_shares(counts, wanted)
        train = train.take(np.sort(_first_of_each(train.targets.numpy(), shares, rng)))
    val = source.val
    _check_share(val_share, "val_share")
    if val is None:
        train, val = _divide(train, val_share, rng, stratify)
        if not len(train):
            raise ValueError(f"val_share leaves no samples to train on. Got {val_share}.")
    return Data(source.kind, train, val, test, source.columns)


def warn_of_absent_classes(data: Data) -> None:
    """Warn where a class has no samples to train or to validate on."""
    for part, split in (("training", data.train), ("validation", data.val)):
        targets = split.targets[split.has_class]
        counts = np.bincount(targets, minlength=len(split.class_names))
        absent = [split.class_names[index] for index in np.flatnonzero(counts == 0)]
        if absent and len(split):
            named = brief(", ".join(absent[:5]) + (", …" if len(absent) > 5 else ""))
            warnings.warn(
                f"{len(absent)} of {len(counts)} classes have no {part} samples: {named}.",
                stacklevel=2,
            )


def input_shape(split: Split) -> tuple[int, ...]:
    """Return the shape of one sample."""
    return tuple(split.sample(0).shape)


def balanced_class_weights(targets: Any, num_classes: int, nodes: Nodes | None = None) -> Array:
    """Return weights by which every class counts the same, as scikit-learn balances them.

    A sample of a class with n_k of the n samples has the weight n / (K n_k), where K counts the
    classes that have samples; so the mean over all samples is 1. A class without any has 1.

    Args:
        targets: The class of each sample, integers from 0.
        num_classes: How many classes there are.
        nodes: What targets are numbered by. A sample of a cluster counts for each of its
            classes in equal parts. Defaults to None: all targets are classes.

    Examples:
        >>> balanced_class_weights([0, 0, 0, 1], 3).round(2).tolist()
        [0.67, 2.0, 1.0]
    """
    counts = np.bincount(np.asarray(targets), minlength=num_classes)
    if nodes is not None:
        counts = _in_equal_parts(counts, nodes)
    present = counts > 0
    weights: Array = np.ones(num_classes)
    weights[present] = counts.sum() / (present.sum() * counts[present])
    return weights


def _in_equal_parts(counts: IntArray, nodes: Nodes) -> Array:
    """Return how many samples each class has, if those of a cluster are divided among its own."""
    found = counts[: nodes.num_classes].astype(float)
    for node in np.flatnonzero(counts[nodes.num_classes :]) + nodes.num_classes:
        found[nodes.classes(int(node))] += counts[node] / nodes.sizes[node]
    return found


def class_shares(counts: IntArray, total: int) -> IntArray:
    """Return how many of each class to take so that `total` are as balanced as can be.

    Args:
        counts: How many there are of each class.
        total: How many to take in all, at most the sum of `counts`.

    Examples:
        >>> class_shares(np.array([10, 2, 10]), 12).tolist()
        [5, 2, 5]
        >>> class_shares(np.array([10, 10, 10]), 8).tolist()
        [3, 3, 2]
    """
    level = np.searchsorted(
        [np.minimum(counts, height).sum() for height in range(counts.max() + 1)], total
    )
    shares = np.minimum(counts, level)
    surplus = int(shares.sum()) - total
    shares[np.flatnonzero(counts >= level)[::-1][:surplus]] -= 1
    return shares


def stratified_counts(counts: IntArray, total: int, ties: Array) -> IntArray:
    """Return how many of each class to hold out so that every class keeps its share.

    The rest is rounded by largest remainders, and at least one of each class is left.

    Args:
        counts: How many there are of each class.
        total: How many to hold out in all; fewer where that would leave none of a class.
        ties: A number for each class, random and from 0 to 1: the larger one wins a tie.

    Examples:
        >>> stratified_counts(np.array([50, 10, 1]), 12, np.zeros(3)).tolist()
        [10, 2, 0]
    """
    quotas = counts * (total / max(counts.sum(), 1))
    most = np.maximum(counts - 1, 0)
    held: IntArray = np.minimum(np.floor(quotas), most).astype(np.int64)
    while (missing := total - int(held.sum())) and (held < most).any():
        # Rounded, so that equal remainders are a tie whatever the floats make of them.
        remainders = np.where(held < most, np.round(quotas - held, 9), -np.inf)
        first = np.lexsort((ties, remainders))[::-1][: min(missing, int((held < most).sum()))]
        held[first] += 1
    return held


def stratified_rows(targets: IntArray, num_classes: int, total: int, rng: Any) -> IntArray:
    """Return the rows of samples to hold out, at random, so that every class keeps its share.

    Args:
        targets: The class of each sample.
        num_classes: K.
        total: See `stratified_counts`.
        rng: A ``numpy.random.RandomState``.
    """
    counts = np.bincount(targets, minlength=num_classes)
    held = stratified_counts(counts, total, rng.random_sample(len(counts)))
    return _first_of_each(targets, held, rng)


def _divide(split: Split, share: float, rng: Any, stratify: bool) -> tuple[Split, Split]:
    """Return the split without a random share, and the share; both in the old order."""
    targets, total = split.targets.numpy(), round(share * len(split))
    if stratify:
        chosen = stratified_rows(targets, split.num_labels, total, rng)
    else:
        chosen = _shuffled(len(split), rng)[:total]
    is_chosen = np.zeros(len(split), bool)
    is_chosen[chosen] = True
    return split.take(np.flatnonzero(~is_chosen)), split.take(np.flatnonzero(is_chosen))


def _first_of_each(targets: IntArray, shares: IntArray, rng: Any) -> IntArray:
    """Return the rows of a random choice with so many of each class."""
    order = _shuffled(len(targets), rng)
    order = order[np.argsort(targets[order], kind="stable")]
    starts = np.searchsorted(targets[order], np.arange(len(shares)))
    place = np.arange(len(targets)) - starts[targets[order]]
    rows: IntArray = order[place < shares[targets[order]]]
    return rows


def _shuffled(count: int, rng: Any) -> IntArray:
    return np.argsort(rng.random_sample(count), kind="stable")


def _wanted(train_size: int | float, counts: IntArray, num_classes: int) -> int:
    total = int(counts.sum())
    if isinstance(train_size, float) and not 0 < train_size <= 1:
        raise ValueError(f"train_size must be a number of samples or a fraction. Got {train_size}.")
    size = round(train_size * total) if isinstance(train_size, float) else train_size
    if not num_classes <= size <= total:
        raise ValueError(
            f"train_size must be at least one for each of the {num_classes} classes and at "
            f"most {total}, as many as there are. Got {size}."
        )
    return size


def _check_share(share: float, what: str) -> None:
    if not 0 <= share < 1:
        raise ValueError(f"{what} must be at least 0 and less than 1. Got {share}.")
