"""Where a curriculum's level changes, as figures mark it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

Mark = tuple[float, int]  # between which epochs, and the level that begins there


def level_marks(levels: Sequence[int | None], width: float) -> list[list[Mark]]:
    """Return where new levels begin, those together that are too close for a label each.

    Args:
        levels: In force in each epoch; None where there is none.
        width: Of a label, in epochs.

    Examples:
        >>> level_marks([0, 0, 1, 2, 2, 2, 2, 3], 2.0)
        [[(2.5, 1), (3.5, 2)], [(7.5, 3)]]
    """
    groups: list[list[Mark]] = []
    for mark in _changes(levels):
        if groups and mark[0] - groups[-1][-1][0] < width:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return groups


def mark_label(group: Sequence[Mark]) -> str:
    """Return which levels begin at marks that share a label.

    Examples:
        >>> mark_label([(2.5, 1)]), mark_label([(2.5, 1), (3.5, 2)])
        ('level 1', 'levels 1–2')
    """
    first, last = group[0][1], group[-1][1]
    return f"level {first}" if len(group) == 1 else f"levels {first}–{last}"


def _changes(levels: Sequence[int | None]) -> Iterable[Mark]:
    for epoch, (before, after) in enumerate(pairwise(levels), 1):
        if after is not None and after != before:
            yield epoch + 0.5, after
