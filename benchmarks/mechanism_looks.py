"""Looks at a classifier: what it has learned of classes and of clusters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from coarse2fine import Hierarchy
from coarse2fine.functional import coarse_log_softmax

Samples = tuple[Tensor, Tensor]  # inputs and classes


@dataclass
class Look:
    """A network as it is, at the level in force and at the last coarse one.

    Args:
        epoch: After which it was looked at.
        level: That is trained.
        train_loss: At the level, without dropout.
        class_loss: The same at the classes.
        train_accuracy: At the level, of samples trained on.
        val_accuracy: At each level, of samples that were not.
        class_spread: How much of the features' variance within clusters is between classes, of
            samples trained on.
        val_class_spread: The same of samples that were not.
        dimensions: In how many directions the means of the classes differ, (Σ λ)² / Σ λ² of the
            eigenvalues of their covariance.
        row_cosine: The mean cosine of two rows of the final layer in one cluster.
        row_norm: The mean norm of a row.
        pull: The norm of the gradient of the loss at the last coarse level, in the embeddings
            or the first layer that is trained.
        head_gradient: The root mean square of the gradient of the class loss in the weights of
            the final layer, batch by batch.
        head_scale: The root of the mean second moment that Adam keeps of these weights, by
            which it divides their steps.
    """

    epoch: int
    level: int
    train_loss: float
    class_loss: float
    train_accuracy: float
    val_accuracy: list[float]
    class_spread: float
    val_class_spread: float
    dimensions: float
    row_cosine: float
    row_norm: float
    pull: float
    head_gradient: float
    head_scale: float


def shortened(inputs: Tensor) -> Tensor:
    """Return tokens without columns that are padding alone, and anything else as it is."""
    if inputs.is_floating_point():
        return inputs
    return inputs[:, : max(1, int((inputs != 0).sum(1).max()))]


@torch.no_grad()
def outputs(network: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logits of samples, and the features that the final layer makes them from."""
    features: list[Tensor] = []
    hook = network.head.register_forward_hook(lambda _, given, __: features.append(given[0]))
    network.eval()
    logits = [network(shortened(part)) for part in inputs.split(64)]
    hook.remove()
    return torch.cat(logits), torch.cat(features)


def level_loss(logits: Tensor, targets: Tensor, level: np.ndarray) -> Tensor:
    return F.nll_loss(coarse_log_softmax(logits, torch.tensor(level)), targets)


def accuracy_at(logits: Tensor, targets: Tensor, level: np.ndarray) -> float:
    clusters = torch.tensor(level)
    found = clusters[coarse_log_softmax(logits, clusters).argmax(1)]
    return float((found == clusters[targets]).float().mean())


def group_means(features: Tensor, groups: Tensor) -> Tensor:
    sums = torch.zeros(int(groups.max()) + 1, features.shape[1]).index_add_(0, groups, features)
    return sums / torch.bincount(groups).clamp(min=1)[:, None]


def spread(features: Tensor, groups: Tensor) -> float:
    """Return the mean squared distance to the mean of the group."""
    means = group_means(features, groups)
    return float((features - means[groups]).square().sum(1).mean())


def dimensions(means: Tensor) -> float:
    """Return the participation ratio of the principal directions of vectors."""
    variances = torch.linalg.svdvals(means - means.mean(0)).square()
    return float(variances.sum() ** 2 / variances.square().sum())


def row_cosine(rows: Tensor, clusters: Tensor) -> float:
    """Return the mean cosine of two rows in one cluster, from the mean of all rows."""
    unit = F.normalize(rows - rows.mean(0), dim=1)
    pairs = (clusters[:, None] == clusters) & ~torch.eye(len(rows), dtype=torch.bool)
    return float((unit @ unit.T)[pairs].mean())


def class_spread(features: Tensor, targets: Tensor, clusters: Tensor) -> float:
    return 1 - spread(features, targets) / spread(features, clusters[targets])


def head_gradient(network: Any, samples: Samples, batch: int) -> float:
    """Return the root mean square of the class loss's gradient in the final layer's weights."""
    inputs, targets = samples
    order, squares = torch.randperm(len(targets), generator=torch.Generator().manual_seed(0)), []
    for rows in order.split(batch):
        loss = F.cross_entropy(network(shortened(inputs[rows])), targets[rows])
        (gradient,) = torch.autograd.grad(loss, network.head.weight)
        squares.append(float(gradient.square().mean()))
    return float(np.mean(squares) ** 0.5)


def head_scale(optimiser: torch.optim.Optimizer, network: Any) -> float:
    """Return the root of the mean second moment of the final layer's weights, bias corrected."""
    state, beta = optimiser.state[network.head.weight], optimiser.defaults["betas"][1]
    return float((state["exp_avg_sq"].mean() / (1 - beta ** float(state["step"]))).sqrt())


def look(
    network: Any,
    optimiser: torch.optim.Optimizer,
    train: Samples,
    val: Samples,
    hierarchy: Hierarchy,
    epoch: int,
    level: int,
    batch: int,
) -> Look:
    """Look at a network in evaluation mode."""
    (inputs, targets), (val_inputs, val_targets) = train, val
    logits, features = outputs(network, inputs)
    val_logits, val_features = outputs(network, val_inputs)
    clusters, rows = torch.tensor(hierarchy.levels[-2]), network.head.weight.detach()
    few = slice(None, None, 3)  # enough for a gradient
    loss = level_loss(network(inputs[few]), targets[few], hierarchy.levels[-2])
    (gradient,) = torch.autograd.grad(loss, next(network.parameters()))
    return Look(
        epoch,
        level,
        float(level_loss(logits, targets, hierarchy.levels[level])),
        float(F.cross_entropy(logits, targets)),
        accuracy_at(logits, targets, hierarchy.levels[level]),
        [accuracy_at(val_logits, val_targets, one) for one in hierarchy.levels],
        class_spread(features, targets, clusters),
        class_spread(val_features, val_targets, clusters),
        dimensions(group_means(features, targets)),
        row_cosine(rows, clusters),
        float(rows.norm(dim=1).mean()),
        float(gradient.norm()),
        head_gradient(network, train, batch),
        head_scale(optimiser, network),
    )
