"""Labels at any level by their definition, sample by sample, for the tests of all adapters."""

import numpy as np
import torch


def mixed(classes, hierarchy):
    """Two of four labels as they are, one as its node of the second level, one of the coarsest.

    The last one is not known at all.
    """
    nodes, labels = hierarchy.nodes, torch.as_tensor(classes).clone()
    for index, label in enumerate(labels.tolist()):
        level = {1: 1, 3: 0}.get(index % 4)
        if level is not None:
            labels[index] = int(nodes.of_level[level][hierarchy.levels[level][label]])
    labels[-1] = nodes.root
    return labels


def masks(labels, hierarchy):
    """The same labels as rows of candidates."""
    rows = [np.isin(np.arange(hierarchy.num_classes), c) for c in candidates(labels, hierarchy)]
    return torch.from_numpy(np.stack(rows))


def candidates(labels, hierarchy):
    """The classes that each label leaves open."""
    if labels.dtype == torch.bool:
        return [row.nonzero()[:, 0].tolist() for row in labels]
    return [hierarchy.nodes.classes(node).tolist() for node in labels.tolist()]


def losses_by_hand(logits, labels, hierarchy, level):
    """Minus the logarithm of the probability of all classes in the clusters of the candidates."""
    clusters, found = hierarchy.levels[level], []
    for row, classes in zip(logits.softmax(1), candidates(labels, hierarchy), strict=True):
        alike = np.isin(clusters, clusters[classes])
        found.append(-row[torch.from_numpy(alike)].sum().log())
    return torch.stack(found)


def accuracy_by_hand(logits, labels, hierarchy, level, weights=None):
    """The share of the right clusters among the labels that say which one is."""
    clusters = hierarchy.levels[level]
    mass = logits.detach().softmax(1).numpy() @ np.eye(clusters.max() + 1)[clusters]
    open_ = [set(clusters[classes].tolist()) for classes in candidates(labels, hierarchy)]
    hits = [{int(best)} == left for best, left in zip(mass.argmax(1), open_, strict=True)]
    weights = np.ones(len(hits)) if weights is None else np.asarray(weights)
    return float(weights[hits].sum() / weights[[len(left) == 1 for left in open_]].sum())
