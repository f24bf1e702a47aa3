"""Rows of labels, or of parents and children, as the branches of a tree of classes."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from reprlib import repr as short
from typing import Any

import numpy as np

# A class: the names from the root's child down to the class itself.
Branch = tuple[str, ...]

# Deeper ones are mistakes or attacks.
MAX_LEVELS = 100
# What ends the error about a node with several parents.
CHOOSE = 'keep one of the two, or give parents="first" to take whichever comes first'


def is_label(value: Any) -> bool:
    """Return whether it names a class or a group: a text or an integer."""
    return isinstance(value, str | int | np.integer) and not isinstance(value, bool)


def from_pairs(
    cells: Sequence[Sequence[str]],
    names: tuple[str, ...],
    rows: Sequence[int],
    takes_first: bool,
) -> list[Branch]:
    """Turn columns of parents and children into branches; the root's parent may be empty.

    Args:
        cells: The two columns.
        names: What they are called.
        rows: The number of each row, for errors.
        takes_first: Whether a child with several parents is taken below the first.
    """
    parents: dict[str, list[str]] = {}
    for above, child, row in zip(*cells, rows, strict=True):
        if not child:
            raise ValueError(f"row {row} has no {names[1]}.")
        known = parents.setdefault(child, [above])
        if above != known[0] and not takes_first:
            raise ValueError(
                f"{child!r} has two parents, {known[0]!r} and, in row {row}, {above!r}; {CHOOSE}."
            )
        known.append(above)
    _check_no_cycle(parents)
    first = {child: known[0] for child, known in parents.items()}
    # Classes are the nodes that are nobody's parent, also not that of a child taken elsewhere.
    inner = {above for known in parents.values() for above in known}
    return [_climb(child, first) for child in first if child not in inner]


def _check_no_cycle(parents: dict[str, list[str]]) -> None:
    """Refuse a node above itself, by whichever of its parents."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        raise ValueError(f"{error.args[1][0]!r} is its own ancestor.") from None


def _climb(child: str, parent: dict[str, str]) -> Branch:
    """Return the names from the root down to a node."""
    branch = [child]
    while parent.get(branch[-1]):
        branch.append(parent[branch[-1]])
        if len(branch) > MAX_LEVELS:
            raise ValueError(f"the taxonomy is more than {MAX_LEVELS} levels deep.")
    return tuple(reversed(branch))


def from_columns(
    cells: Sequence[Sequence[Any]],
    columns: tuple[str, ...],
    rows: Sequence[int],
    takes_first: bool,
) -> list[Branch]:
    """Turn columns of labels, the finest last, into a branch for each class.

    Args:
        cells: The columns.
        columns: What they are called.
        rows: The number of each row, for errors.
        takes_first: Whether a class in several places is taken at the first.
    """
    for column, name in zip(cells, columns, strict=True):
        if len(column) != len(rows):
            raise ValueError(
                f"the columns must be of one length, but {name} has {len(column)} cells and "
                f"{columns[-1]} has {len(rows)}."
            )
    found: dict[Branch, int] = {}  # with the row of each
    for row, labels in zip(rows, zip(*cells, strict=True), strict=True):
        found.setdefault(_labels_given(labels, columns, row), row)
    # What has finer labels in other rows is no class: its own row only knew less.
    inner = {branch[:depth] for branch in found for depth in range(1, len(branch))}
    branches: dict[str, Branch] = {}
    for branch in (branch for branch in found if branch not in inner):
        first = branches.setdefault(branch[-1], branch)
        if first != branch and not takes_first:
            raise ValueError(
                f"{columns[len(branch) - 1]} {branch[-1]!r} stands {_place(first)} and, in row "
                f"{found[branch]}, {_place(branch)}; {CHOOSE}."
            )
    return list(branches.values())


def _labels_given(labels: Sequence[Any], columns: tuple[str, ...], row: int) -> Branch:
    """Return the labels of a row down to the finest that is not empty."""
    depth = max((at for at, cell in enumerate(labels, 1) if not _is_empty(cell)), default=1)
    for cell, name in zip(labels[:depth], columns, strict=False):
        if not is_label(cell) or cell == "":
            raise ValueError(
                f"{name} in row {row} must be a string or an integer, and only the finest labels "
                f"may be empty. Got {short(cell)}."
            )
    return tuple(map(str, labels[:depth]))


def _is_empty(cell: Any) -> bool:
    """Whether a cell holds nothing: an empty text, None, or what pandas has in their place."""
    if isinstance(cell, str) or cell is None:
        return not cell
    is_nan = isinstance(cell, float | np.floating) and bool(np.isnan(cell))
    return is_nan or type(cell).__name__ in ("NAType", "NaTType")


def _place(branch: Branch) -> str:
    return f"below {' > '.join(branch[:-1])}" if len(branch) > 1 else "at the top"
