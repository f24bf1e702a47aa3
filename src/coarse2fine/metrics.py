"""How good predictions are: at every level, and how bad the mistakes are.

All functions take numpy arrays, torch tensors or lists, and return numpy values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._hierarchy.levels import to_class_indices
from ._scores import check_classes, check_k, check_scores, mean, pair, ratio, scores_and_targets
from ._util.arrays import Array, IntArray, to_numpy
from .hierarchy import Hierarchy
from .nodes import Nodes


def confusion_matrix(predictions: Any, targets: Any, num_classes: int | None = None) -> IntArray:
    """Count how often each true class (row) was predicted as each class (column).

    Args:
        predictions: Class indices of any shape.
        targets: The true class indices, in the same shape.
        num_classes: K. Defaults to None: one more than the largest index.

    Examples:
        >>> confusion_matrix([0, 1, 1], [0, 0, 1])
        array([[1, 1],
               [0, 1]])
    """
    predictions, targets = pair(predictions, targets)
    if num_classes is None:
        num_classes = int(max(predictions.max(initial=-1), targets.max(initial=-1))) + 1
    predictions = to_class_indices(predictions, num_classes, "predictions")
    targets = to_class_indices(targets, num_classes, "targets")
    # One number for each cell of the matrix, so that a single pass counts them all.
    cells = np.bincount(targets * num_classes + predictions, minlength=num_classes**2)
    return cells.reshape(num_classes, num_classes)


def balanced_accuracy(predictions: Any, targets: Any) -> float:
    """Return the mean over the classes of the share of each that is predicted right.

    Every class counts the same, however many samples it has; classes without any do not count.
    It is scikit-learn's ``balanced_accuracy_score``.

    Args:
        predictions: Class indices of any shape.
        targets: The true class indices, in the same shape.

    Examples:
        >>> balanced_accuracy([0, 0, 0, 0], [0, 0, 0, 1])
        0.5
    """
    predictions, targets = pair(predictions, targets)
    targets = to_class_indices(targets, int(targets.max(initial=-1)) + 1, "targets")
    counts = np.bincount(targets)
    hits = np.bincount(targets[predictions == targets], minlength=len(counts))
    present = counts > 0
    return mean(hits[present] / counts[present])


def top_k_accuracy(scores: Any, targets: Any, k: int = 1) -> float:
    """Return the share of targets among the `k` classes of highest score.

    A class of equal score counts as higher when its index is lower.

    Args:
        scores: Logits or probabilities of shape (N, K).
        targets: The true class indices of shape (N).
        k: Defaults to 1.

    Examples:
        >>> top_k_accuracy([[0.5, 0.3, 0.2], [0.1, 0.6, 0.3]], [1, 1], k=2)
        1.0
    """
    scores, targets = scores_and_targets(scores, targets)
    check_k(k, scores.shape[1])
    if not len(targets):
        return float("nan")
    # How many classes are ahead of the target, which needs no sorting, and where ties are
    # decided the same way for every k; argpartition would pick any of equals.
    own = np.take_along_axis(scores, targets[:, None], axis=1)
    is_ahead = scores > own
    is_ahead |= (scores == own) & (np.arange(scores.shape[1]) < targets[:, None])
    return float((is_ahead.sum(axis=1) < k).mean())


def level_accuracies(predictions: Any, targets: Any, hierarchy: Hierarchy) -> Array:
    """Return the accuracy at each level of the hierarchy, coarsest first.

    Args:
        predictions: Class indices of shape (N), which count as right at a level when they
            lie in the target's cluster; or logits of shape (N, K), whose prediction at a
            level is the cluster of largest total probability.
        targets: The true class indices of shape (N), or nodes: at levels finer than its node a
            sample does not count, and the accuracy of none is NaN.
        hierarchy: The levels.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> level_accuracies([0, 1, 1, 3], [0, 0, 2, 3], hierarchy)
        array([0.75, 0.5 ])
        >>> hierarchy.nodes.names[5]
        'level 0 cluster 0'
        >>> level_accuracies([0, 1, 1, 3], [0, 5, 2, 3], hierarchy)
        array([0.75      , 0.66666667])
    """
    hits, counts = level_hits(predictions, targets, hierarchy, hierarchy.nodes)
    return np.array([ratio(*pair) for pair in zip(hits, counts, strict=True)])


def level_hits(
    predictions: Any, targets: Any, hierarchy: Hierarchy, nodes: Nodes
) -> tuple[IntArray, IntArray]:
    """Return for each level how many predictions are right, and of how many that can be told.

    Args:
        predictions: See `level_accuracies`.
        targets: The true nodes.
        hierarchy: The levels.
        nodes: What targets are, of this hierarchy or of another one of the same classes.
    """
    wanted = to_class_indices(to_numpy(targets), len(nodes), "targets")
    is_logits = to_numpy(predictions).ndim == 2
    found = check_scores(predictions) if is_logits else to_numpy(predictions)
    if is_logits:
        check_classes(found.shape[1], hierarchy)
    else:
        found = to_class_indices(found, hierarchy.num_classes, "predictions")
    hits, counts = [], []
    for level in hierarchy.levels:
        clusters = _cluster_predictions(found, level) if is_logits else level[found]
        clusters, own = pair(clusters, nodes.within(level)[wanted])
        hits.append(np.count_nonzero(clusters == own))
        counts.append(np.count_nonzero(own >= 0))
    return np.array(hits), np.array(counts)


def mistake_heights(predictions: Any, targets: Any, hierarchy: Hierarchy) -> IntArray:
    """Return how far up the hierarchy each prediction first agrees with its target.

    0 is right, 1 a wrong class of the right lowest cluster, and so on up to the number of
    levels, where not even the coarsest cluster is right.
    """
    predictions, targets = (
        to_class_indices(found, hierarchy.num_classes, f"heights are of classes, so {what}")
        for found, what in zip(pair(predictions, targets), ("predictions", "targets"), strict=True)
    )
    # Levels are nested: prediction and target disagree at the finest levels and agree from some
    # level upwards, so the number of levels at which they disagree is the height.
    heights = np.zeros(predictions.shape, np.int64)
    for level in hierarchy.levels:
        heights += level[predictions] != level[targets]
    return heights


def mistake_severity(predictions: Any, targets: Any, hierarchy: Hierarchy) -> float:
    """Return the mean height of the mistakes; NaN where there is none.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> mistake_severity([0, 1, 1, 3], [0, 0, 2, 3], hierarchy)
        1.5
    """
    heights = mistake_heights(predictions, targets, hierarchy)
    return mean(heights[heights > 0])


def mean_height(predictions: Any, targets: Any, hierarchy: Hierarchy) -> float:
    """Return the mean height over all samples, right ones included; NaN where there is none.

    Fewer mistakes lower it, and so do milder ones. `mistake_severity`, the mean over the
    mistakes alone, may get better just because many mild mistakes are added.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> mean_height([0, 1, 1, 3], [0, 0, 2, 3], hierarchy)
        0.75
    """
    return mean(mistake_heights(predictions, targets, hierarchy))


def height_distribution(predictions: Any, targets: Any, hierarchy: Hierarchy) -> Array:
    """Return the share of samples at each height, from 0 to the number of levels.

    The heights are those of `mistake_heights`: the first share is the accuracy. Both means,
    `mean_height` and `mistake_severity`, follow from it.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> height_distribution([0, 1, 1, 3], [0, 0, 2, 3], hierarchy)
        array([0.5 , 0.25, 0.25])
    """
    heights = mistake_heights(predictions, targets, hierarchy)
    counts = np.bincount(heights, minlength=len(hierarchy.levels) + 1)
    return counts / len(heights) if len(heights) else np.full(len(counts), np.nan)


def _cluster_predictions(scores: Array, level: IntArray) -> IntArray:
    """Return the cluster of largest total probability for each row of logits."""
    order = np.argsort(level, kind="stable")
    starts = np.searchsorted(level[order], np.arange(level.max() + 1))
    # Up to a factor for each row, which does not change the largest. Its largest entry is
    # exp(0), so nothing overflows.
    probability = np.exp(scores - scores.max(axis=1, keepdims=True))
    totals = np.add.reduceat(probability[:, order], starts, axis=1)
    return np.asarray(totals.argmax(axis=1))
