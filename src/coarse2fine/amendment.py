"""Better decisions from trained models, by what a hierarchy says of their mistakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._logits import blocks, check_logits, log_softmax
from ._util.arrays import Array, IntArray
from .hierarchy import Hierarchy
from .nodes import Nodes


def risk_minimising_predictions(logits: Any, hierarchy: Hierarchy) -> IntArray:
    """Return for each sample the class whose mistakes are expected to be the least severe.

    The cost of a mistake is its height, see `mistake_heights`. Where several classes of one
    cluster share most of the probability, that may be one of them though a class of another
    cluster is the most probable by itself. This is conditional risk minimisation (Karthik et
    al., "No Cost Likelihood Manipulation at Test Time", 2021).

    Args:
        logits: Of shape (N, K).
        hierarchy: Of the K classes.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 0, 1]])
        >>> logits = np.log([[0.3, 0.2, 0.1, 0.4]])
        >>> risk_minimising_predictions(logits, hierarchy)
        array([0])
    """
    checked = check_logits(logits, hierarchy.num_classes)
    nodes = hierarchy.nodes
    parts = [
        _agreements(log_softmax(checked[rows]), hierarchy, nodes).argmax(axis=1)
        for rows in blocks(len(checked), len(nodes))
    ]
    return np.concatenate(parts)


def hierarchical_ensemble(logits_by_level: Sequence[Any], hierarchy: Hierarchy) -> Array:
    """Return probabilities of the classes, (N, K), amended by models of coarser levels.

    The probability of a class is multiplied by those of its clusters according to the other
    models, and divided by the sum over the classes. With one coarse level, that of the classes'
    parents, this is the hierarchical ensemble (Jain et al., "Test-Time Amendment with a Coarse
    Classifier", 2023).

    Args:
        logits_by_level: For each level of the hierarchy, the coarsest first and the classes
            last, logits of shape (N, clusters of the level); None for a coarse level without
            a model.
        hierarchy: Of the K classes.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1]])
        >>> coarse, fine = np.log([[0.2, 0.8]]), np.log([[0.5, 0.1, 0.4]])
        >>> hierarchical_ensemble([coarse, fine], hierarchy).round(3)
        array([[0.227, 0.045, 0.727]])
    """
    counts = hierarchy.num_clusters
    if len(logits_by_level) != len(counts) or logits_by_level[-1] is None:
        raise ValueError(
            f"logits_by_level must have {len(counts)} entries, one for each level; those of the "
            f"classes come last and cannot be None. Got {len(logits_by_level)}."
        )
    found = [
        log_softmax(check_logits(given, counts[at], f"logits_by_level[{at}]", "clusters"))[:, level]
        for at, (given, level) in enumerate(zip(logits_by_level, hierarchy.levels, strict=True))
        if given is not None
    ]
    rows = {len(part) for part in found}
    if len(rows) > 1:
        raise ValueError(
            f"all of logits_by_level must have the same number of rows. Got {sorted(rows)}."
        )
    return np.asarray(np.exp(log_softmax(np.sum(found, axis=0))))


def _agreements(log_probabilities: Array, hierarchy: Hierarchy, nodes: Nodes) -> Array:
    """Return at how many levels each class is expected to agree with the target.

    A mistake is as high as there are levels at which it disagrees, so the least expected height
    is the greatest expected agreement, and no K×K matrix of heights is needed.
    """
    probabilities = nodes.probabilities(np.exp(log_probabilities))
    agreements = np.zeros_like(log_probabilities)
    for level, of_level in zip(hierarchy.levels, nodes.of_level, strict=True):
        agreements += probabilities[:, of_level[level]]
    return agreements
