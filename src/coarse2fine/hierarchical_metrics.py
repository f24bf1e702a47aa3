"""Measures of hierarchical classification: sets of ancestors, rankings, calibration by level.

All functions take numpy arrays, torch tensors or lists, and return numpy values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._hierarchy.levels import to_class_indices
from ._scores import check_classes, check_k, mean, pair, ratio, scores_and_targets
from ._util.arrays import Array, IntArray, check_whole
from .hierarchy import Hierarchy
from .nodes import Nodes

_CELLS = 4_000_000  # of the scores that are ranked at once, so that memory stays small


def hierarchical_precision(predictions: Any, targets: Any, hierarchy: Hierarchy) -> float:
    """Return which share of the predicted nodes and their ancestors is right.

    Kiritchenko et al. (2006): a prediction stands for the set of itself and all nodes above
    it but the root, and so does a target. The sizes of the sets are added up over all samples
    and divided then. A cautious answer at an inner node claims less, and so loses less. NaN
    where nothing is claimed, as by answers at the root.

    Args:
        predictions: Nodes of any shape, see `Nodes`: classes, or also clusters.
        targets: The true nodes, in the same shape; usually classes.
        hierarchy: The levels.

    Examples:
        >>> hierarchy = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []})
        >>> cat, dog, pet = hierarchy.nodes.encode(["cat", "dog", "pet"])
        >>> hierarchical_precision([dog, pet], [cat, cat], hierarchy)
        0.6666666666666666
    """
    common, predicted, _ = set_sizes(predictions, targets, hierarchy)
    return ratio(common, predicted)


def hierarchical_recall(predictions: Any, targets: Any, hierarchy: Hierarchy) -> float:
    """Return which share of the true nodes and their ancestors is predicted.

    See `hierarchical_precision` for the sets. An answer at an inner node misses what is below.

    Args:
        predictions: Nodes of any shape, see `Nodes`: classes, or also clusters.
        targets: The true nodes, in the same shape; usually classes.
        hierarchy: The levels.

    Examples:
        >>> hierarchy = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []})
        >>> cat, dog, pet = hierarchy.nodes.encode(["cat", "dog", "pet"])
        >>> hierarchical_recall([dog, pet], [cat, cat], hierarchy)
        0.5
    """
    common, _, wanted = set_sizes(predictions, targets, hierarchy)
    return ratio(common, wanted)


def hierarchical_f1(predictions: Any, targets: Any, hierarchy: Hierarchy) -> float:
    """Return the harmonic mean of `hierarchical_precision` and `hierarchical_recall`.

    Args:
        predictions: Nodes of any shape, see `Nodes`: classes, or also clusters.
        targets: The true nodes, in the same shape; usually classes.
        hierarchy: The levels.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> hierarchical_f1([0, 1, 1, 3], [0, 0, 2, 3], hierarchy)
        0.625
    """
    common, predicted, wanted = set_sizes(predictions, targets, hierarchy)
    # The same as 2PR / (P + R), and defined where nothing is claimed.
    return ratio(2 * common, predicted + wanted)


def set_sizes(predictions: Any, targets: Any, hierarchy: Hierarchy) -> tuple[int, int, int]:
    """Return the total sizes of the sets of nodes: in common, predicted and true.

    Args:
        predictions: Nodes of any shape.
        targets: The true nodes, in the same shape.
        hierarchy: The levels.
    """
    predictions, targets = pair(predictions, targets)
    paths = node_paths(hierarchy.nodes)
    found = paths[to_class_indices(predictions, len(paths), "predictions")]
    wanted = paths[to_class_indices(targets, len(paths), "targets")]
    common = (found == wanted) & (wanted >= 0)
    return int(common.sum()), int((found >= 0).sum()), int((wanted >= 0).sum())


def node_paths(nodes: Nodes) -> IntArray:
    """Return each node's path down from the root, which it leaves out, filled up with -1.

    So two nodes have those ancestors in common at which their rows agree.
    """
    upwards = nodes.upwards[:, :-1]
    # The root, which fills the ends of the rows, goes to the front; the rest keeps its order.
    depths = (upwards != nodes.root).sum(axis=1)
    places = depths[:, None] - 1 - np.arange(upwards.shape[1])
    downwards = np.take_along_axis(upwards, np.maximum(places, 0), axis=1)
    return np.where(places >= 0, downwards, -1)


def hops(scores: Any, targets: Any, hierarchy: Hierarchy, k: int | None = None) -> float:
    """Return the mean Hierarchically Ordered Preference Score (Sani and Anand, 2025).

    Whether the classes are ranked as the hierarchy would rank them: the target first, then
    the classes of its lowest cluster, and so on. 1 is that order; 0 is its reverse, or worse. A
    place counts the more the earlier it is: the weight of the first is 1, it falls by half with
    each step up the hierarchy, and evenly between the steps. This follows the authors' code
    (github.com/Depanshu-Sani/Hier-COS); of equal scores the first class counts as higher.

    Args:
        scores: Logits or probabilities of shape (N, K).
        targets: The true class indices of shape (N).
        hierarchy: The levels.
        k: Look at the `k` best classes only, against their reverse; 1 is the accuracy.
            Defaults to None: at all.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> hops([[0.5, 0.3, 0.1, 0.1], [0.1, 0.1, 0.3, 0.5]], [0, 0], hierarchy)
        0.5
    """
    return mean(hops_of_each(scores, targets, hierarchy, k))


def hops_of_each(scores: Any, targets: Any, hierarchy: Hierarchy, k: int | None) -> Array:
    """Return the score of each sample, of which `hops` is the mean."""
    scores, targets = scores_and_targets(scores, targets)
    check_classes(scores.shape[1], hierarchy)
    k = scores.shape[1] if k is None else check_whole(k, "k")
    check_k(k, scores.shape[1])
    rows = max(1, _CELLS // scores.shape[1])
    starts = range(0, len(scores), rows)
    parts = [_hops(scores[i : i + rows], targets[i : i + rows], hierarchy, k) for i in starts]
    return np.concatenate([np.empty(0), *parts])


def _hops(scores: Array, targets: IntArray, hierarchy: Hierarchy, k: int) -> Array:
    """Return the score of each sample."""
    ranks = _preferences(targets, hierarchy)
    order = np.argsort(-scores, axis=1, kind="stable")
    found = np.take_along_axis(ranks, order, axis=1)[:, :k]
    if k == 1:  # the first place has no reverse
        return np.asarray(found[:, 0] == 0, np.float64)
    ideal = np.sort(ranks, axis=1)
    weights, ideal = _place_weights(ideal)[:, :k], ideal[:, :k]
    lost = (weights * np.abs(found - ideal)).sum(axis=1)
    worst = (weights * np.abs(ideal[:, ::-1] - ideal)).sum(axis=1)
    # The k best may be further off than the reverse of the best k.
    return np.asarray(np.clip(1 - lost / worst, 0, 1))


def _preferences(targets: IntArray, hierarchy: Hierarchy) -> IntArray:
    """Return the rank of each class for each target, 0 for itself; near classes come first.

    Heights at which a target has no class are left out, so that ranks have no gaps.
    """
    heights = np.zeros((len(targets), hierarchy.num_classes), np.int64)
    for level in hierarchy.levels:
        heights += level[targets][:, None] != level
    steps = np.arange(len(hierarchy.levels) + 1)
    is_there = np.stack([(heights == step).any(axis=1) for step in steps], axis=1)
    return np.take_along_axis(is_there.cumsum(axis=1) - 1, heights, axis=1)


def _place_weights(ideal: IntArray) -> Array:
    """Return the weight of each place, from ranks in ascending order.

    Rank r begins with the weight 2^-r, from which it falls evenly towards that of the next
    rank, the last towards 0.
    """
    places = np.arange(ideal.shape[1])
    is_first = np.diff(ideal, axis=1, prepend=-1) > 0
    begins = np.maximum.accumulate(np.where(is_first, places, 0), axis=1)
    # As many places as the rank has: from where it begins to where the next one does.
    is_last = np.diff(ideal, axis=1, append=ideal.max(axis=1, keepdims=True, initial=0) + 1) > 0
    ends = np.where(is_last, places, ideal.shape[1])[:, ::-1]
    ends = np.minimum.accumulate(ends, axis=1)[:, ::-1] + 1
    falls = np.where(ideal == ideal[:, -1:], 1.0, 0.5) * (places - begins) / (ends - begins)
    return np.asarray(2.0**-ideal * (1 - falls))


def level_calibration_errors(
    scores: Any, targets: Any, hierarchy: Hierarchy, bins: int = 15
) -> Array:
    """Return the expected calibration error at each level, coarsest first.

    The confidence at a level is the probability of the cluster of largest probability. Samples
    are divided into bins of equal width by it; the error is the mean over the samples of how
    far the mean confidence of their bin is from its accuracy (Guo et al., 2017).

    Args:
        scores: Of shape (N, K): probabilities, whose rows add up to 1, or else logits.
        targets: The true class indices of shape (N).
        hierarchy: The levels.
        bins: How many. Defaults to 15.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> scores = [[0.5, 0.5, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]]
        >>> level_calibration_errors(scores, [0, 1], hierarchy)
        array([0., 0.])
    """
    gaps = np.abs(calibration_gaps(scores, targets, hierarchy, check_bins(bins)))
    return np.array([ratio(float(of_level.sum()), len(scores)) for of_level in gaps])


def check_bins(bins: int) -> int:
    """Return how many bins there are, at least one."""
    if check_whole(bins, "bins") < 1:
        raise ValueError(f"bins must be at least 1. Got {bins}.")
    return int(bins)


def calibration_gaps(scores: Any, targets: Any, hierarchy: Hierarchy, bins: int) -> Array:
    """Return for each level and bin by how much confidences exceed hits, summed over samples.

    Mean confidence and accuracy of a bin have the same count below, which the bin's share of the
    samples cancels. So sums of batches may be added.
    """
    scores, targets = scores_and_targets(scores, targets)
    check_classes(scores.shape[1], hierarchy)
    nodes = hierarchy.nodes.probabilities(to_probabilities(scores))
    gaps = []
    for level, of_level in zip(hierarchy.levels, hierarchy.nodes.of_level, strict=True):
        confidences, is_right = _confidences(nodes[:, of_level], level[targets])
        places = np.minimum((confidences * bins).astype(np.int64), bins - 1)
        gaps.append(np.bincount(places, weights=confidences - is_right, minlength=bins))
    return np.array(gaps)


def to_probabilities(scores: Array) -> Array:
    """Return probabilities in float64: rows that are some already, or the softmax of logits."""
    scores = scores.astype(np.float64)
    # Half precision, and numbers that were rounded for a file, add up to 1 only nearly.
    if (scores >= 0).all() and np.allclose(scores.sum(axis=1), 1, rtol=0, atol=1e-2):
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _confidences(clusters: Array, targets: IntArray) -> tuple[Array, Array]:
    """Return the largest probability of each row, and whether it is the target's."""
    found = clusters.argmax(axis=1)
    # Sums of probabilities may exceed 1 by rounding.
    confidences = np.take_along_axis(clusters, found[:, None], axis=1)[:, 0].clip(0, 1)
    return confidences, found == targets
