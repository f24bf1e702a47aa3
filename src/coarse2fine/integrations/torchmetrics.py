"""Measures of hierarchical classification as torchmetrics, counted batch by batch.

metric = HierarchicalF1(hierarchy); metric.update(logits, targets); metric.compute()
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..hierarchical_metrics import node_paths
from ..hierarchy import Hierarchy
from ._torchmetrics_counts import Counts, checked
from ._torchmetrics_scores import Hops as Hops
from ._torchmetrics_scores import LevelCalibrationErrors as LevelCalibrationErrors


class _Sets(Counts):
    """Sizes of the sets of nodes: in common, predicted and true."""

    higher_is_better = True
    common: Tensor
    predicted: Tensor
    wanted: Tensor
    paths: Tensor

    def __init__(self, hierarchy: Hierarchy, **options: Any) -> None:
        super().__init__(hierarchy, **options)
        paths = torch.from_numpy(node_paths(hierarchy.nodes))
        self.register_buffer("paths", paths, persistent=False)
        for name in ("common", "predicted", "wanted"):
            self._count(name)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch.

        Args:
            preds: Nodes of any shape, or logits or probabilities of the classes, (N, K).
            target: The true nodes.
        """
        preds, target = checked(preds, target, len(self.paths))
        found, wanted = self.paths[preds], self.paths[target]
        self.common = self.common + ((found == wanted) & (wanted >= 0)).sum()
        self.predicted = self.predicted + (found >= 0).sum()
        self.wanted = self.wanted + (wanted >= 0).sum()


class HierarchicalPrecision(_Sets):
    """`coarse2fine.hierarchical_precision`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    def compute(self) -> Tensor:
        """Return the precision; NaN where nothing is claimed."""
        return self.common / self.predicted


class HierarchicalRecall(_Sets):
    """`coarse2fine.hierarchical_recall`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    def compute(self) -> Tensor:
        """Return the recall; NaN where there is no sample."""
        return self.common / self.wanted


class HierarchicalF1(_Sets):
    """`coarse2fine.hierarchical_f1`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
        >>> metric = HierarchicalF1(hierarchy)
        >>> metric.update(torch.tensor([0, 1]), torch.tensor([0, 0]))
        >>> metric.update(torch.tensor([1, 3]), torch.tensor([2, 3]))
        >>> metric.compute()
        tensor(0.6250)
    """

    def compute(self) -> Tensor:
        """Return F1; NaN where there is no sample."""
        return 2 * self.common / (self.predicted + self.wanted)


class LevelAccuracy(Counts):
    """`coarse2fine.level_accuracies`, counted batch by batch: one value a level.

    Targets may be nodes. At levels finer than its node a sample does not count; ``total`` says
    how many do at each level.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    higher_is_better = True
    hits: Tensor
    total: Tensor
    of_node: Tensor

    def __init__(self, hierarchy: Hierarchy, **options: Any) -> None:
        super().__init__(hierarchy, **options)
        of_node = [torch.from_numpy(hierarchy.nodes.within(level)) for level in hierarchy.levels]
        self.register_buffer("of_node", torch.stack(of_node), persistent=False)
        self._count("hits", len(hierarchy.levels))
        self._count("total", len(hierarchy.levels))

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch.

        Args:
            preds: Classes (N), or logits (N, K), whose prediction at a level is the cluster of
                largest total probability.
            target: The true classes, or nodes, (N).
        """
        classes, nodes = self.levels.shape[1], self.of_node.shape[1]
        scores = preds if preds.is_floating_point() else None
        preds, target = checked(preds, target, classes, nodes)
        wanted = self.of_node[:, target].flatten(1)
        found = self.levels[:, preds] if scores is None else self._clusters(scores)
        self.hits = self.hits + (found.flatten(1) == wanted).sum(dim=1)
        self.total = self.total + (wanted >= 0).sum(dim=1)

    def _clusters(self, logits: Tensor) -> Tensor:
        """Return the cluster of largest total probability, (levels, N)."""
        probabilities = logits.detach().float().softmax(dim=1)
        empty = torch.zeros_like(probabilities)
        totals = [empty.index_add(1, level, probabilities) for level in self.levels]
        return torch.stack([total.argmax(dim=1) for total in totals])

    def compute(self) -> Tensor:
        """Return the accuracy at each level, coarsest first; NaN where no sample counts."""
        return self.hits / self.total


class _Heights(Counts):
    """How many samples there are at each height, see `coarse2fine.mistake_heights`."""

    higher_is_better: bool | None = False
    counts: Tensor

    def __init__(self, hierarchy: Hierarchy, **options: Any) -> None:
        super().__init__(hierarchy, **options)
        self._count("counts", len(hierarchy.levels) + 1)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Count a batch.

        Args:
            preds: Classes (N), or logits or probabilities (N, K).
            target: The true classes (N).
        """
        preds, target = checked(preds, target, self.levels.shape[1])
        heights = (self.levels[:, preds] != self.levels[:, target]).sum(dim=0).flatten()
        self.counts = self.counts + torch.bincount(heights, minlength=len(self.counts))

    @property
    def _sum(self) -> Tensor:
        return (self.counts * torch.arange(len(self.counts), device=self.counts.device)).sum()


class MistakeSeverity(_Heights):
    """`coarse2fine.mistake_severity`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    def compute(self) -> Tensor:
        """Return the mean height of the mistakes; NaN where there is none."""
        return self._sum / self.counts[1:].sum()


class HeightDistribution(_Heights):
    """`coarse2fine.height_distribution`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    higher_is_better = None

    def compute(self) -> Tensor:
        """Return the share of samples at each height; NaN where there is no sample."""
        return self.counts / self.counts.sum()


class MeanHeight(_Heights):
    """`coarse2fine.mean_height`, counted batch by batch.

    Args:
        hierarchy: The levels.
        **options: Of ``torchmetrics.Metric``.
    """

    def compute(self) -> Tensor:
        """Return the mean height over all samples; NaN where there is none."""
        return self._sum / self.counts.sum()
