"""Rules for T, the length of a curriculum, from how a baseline trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence


def epochs_to_reach(accuracies: Sequence[float], fraction: float = 0.9) -> int:
    """Return after how many epochs a baseline reached a fraction of its best accuracy.

    This is the rule for T in the paper's text.

    Args:
        accuracies: The baseline's validation accuracy after each epoch.
        fraction: Defaults to 0.9.

    Examples:
        >>> epochs_to_reach([0.2, 0.5, 0.56, 0.6, 0.58])
        3
    """
    _check_accuracies(accuracies)
    threshold = fraction * max(accuracies)
    return next(index for index, value in enumerate(accuracies, 1) if value >= threshold)


def share_of_best_epoch(accuracies: Sequence[float], fraction: float = 0.9) -> int:
    """Return a fraction of the epoch at which a baseline was best, rounded, at least 1.

    This is the rule for T in the paper's Algorithm 3. Of equal accuracies the first is the best.

    Args:
        accuracies: The baseline's validation accuracy after each epoch.
        fraction: Defaults to 0.9.

    Examples:
        >>> share_of_best_epoch([0.2, 0.5, 0.56, 0.6, 0.58])
        4
    """
    _check_accuracies(accuracies)
    best = max(range(len(accuracies)), key=lambda index: accuracies[index]) + 1
    return max(1, int(fraction * best + 0.5))  # half up, where round() would go to even


# The rules that look at how a baseline trained, by the names that settings have for them.
RULES: Mapping[str, Callable[[Sequence[float]], int]] = {
    "reach-90": epochs_to_reach,
    "best-epoch": share_of_best_epoch,
}


def best_candidate(candidates: Sequence[int], accuracies: Sequence[float]) -> int:
    """Return the curriculum length with the best validation accuracy, the shortest of equals.

    The paper's rule for T for its large models, each of which it trained with every candidate.

    Args:
        candidates: Curriculum lengths; the paper's are 5, 10, 20, 30, 40 and 50.
        accuracies: The best validation accuracy with a curriculum of each length.

    Examples:
        >>> best_candidate([5, 10, 20], [0.61, 0.64, 0.63])
        10
    """
    _check_accuracies(accuracies)
    if len(candidates) != len(accuracies):
        raise ValueError(
            f"there must be one accuracy for each of the {len(candidates)} candidates. Got "
            f"{len(accuracies)}."
        )
    return min(zip(candidates, accuracies, strict=True), key=lambda pair: (-pair[1], pair[0]))[0]


def capped_length(length: int, epochs: int) -> int:
    """Return `length`, but at most a third of the epochs, with a warning if that is less.

    If the baseline has not levelled off, its best epoch is among the last, and the rules for T
    would leave hardly any epochs for the target classes.

    Args:
        length: T by one of the rules.
        epochs: How many epochs training is allowed in all.
    """
    cap = max(1, epochs // 3)
    if length <= cap:
        return length
    warnings.warn(
        f"The curriculum would take {length} of {epochs} epochs, as the baseline was slow to "
        f"level off; it is cut to a third of them, {cap}. Train for longer to avoid this.",
        stacklevel=2,
    )
    return cap


def _check_accuracies(accuracies: Sequence[float]) -> None:
    if not len(accuracies):
        raise ValueError("accuracies must hold at least one epoch. Got none.")
    for index, value in enumerate(accuracies):
        if value != value:  # NaN, which compares as neither smaller nor larger
            raise ValueError(f"accuracies[{index}] is nan.")
