"""How often the most probable cluster is the right one, counted batch by batch."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ._marginal import along_classes
from .functional import coarse_log_softmax
from .nodes import Nodes


class Tally:
    """Counts hits at one level over the batches that are noted.

    Targets that do not say which cluster they are in do not count.

    Args:
        clusters: The cluster of each class, on the device that the processes share numbers on.
        nodes: What targets may be. Defaults to None: classes.
    """

    def __init__(self, clusters: Tensor, nodes: Nodes | None = None) -> None:
        self._clusters = clusters
        self._of_target = clusters if nodes is None else clusters_of(nodes, clusters)
        self.clear()

    def clear(self) -> None:
        """Forget what was noted."""
        self._counts = torch.zeros(2, dtype=torch.int64, device=self._clusters.device)

    def note(self, logits: Tensor, targets: Tensor, ignore_index: int = -100) -> None:
        """Count a batch.

        Args:
            logits: Of shape (K), (N, K) or (N, K, d1, ...).
            targets: Classes or nodes, masks of candidate classes, or probabilities of classes,
                of which the most probable one counts.
            ignore_index: The class that does not count. Defaults to -100.
        """
        if logits.dim() == 1:  # a single prediction
            logits, targets = logits[None], targets[None]
        clusters = self._clusters.to(logits.device)
        log_probabilities = coarse_log_softmax(logits.detach().float(), clusters)
        found = clusters[log_probabilities.argmax(1)]
        # No shape depends on the targets, so that this can be compiled.
        wanted = self._wanted(targets, clusters, ignore_index)
        hits, counted = found == wanted, wanted >= 0
        counts = torch.stack([hits.sum(), counted.sum()])
        # Not in place: validation may be in inference mode, and all else is not.
        self._counts = self._counts + counts.to(self._counts.device)

    def _wanted(self, targets: Tensor, clusters: Tensor, ignore_index: int) -> Tensor:
        """Return the cluster of each target, -1 where it does not count."""
        if targets.dtype == torch.bool:
            of_class = along_classes(clusters, targets)
            lowest = of_class.where(targets, len(clusters)).amin(1)
            return lowest.where(lowest == of_class.where(targets, -1).amax(1), -1)
        if targets.is_floating_point():
            targets = targets.argmax(1)
        counted = targets != ignore_index
        of_target = self._of_target.to(clusters.device)
        return of_target[targets.where(counted, 0)].where(counted, -1)

    def accuracy(self) -> float | None:
        """Return the share of hits over all processes; None where nothing was noted."""
        counts = self._counts.clone()
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(counts)
        hits, total = counts.tolist()
        return float(hits / total) if total else None


def clusters_of(nodes: Nodes, clusters: Tensor) -> Tensor:
    """Return the cluster of each node, -1 where it has classes of several."""
    first, last = nodes.order[nodes.starts], nodes.order[nodes.stops - 1]
    found = clusters[torch.from_numpy(first)]
    return found.where(found == clusters[torch.from_numpy(last)], -1)
