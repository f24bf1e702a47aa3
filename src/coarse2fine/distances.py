"""How far apart two classes are: the paper's five metrics, and one more."""

from __future__ import annotations

import sys
from typing import Any, Literal, get_args

import numpy as np

from ._util.arrays import Array, check_entries_finite, to_floats
from .clustering import check_distances, unit_embeddings

Metric = Literal[
    "embedding",
    "embedding_similarity",
    "embedding_centred",
    "confusion",
    "confusion_distance",
    "random",
]


def class_distances(
    source: Any, metric: Any = "embedding", *, num_classes: int | None = None, seed: int = 0
) -> Array:
    """Return the K×K matrix of distances between classes.

    Clustering depends only on the order of the entries, so negative ones, which some of the
    metrics have, are fine. ``"embedding_similarity"`` and ``"confusion"`` put together what
    is *unlike*, as in the paper's comparison of metrics. The diagonal is 0 and is not used.

    Args:
        source: What the metric needs. For the embedding metrics a classifier, whose final
            layer is found, or a K×E matrix, one row per class. For the confusion metrics a
            K×K confusion matrix on validation data, rows the true classes, in counts or
            rates, or a pair (predictions, targets) of class indices. For ``"random"`` any
            of these, or K.
        metric: ``"embedding"`` (cosine distance), ``"embedding_similarity"`` (1 minus it),
            ``"embedding_centred"`` (cosine distance once the rows' mean is subtracted),
            ``"confusion"`` (the rates plus their transpose), ``"confusion_distance"`` (1
            minus it), ``"random"`` (normal, seeded), or a K×K matrix,
            which is checked and taken as it is. Defaults to ``"embedding"``.
        num_classes: K, where predictions and targets may not show all classes; checked
            against every other source. Defaults to None.
        seed: Of the random metric. Defaults to 0.

    Examples:
        >>> class_distances([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]]).round(3)
        array([[0., 0., 1.],
               [0., 0., 1.],
               [1., 1., 0.]])
        >>> class_distances(([0, 0, 1, 1], [0, 0, 0, 1]), "confusion_distance").round(3)
        array([[0.   , 0.667],
               [0.667, 0.   ]])
    """
    if not isinstance(metric, str):
        distances = check_distances(metric)
    elif metric not in get_args(Metric):
        valid = ", ".join(map(repr, get_args(Metric)))
        raise ValueError(f"metric {metric!r} is not supported. Must be a matrix or one of {valid}.")
    elif metric == "random":
        distances = random_distances(num_classes or _count(source), seed)
    elif metric.startswith("embedding"):
        distances = embedding_distances(source, centred=metric == "embedding_centred")
        if metric == "embedding_similarity":
            distances = 1 - distances
    else:
        rates = confusion_rates(source, num_classes)
        # Confusion is not symmetric, distances must be: C + Cᵀ, as in the paper's appendix.
        distances = rates + rates.T
        if metric == "confusion_distance":
            distances = 1 - distances
    if num_classes is not None and len(distances) != num_classes:
        raise ValueError(
            f"the distances are between {len(distances)} classes, but there are {num_classes}."
        )
    distances = distances.copy()  # the caller's own matrix stays as it is
    np.fill_diagonal(distances, 0)
    return distances


def embedding_distances(source: Any, *, centred: bool = False) -> Array:
    """Return the cosine distances of class embeddings, or of a classifier's class vectors.

    Args:
        source: A classifier or a K×E matrix.
        centred: Whether to subtract the mean of the rows first. What all rows of a final layer
            have in common changes no probability, but makes all of them look alike. Defaults
            to False.
    """
    if _is_module(source):
        from .heads import class_vectors

        source = class_vectors(source)
    rows = to_floats(source, "embeddings")
    vectors = unit_embeddings(rows - rows.mean(axis=0) if centred else rows)
    return np.asarray(1 - vectors @ vectors.T)


def confusion_rates(source: Any, num_classes: int | None = None) -> Array:
    """Return the share of each true class (row) that is predicted as each class (column).

    A class without samples has no rates; its row is 0.
    """
    if isinstance(source, tuple):
        from .metrics import confusion_matrix

        if len(source) != 2:
            raise ValueError(f"a tuple must be (predictions, targets). Got {len(source)} entries.")
        source = confusion_matrix(*source, num_classes=num_classes)
    counts = to_floats(source, "confusion").astype(np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1]:
        raise ValueError(
            f"confusion must be a square matrix, rows the true classes. Got shape {counts.shape}."
        )
    check_entries_finite(counts, "confusion")
    if counts.size and counts.min() < 0:
        row, column = map(int, np.unravel_index(counts.argmin(), counts.shape))
        raise ValueError(f"confusion[{row}, {column}] is {counts[row, column]}; none is negative.")
    totals = counts.sum(axis=1, keepdims=True)
    return np.asarray(counts / np.where(totals > 0, totals, 1))  # 0/1, where 0/0 would be NaN


def random_distances(num_classes: int, seed: int = 0) -> Array:
    """Return a symmetric matrix of standard normal entries; the same seed gives the same."""
    upper = np.triu(np.random.default_rng(seed).standard_normal((num_classes, num_classes)), 1)
    return np.asarray(upper + upper.T)


def _count(source: Any) -> int:
    """Return the number of classes that a source describes."""
    if isinstance(source, int):
        return source
    if _is_module(source):
        from .heads import class_vectors

        return len(class_vectors(source))
    if isinstance(source, tuple):
        return len(confusion_rates(source))
    return len(to_floats(source, "source"))


def _is_module(value: object) -> bool:
    # Who has a module has imported torch; this file must not, as numpy alone is enough here.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)
