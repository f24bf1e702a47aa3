"""Data and a classifier that the tests of the scikit-learn estimator share."""

import numpy as np

from coarse2fine.integrations.sklearn import CoarseToFineClassifier

NAMES = np.array(["ash", "bee", "cat", "dog", "elm", "fox", "gnu", "hen"])


def grouped(samples=160, classes=8, seed=0):
    """Points of classes that lie in pairs close together, of as many samples each."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((classes // 2, 6)).repeat(2, axis=0)
    centres = centres + rng.standard_normal((classes, 6))
    y = np.arange(samples) % classes
    return centres[y] + 0.7 * rng.standard_normal((samples, 6)), y


def quick(**settings):
    """A classifier that trains for a moment."""
    return CoarseToFineClassifier(
        **{"width": 16, "max_epochs": 18, "lr": 0.03, "batch_size": 16, "random_state": 0}
        | settings
    )
