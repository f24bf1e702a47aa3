"""Which network the scikit-learn estimator keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..runs.best import comparison


def best_score(history: Any) -> float:
    """Return the best validation accuracy at the finest level, which that of the last epoch is."""
    finest = history[-1]["level"]
    return float(max(row["valid_acc"] for row in history if row["level"] == finest))


def best_method(accuracies: Mapping[str, float], wanted: str) -> str:
    """Return which network to keep: the one that is wanted, or the one that validates best.

    Args:
        accuracies: By method, the baseline first, which is preferred where it is as good.
        wanted: A method, or ``"best"``. One that was not trained, as there are no levels to
            train through, is no choice either.

    Examples:
        >>> best_method({"baseline": 0.9, "continuous": 0.9}, "best")
        'baseline'
    """
    if wanted in accuracies:
        return wanted
    return max(accuracies, key=lambda name: accuracies[name])


def verdict(method: str, accuracies: Mapping[str, float]) -> str:
    """Return a sentence that says which network is kept, and how all of them validate."""
    percent = {name: 100 * accuracy for name, accuracy in accuracies.items()}
    rivals = [name for name in percent if name != method]
    if not rivals:
        return f"Only {method} was trained: it validates at {percent[method]:.2f} %."
    if percent[rivals[0]] > percent[method]:
        return (
            f"Kept {method} as asked for, though {rivals[0]} validates better "
            f"({percent[method]:.2f} and {percent[rivals[0]]:.2f} %)."
        )
    return f"{comparison(method, rivals[0], percent)}."
