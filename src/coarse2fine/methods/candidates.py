"""Labels that are nodes of a tree, for a loss: as the candidate classes that they leave."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .._candidates import Spans, node_slices
from .._level_loss import level_cross_entropy
from .._loss_checks import Options
from ..nodes import Nodes


class Candidates(nn.Module):
    """Turns labels that are nodes into masks of the classes that each leaves.

    Masks, unlike nodes, mean the same to a loss with any hierarchy over these classes.

    Args:
        nodes: What labels are numbered by.

    Examples:
        >>> from coarse2fine import Hierarchy
        >>> candidates = Candidates(Hierarchy.from_levels([[0, 0, 1, 1]]).nodes)
        >>> candidates(torch.tensor([2, 5])).int()
        tensor([[0, 0, 1, 0],
                [1, 1, 0, 0]], dtype=torch.int32)
    """

    places: Tensor
    slices: Tensor

    def __init__(self, nodes: Nodes) -> None:
        super().__init__()
        places, slices = node_slices(nodes)
        # Not saved, as they are made from the run's own samples.
        self.register_buffer("places", places, persistent=False)
        self.register_buffer("slices", slices, persistent=False)

    def forward(self, labels: Tensor) -> Tensor:
        """Return which classes (N, K) are candidates for each label (N)."""
        like = self.places.expand(len(labels), -1)
        return ~Spans(self.places, self.slices, self.slices).outside(labels, like)

    def outputs(self, labels: Tensor, clusters: Tensor, count: int) -> Tensor:
        """Return which clusters (N, count) have a candidate for each label (N).

        Args:
            labels: Nodes.
            clusters: The cluster of each class.
            count: How many clusters there are.
        """
        mask = self.forward(labels)
        touched = torch.zeros(len(mask), count, dtype=torch.int32, device=mask.device)
        return touched.index_add_(1, clusters, mask.int()) > 0


def candidate_loss(logits: Tensor, mask: Tensor, reduction: str) -> Tensor:
    """Return the negative log of the candidates' summed probability.

    Args:
        logits: Of shape (N, K).
        mask: Which of the K outputs are candidates.
        reduction: As in `coarse_cross_entropy`.
    """
    outputs = torch.arange(mask.shape[1], device=mask.device)
    return level_cross_entropy(logits, mask, outputs, None, Options(None, -100, reduction, 0.0))
