"""Whether a level has taught what it can."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# Beyond this there is next to nothing left to learn at a level; the last samples of it may be
# mislabelled, and to wait for them would only take epochs from the levels that follow.
PERFECT = 0.99


@dataclass
class Plateau:
    """How validation accuracy has gone since a level began.

    Args:
        best: The best accuracy so far; below 0 before the first.
        since: How many epochs ago that was.
    """

    best: float = -1.0
    since: int = 0

    def note(self, accuracy: float) -> None:
        """Take in the accuracy after another epoch."""
        self.best, self.since = (
            (accuracy, 0) if accuracy > self.best else (self.best, self.since + 1)
        )

    def is_reached(self, patience: int) -> bool:
        """Whether accuracy has not improved for so many epochs, or is as good as perfect."""
        return self.since >= patience or self.best >= PERFECT


def check_accuracy(accuracy: Any) -> float:
    """Return an accuracy as a float, or raise an error where it is not one from 0 to 1."""
    try:
        value = float(accuracy)
    except (TypeError, ValueError):
        raise TypeError(f"accuracy must be a number. Got {accuracy!r}.") from None
    if not 0 <= value <= 1:
        raise ValueError(f"accuracy must lie between 0 and 1. Got {value:g}.")
    return value
