"""What answers are like when an accuracy is promised, from logits of two sets of samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._calibration import Calibration, needed_samples
from .._logits import check_logits, check_targets
from .._paths import likeliest_paths
from .._util.arrays import Array, IntArray
from ..hierarchy import Hierarchy
from ..nodes import Nodes

CONFIDENCE = 0.9
PROMISES = range(1, 100)  # percent


class Logits(NamedTuple):
    """What a model makes of samples.

    Args:
        logits: Of shape (N, K).
        targets: The classes of the samples.
    """

    logits: Array
    targets: IntArray

    @classmethod
    def checked(cls, logits: Any, targets: Any, hierarchy: Hierarchy) -> Logits:
        """Return arrays of a model's logits and of the classes they should tell."""
        count = hierarchy.num_classes
        found = check_logits(logits, count)
        return cls(found, check_targets(targets, len(found), count))


@dataclass(frozen=True, eq=False)
class Promise:
    """What answers are like when an accuracy is promised; all shares are in percent.

    Args:
        promised: The share of answers to be right.
        right: The share of answers that is right, of the test samples.
        shares: Of the answers that are the root, clusters of each level from the coarsest, and
            classes.
    """

    promised: int
    right: float
    shares: Array

    @property
    def depth(self) -> float:
        """How many levels below the root answers are on average."""
        return float(np.arange(len(self.shares)) @ self.shares / 100)


def promises_of(val: Logits, test: Logits, nodes: Nodes) -> Iterator[Promise]:
    """Yield what each promise comes to that the validation samples can prove.

    Args:
        val: Of the validation samples, which calibrate.
        test: Of the test samples, whose answers are counted.
        nodes: Of the hierarchy.
    """
    found = Calibration.of(*val, nodes)
    paths, depths = likeliest_paths(test.logits, found.temperature, nodes), _depths(nodes)
    mistakes = paths.mistakes(test.targets, nodes)
    for promised in PROMISES:
        if needed_samples(promised / 100, CONFIDENCE).all > len(val.targets):
            return
        threshold = found.tested(promised / 100, CONFIDENCE).threshold
        counts = np.bincount(depths[paths.answers(threshold)], minlength=depths.max() + 1)
        right = 100 * float((mistakes < threshold).mean())
        yield Promise(promised, right, 100 * counts / len(mistakes))


def _depths(nodes: Nodes) -> IntArray:
    """Return for each node the finest level at which it is a cluster, from 1; 0 for the root."""
    depths = np.zeros(len(nodes), np.int64)
    for at, own in enumerate(nodes.of_level, 1):
        depths[own] = at
    depths[nodes.root] = 0
    return depths
