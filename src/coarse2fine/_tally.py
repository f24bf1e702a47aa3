"""How often the most probable cluster is the right one, counted batch by batch."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from .functional import coarse_log_softmax


class Tally:
    """Counts hits at one level over the batches that are noted.

    Args:
        clusters: The cluster of each class, on the device that the processes share numbers on.
    """

    def __init__(self, clusters: Tensor) -> None:
        self._clusters = clusters
        self.clear()

    def clear(self) -> None:
        """Forget what was noted."""
        self._counts = torch.zeros(2, dtype=torch.int64, device=self._clusters.device)

    def note(self, logits: Tensor, targets: Tensor, ignore_index: int = -100) -> None:
        """Count a batch.

        Args:
            logits: Of shape (K), (N, K) or (N, K, d1, ...).
            targets: Classes, or probabilities of them, of which the most probable one counts.
            ignore_index: The class that does not count. Defaults to -100.
        """
        if logits.dim() == 1:  # a single prediction
            logits, targets = logits[None], targets[None]
        if targets.is_floating_point():
            targets = targets.argmax(1)
        clusters = self._clusters.to(logits.device)
        log_probabilities = coarse_log_softmax(logits.detach().float(), clusters)
        found = clusters[log_probabilities.argmax(1)]
        counted = targets != ignore_index
        # No shape depends on the targets, so that this can be compiled.
        hits = counted & (found == clusters[targets.where(counted, 0)])
        counts = torch.stack([hits.sum(), counted.sum()])
        # Not in place: validation may be in inference mode, and all else is not.
        self._counts = self._counts + counts.to(self._counts.device)

    def accuracy(self) -> float | None:
        """Return the share of hits over all processes; None where nothing was noted."""
        counts = self._counts.clone()
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(counts)
        hits, total = counts.tolist()
        return float(hits / total) if total else None
