"""Tables that scikit-learn brings or makes."""

from __future__ import annotations

import numpy as np
import torch

from ...errors import require
from ..split import Source, Split


def load_digits() -> Source:
    """Return the 1,797 handwritten digits of scikit-learn: 64 numbers each, 10 classes."""
    features, targets = require("sklearn.datasets", "sklearn").load_digits(return_X_y=True)
    return _source(features, targets, [str(digit) for digit in range(10)])


def make_table() -> Source:
    """Return 5,000 rows of 40 numbers in 50 classes, made by ``make_classification``.

    The classes are clusters around corners of a hypercube of 12 dimensions, so that some are
    nearer to each other than others. They are the same in every call.
    """
    features, targets = require("sklearn.datasets", "sklearn").make_classification(
        n_samples=5_000,
        n_features=40,
        n_informative=12,
        n_redundant=8,
        n_classes=50,
        n_clusters_per_class=1,
        flip_y=0.02,
        random_state=0,
    )
    return _source(features, targets, [f"class {number}" for number in range(50)])


def _source(
    features: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    targets: np.ndarray[tuple[int], np.dtype[np.int64]],
    names: list[str],
) -> Source:
    inputs = torch.from_numpy(features.astype(np.float32))
    split = Split(inputs, torch.from_numpy(targets.astype(np.int64)), tuple(names))
    return Source("table", split, columns=tuple(f"x{column}" for column in range(inputs.shape[1])))
