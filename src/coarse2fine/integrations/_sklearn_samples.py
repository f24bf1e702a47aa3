"""The samples of the scikit-learn estimator: dense or sparse, weighted, in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight  # type: ignore[import-untyped]
from sklearn.utils.sparsefuncs import mean_variance_axis  # type: ignore[import-untyped]
from torch import Tensor
from torch.utils.data import Dataset

from .._util.arrays import IntArray


class Rows(NamedTuple):
    """Samples as arrays.

    Args:
        inputs: An array (N, F, ...) or a scipy matrix (N, F) in the csr format.
        labels: The label, class or node of each.
        weights: More than 0 each; None where all weigh the same.
    """

    inputs: Any
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None = None

    def take(self, rows: Any) -> Rows:
        """Return some of the samples, by a mask or by index."""
        weights = None if self.weights is None else self.weights[rows]
        return Rows(self.inputs[rows], self.labels[rows], weights)


def is_sparse(inputs: Any) -> bool:
    """Whether inputs are a scipy matrix; scipy's own function hides its attributes from mypy."""
    return bool(sparse.issparse(inputs))


def weighted(rows: Rows) -> Rows:
    """Return the samples that have a weight.

    Args:
        rows: Whose weights may be 0.
    """
    if rows.weights is None:
        return rows
    if not np.isfinite(rows.weights).all() or (rows.weights < 0).any():
        at = int(np.flatnonzero(~(np.isfinite(rows.weights) & (rows.weights >= 0)))[0])
        raise ValueError(
            f"sample_weight must be at least 0 and finite. Got {rows.weights[at]} at {at}."
        )
    kept = rows.weights > 0
    if not kept.any():
        raise ValueError("sample_weight is 0 for every sample, so there is none to train on.")
    return rows if kept.all() else rows.take(kept)


def merged(rows: Rows) -> Rows:
    """Return each distinct sample once, weighted by how often it occurs.

    So a weight of 2 is the same as the sample twice, and no sample is on both sides of the
    validation split. Where all weigh the same, they stay in their order; else their order
    depends on what they are, not on the one they came in.

    Args:
        rows: With the class or node of each as a label.

    Examples:
        >>> found = merged(Rows(np.array([[1.0], [2.0], [1.0]]), np.array([0, 1, 0])))
        >>> sorted(zip(found.inputs[:, 0].tolist(), found.weights.tolist()))
        [(1.0, 2.0), (2.0, 1.0)]
    """
    digests = np.fromiter(_digests(rows), np.uint64, len(rows.labels))
    _, first, group = np.unique(digests, return_index=True, return_inverse=True)
    totals = np.bincount(group, rows.weights).astype(np.float64)
    if np.ptp(totals) > 0:
        return rows.take(first)._replace(weights=totals)
    rows = rows._replace(weights=None)
    return rows if len(first) == len(digests) else rows.take(np.sort(first))


def _digests(rows: Rows) -> Iterator[int]:
    """Return a number of 64 bits for each sample, the same for the same input and class."""
    for row, label in zip(_bytes_of_rows(rows.inputs), rows.labels.tolist(), strict=True):
        digest = hashlib.blake2b(row, digest_size=8, salt=int(label).to_bytes(8, "little"))
        yield int.from_bytes(digest.digest(), "little")


def _bytes_of_rows(inputs: Any) -> Iterator[bytes]:
    if not is_sparse(inputs):
        return ((row + 0.0).tobytes() for row in inputs)  # as -0.0 has other bytes than 0.0
    ends = zip(inputs.indptr[:-1], inputs.indptr[1:], strict=True)
    columns = inputs.indices.astype(np.int64)
    return (columns[a:b].tobytes() + inputs.data[a:b].tobytes() for a, b in ends)


def canonical(inputs: Any) -> Any:
    """Return a sparse matrix without zeros that are stored, and in order; an array as it is."""
    if not is_sparse(inputs):
        return inputs
    if inputs.has_canonical_format and np.count_nonzero(inputs.data) == inputs.nnz:
        return inputs
    inputs = inputs.copy()  # it may be the caller's own
    inputs.sum_duplicates()
    inputs.eliminate_zeros()
    return inputs


