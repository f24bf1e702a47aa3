"""Measures of all scores of a sample as torchmetrics: their order, and whether to believe them.

They are computed by the plain functions, on the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..hierarchical_metrics import calibration_gaps, check_bins, hops_of_each
from ..hierarchy import Hierarchy
from ._torchmetrics_counts import Counts


class Hops(Counts):
    """`coarse2fine.hops`, counted batch by batch.

    Args:
        hierarchy: The levels.
        k: Look at the `k` best classes only. Defaults to None: at all.
        **options: Of ``torchmetrics.Metric``.
    """

    higher_is_better = True
    scores: Tensor
    samples: Tensor

    def __init__(self, hierarchy: Hierarchy, k: int | None = None, **options: Any) -> None:
        super().__init__(hierarchy, **options)
        self.hierarchy, self.k = hierarchy, k
        self._count("scores", dtype=torch.float32)
        self._count("samples")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch.

        Args:
            preds: Logits or probabilities (N, K).
            target: The true classes (N).
        """
        found = hops_of_each(preds, target, self.hierarchy, self.k)
        self.scores = self.scores + float(found.sum())
        self.samples = self.samples + len(found)

    def compute(self) -> Tensor:
        """Return the mean score; NaN where there is no sample."""
        return self.scores / self.samples


class LevelCalibrationErrors(Counts):
    """`coarse2fine.level_calibration_errors`, counted batch by batch: one value a level.

    Args:
        hierarchy: The levels.
        bins: How many. Defaults to 15.
        **options: Of ``torchmetrics.Metric``.
    """

    higher_is_better = False
    gaps: Tensor
    samples: Tensor

    def __init__(self, hierarchy: Hierarchy, bins: int = 15, **options: Any) -> None:
        super().__init__(hierarchy, **options)
        self.hierarchy, self.bins = hierarchy, check_bins(bins)
        self._count("gaps", len(hierarchy.levels), bins, dtype=torch.float32)
        self._count("samples")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch.

        Args:
            preds: Logits (N, K), or probabilities, whose rows add up to 1.
            target: The true classes (N).
        """
        gaps = torch.from_numpy(calibration_gaps(preds, target, self.hierarchy, self.bins))
        self.gaps = self.gaps + gaps.to(self.gaps)
        self.samples = self.samples + len(preds)

    def compute(self) -> Tensor:
        """Return the error at each level, coarsest first; NaN where there is no sample."""
        return self.gaps.abs().sum(dim=1) / self.samples
