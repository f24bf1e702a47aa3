"""How good a model is on a split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from torch import Tensor, nn

from ..data import Batches
from ..functional import coarse_log_softmax


@dataclass(frozen=True)
class Scores:
    """How good a model is on a split.

    Args:
        loss: The mean cross-entropy on the model's outputs.
        accuracy: On the target classes; None where the outputs are coarser than those.
        level_accuracy: At the level in force.
        predictions: The most probable output for each sample.
    """

    loss: float
    accuracy: float | None
    level_accuracy: float
    predictions: Tensor


@torch.no_grad()
def evaluate(
    fabric: Fabric, model: nn.Module, batches: Batches, clusters: Tensor | None = None
) -> Scores:
    """Return how good a model is on a split, each process doing its part.

    Args:
        fabric: Lightning Fabric, launched.
        model: As Fabric set it up; left in evaluation mode.
        batches: Of the split.
        clusters: Class → cluster at the level in force. Where the model has one output a
            class, a cluster is as probable as its classes together; where it has one a
            cluster, the targets are coarsened. Defaults to None: the classes themselves.
    """
    model.eval()
    count = len(batches.split)
    sums = torch.zeros(3, dtype=torch.float64, device=fabric.device)  # loss, hits, level hits
    predictions = torch.zeros(count, dtype=torch.int64, device=fabric.device)
    is_coarse = False
    for batch in batches.in_order():
        logits, targets = model(batch.inputs).float(), batch.targets
        if not batch.share:  # nothing to do, but all processes call the model equally often
            continue
        found = logits.argmax(1)
        groups, group_found = targets, found
        if clusters is not None:
            groups = clusters[targets]
            is_coarse = logits.shape[1] < len(clusters)
            if not is_coarse:  # every class has its cluster's probability
                group_found = clusters[coarse_log_softmax(logits, clusters).argmax(1)]
        loss = F.cross_entropy(logits, groups if is_coarse else targets, reduction="sum")
        hits, level_hits = found == targets, group_found == groups
        sums += torch.stack([loss, hits.sum(), level_hits.sum()])
        predictions[batch.rows.to(fabric.device)] = found
    mean_loss, accuracy, level_accuracy = (sum_over(fabric, sums) / max(count, 1)).tolist()
    predictions = sum_over(fabric, predictions).cpu()
    return Scores(mean_loss, None if is_coarse else accuracy, level_accuracy, predictions)


def sum_over(fabric: Fabric, tensor: Tensor) -> Tensor:
    """Return the sum of a tensor over all processes."""
    total: Any = fabric.all_reduce(tensor, reduce_op="sum")
    return torch.as_tensor(total)
