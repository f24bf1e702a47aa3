"""Neural-backed decision trees (Wan et al., 2020): a binary tree in the loss and at inference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
import torch.nn.functional as F
from scipy.cluster.hierarchy import linkage
from torch import Tensor, nn

from ..data.batches import Batch
from .base import Method, Plan


class BinaryTree(nn.Module):
    """A binary tree over K classes, which turns logits into decisions along its paths.

    A node's logit is the mean of its classes' logits. At each of the K - 1 forks a softmax over
    the two children decides. All forks are computed at once, by matrix products: paths differ
    in length, and a walk down the tree for each sample would be a loop in Python.

    Args:
        class_vectors: The final layer's weight, one row per class; the tree is built from it
            by Ward's agglomerative clustering.

    Attributes:
        members: (2K - 2, K). Node → weight of each class in its mean. The children of fork i,
            in the order in which Ward's method finds them, are rows 2i and 2i + 1.
    """

    members: Tensor

    def __init__(self, class_vectors: Tensor) -> None:
        super().__init__()
        # Row i of `merges` joins two nodes to node K + i; the classes are nodes 0 to K - 1.
        merges = linkage(class_vectors.double().cpu().numpy(), method="ward")
        sets = list(torch.eye(len(class_vectors)))
        for left, right in merges[:, :2].astype(int):
            sets.append(sets[left] + sets[right])
        children = merges[:, :2].astype(int).ravel().tolist()
        paths = torch.stack([sets[node] for node in children])
        self.register_buffer("members", paths / paths.sum(1, keepdim=True))

    @property
    def paths(self) -> Tensor:
        """(2K - 2, K). 1 where a class lies below a node, else 0."""
        return (self.members > 0).float()

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return each class's log-probability, the sum over the forks on its path."""
        # In logarithms, as products of many probabilities would underflow.
        return self._forks(logits).log_softmax(2).flatten(1) @ self.paths

    def soft(self, logits: Tensor) -> Tensor:
        """Return the classes of the most probable paths."""
        return self.log_probabilities(logits).argmax(1)

    def hard(self, logits: Tensor) -> Tensor:
        """Return the classes that a descent by the better child at each fork ends at."""
        forks = self._forks(logits)
        goes_left = forks[:, :, 0] >= forks[:, :, 1]
        refused = torch.stack([~goes_left, goes_left], 2).flatten(1).float()
        # Exactly one class has no refused node on its path: the one the descent ends at.
        return (refused @ self.paths).argmin(1)

    def _forks(self, logits: Tensor) -> Tensor:
        """Return the logits (N, K - 1, 2) of every fork's children."""
        return (logits.float() @ self.members.T).reshape(len(logits), -1, 2)


class NBDT(Method):
    """The sum of two cross-entropies: of the logits, and of the tree's path probabilities.

    Predictions are those of the tree by soft inference; hard inference is reported beside it.

    Args:
        plan: What every method is given.
        weight: ω, the weight of the tree's loss. Defaults to 1.0.
    """

    needs = frozenset({"class_vectors"})
    weighs_classes = True
    least: ClassVar[Mapping[str, float]] = {"weight": 0}

    def __init__(self, plan: Plan, *, weight: float = 1.0) -> None:
        super().__init__(plan)
        if plan.class_vectors is None:
            raise ValueError("this method needs the final layer of a trained model.")
        if len(plan.class_vectors) != plan.num_classes:
            raise ValueError(
                f"the tree would have {len(plan.class_vectors)} classes, the data "
                f"{plan.num_classes}."
            )
        self.stages = plan.single_stage
        self.weight = weight
        self.tree = BinaryTree(torch.as_tensor(plan.class_vectors))

    def forward(self, logits: Tensor, batch: Batch) -> Tensor:
        """Return the sum of both mean losses."""
        # nll_loss, as these are log-probabilities; the authors' code puts them through another
        # softmax, which flattens them.
        log_paths, how = self.tree.log_probabilities(logits), self.reduction
        paths = F.nll_loss(log_paths, batch.targets, reduction=how)
        plain = F.cross_entropy(logits, batch.targets, reduction=how)
        return self.weighed(plain + self.weight * paths, batch)

    def decide(self, logits: Tensor) -> dict[str, Tensor]:
        """Return the tree's predictions, by soft and by hard inference."""
        return {"soft": self.tree.soft(logits), "hard": self.tree.hard(logits)}