def moments(rows: Rows) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the mean and the standard deviation of each column; 1 where a column is constant.

    Sparse columns are not to be centred, so their mean is given as 0: most of a rare word's
    rows have none of it, which says little. scikit-learn's StandardScaler leaves them, too.

    Args:
        rows: Of two dimensions. A sparse matrix is not made dense.
    """
    if is_sparse(rows.inputs):
        mean, variance = mean_variance_axis(rows.inputs, axis=0, weights=rows.weights)
        mean = np.zeros_like(mean)
    else:
        mean = np.average(rows.inputs, axis=0, weights=rows.weights)
        variance = np.average((rows.inputs - mean) ** 2, axis=0, weights=rows.weights)
    deviation = np.sqrt(variance)
    return mean, np.where(deviation > 0, deviation, 1.0).astype(deviation.dtype)


def class_weights(
    setting: str | Mapping[Any, float] | None, classes: NDArray[Any], rows: Rows
) -> NDArray[np.float64] | None:
    """Return the weight of each class, or None where all are 1.

    Args:
        setting: ``"balanced"``, a dict class → weight, or None.
        classes: The labels, sorted.
        rows: The samples with their classes; balanced weights count each by its weight, and
            leave out those labelled with a node, which is no class.

    Examples:
        >>> rows = Rows(np.zeros((3, 1)), np.array([0, 1, 1]))
        >>> class_weights("balanced", np.array(["ash", "elm"]), rows)
        array([1.5 , 0.75])
    """
    if setting is None:
        return None
    if isinstance(setting, str) and setting == "balanced":
        return _balanced(rows.take(rows.labels < len(classes)), len(classes))
    found: NDArray[np.float64] = compute_class_weight(setting, classes=classes, y=classes)
    return found


def _balanced(rows: Rows, num_classes: int) -> NDArray[np.float64]:
    """Return weights by which all classes count the same; 1 where a class has no samples."""
    # By hand, as scikit-learn's function takes weights of samples only from 1.7 on.
    counts = np.bincount(rows.labels, rows.weights, num_classes)
    has_any = counts > 0
    weights = np.ones(num_classes)
    weights[has_any] = counts.sum() / (has_any.sum() * counts[has_any])
    return weights


class Samples(Dataset[tuple[Tensor, ...]]):
    """Samples that are taken many at a time, as tensors: inputs, classes and any weights.

    A sparse matrix stays one; only the rows of a batch are made dense, if at all.

    Args:
        inputs: See `Rows`.
        targets: The class or node of each. Defaults to None: they are not known, and are all 0.
        weights: See `Rows`. They are scaled to a mean of 1. Defaults to None.
        is_dense: Whether the rows of a sparse matrix are given as dense tensors, not as sparse
            ones. Defaults to True.
    """

    def __init__(
        self,
        inputs: Any,
        targets: IntArray | None = None,
        weights: NDArray[np.float64] | None = None,
        *,
        is_dense: bool = True,
    ) -> None:
        self.is_dense = is_dense
        self.inputs = (
            inputs if is_sparse(inputs) else torch.from_numpy(np.require(inputs, None, ["C", "W"]))
        )
        self.targets = (
            torch.zeros(self.inputs.shape[0], dtype=torch.int64)
            if targets is None
            else torch.from_numpy(targets)
        )
        self.weights = None if weights is None else torch.from_numpy(weights / weights.mean())

    def __len__(self) -> int:
        return int(self.inputs.shape[0])

    def __getitem__(self, rows: Tensor) -> tuple[Tensor, ...]:
        inputs, targets = self._inputs_of(rows), self.targets.index_select(0, rows)
        if self.weights is None:
            return inputs, targets
        return inputs, targets, self.weights.index_select(0, rows)

    def _inputs_of(self, rows: Tensor) -> Tensor:
        if isinstance(self.inputs, Tensor):
            return self.inputs.index_select(0, rows)
        batch = self.inputs[rows.numpy()]
        if self.is_dense:
            return torch.from_numpy(batch.toarray())
        batch = batch.tocoo()
        entries = torch.from_numpy(np.stack([batch.row, batch.col]).astype(np.int64))
        values = torch.from_numpy(batch.data)
        return torch.sparse_coo_tensor(
            entries, values, batch.shape, is_coalesced=True, check_invariants=False
        )


class SampleBatches:
    """What skorch takes for a DataLoader; it cuts batches from tensors, which is faster.

    Where it shuffles, to train, one last sample goes into the batch before it, as batch
    normalisation cannot train on one alone.

    Args:
        dataset: The samples.
        batch_size: How many to a batch.
        shuffle: Whether to go through them in a new random order each time. Defaults to
            False.
    """

    def __init__(
        self, dataset: Dataset[tuple[Tensor, ...]], batch_size: int, shuffle: bool = False
    ) -> None:
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle

    def __iter__(self) -> Iterator[tuple[Tensor, ...]]:
        count = len(self.dataset)  # type: ignore[arg-type]
        order = torch.randperm(count) if self.shuffle else torch.arange(count)
        batches = list(torch.split(order, self.batch_size))
        if self.shuffle and len(batches) > 1 and len(batches[-1]) == 1 < self.batch_size:
            batches[-2:] = [torch.cat(batches[-2:])]
        return (self.dataset[rows] for rows in batches)
