"""Tables made for mechanism.py: one with more rows than made-table, and one with a known tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from sklearn.datasets import make_classification

from coarse2fine import Hierarchy
from coarse2fine.data.split import Source, Split

GROUPS, CLASSES, COLUMNS = 10, 50, 20
TREE = Hierarchy.from_levels([np.arange(CLASSES) * GROUPS // CLASSES])


def large_table() -> Source:
    """Return 20,000 rows, made as those of made-table are; the classes are others."""
    features, targets = make_classification(
        n_samples=20_000,
        n_features=40,
        n_informative=12,
        n_redundant=8,
        n_classes=CLASSES,
        n_clusters_per_class=1,
        flip_y=0.02,
        random_state=0,
    )
    return _source(features, targets)


def nested_table(rows: int = 5_000) -> Source:
    """Return rows of normal noise around the centres of classes, which lie around those of `TREE`.

    Args:
        rows: Defaults to 5,000.
    """
    rng = np.random.RandomState(0)
    groups = 0.7 * rng.standard_normal((GROUPS, COLUMNS))[TREE.levels[0]]
    centres = groups + 0.4 * rng.standard_normal((CLASSES, COLUMNS))
    targets = np.arange(rows) % CLASSES
    return _source(centres[targets] + rng.standard_normal((rows, COLUMNS)), targets)


def _source(features: np.ndarray, targets: np.ndarray) -> Source:
    inputs = torch.from_numpy(features.astype(np.float32))
    names = tuple(f"class {number}" for number in range(CLASSES))
    return Source("table", Split(inputs, torch.from_numpy(targets), names))


MADE: Mapping[str, Callable[[], Source]] = {
    "large-table": large_table,
    "nested-table": nested_table,
}
