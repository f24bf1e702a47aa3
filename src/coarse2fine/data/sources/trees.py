"""Labels of any depth: nodes of a tree that is given, or that the labels themselves make."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from reprlib import repr as short
from typing import Any

import torch
from torch import Tensor

from ..._util.text import did_you_mean
from ...hierarchy import Hierarchy
from ...nodes import Nodes
from ..split import Source
from .labels import sorted_names

Branch = tuple[str, ...]
"""The labels of a sample from the coarsest to the finest that is known."""

Given = Hierarchy | Callable[[], Hierarchy | None] | None
"""A tree, or what reads it once it is needed."""


class GivenTree:
    """A tree whose clusters labels may name too.

    Args:
        given: The tree, or what reads it.

    Attributes:
        is_used: Whether there are labels that name a cluster.
    """

    def __init__(self, given: Given = None) -> None:
        self._given = given
        self.is_used = False

    @cached_property
    def hierarchy(self) -> Hierarchy | None:
        """The tree; None where there is none, or its classes have no names."""
        found = self._given() if callable(self._given) else self._given
        return None if found is None or found.class_names is None else found

    @property
    def kind(self) -> str:
        """What the names of `names` are called in an error."""
        return "names of the hierarchy" if self.is_used else "classes"

    def names(self, found: tuple[str, ...], class_names: Sequence[str] | None) -> tuple[str, ...]:
        """Return the names of all labels that there can be, in the order of their numbers.

        Args:
            found: Those that there are, if all of them are classes.
            class_names: The classes, where they are told.

        Returns:
            The names that the tree's nodes are known by, where labels may be such, else `found`.
        """
        if all(name.isdecimal() for name in found) or self.hierarchy is None:
            return found  # numbers are classes: clusters are called by words
        tree, classes = self.hierarchy, set(self.hierarchy.class_names or ())
        if class_names:
            self.is_used = set(found) == classes
            tree = tree.for_classes(found) if self.is_used else tree
        else:
            self.is_used = bool(set(found) & (tree.nodes.known_names.keys() - classes))
        return (*tree.nodes.names, *_further_names(tree.nodes)) if self.is_used else found

    def applied_to(self, source: Source) -> Source:
        """Return the samples with targets that are nodes, where some of them are clusters.

        Args:
            source: The samples, whose class names are those that `names` gave.
        """
        if not self.is_used or self.hierarchy is None:
            return source
        names = source.train.class_names[: self.hierarchy.num_classes]
        tree = self.hierarchy.for_classes(names)
        node_of = torch.tensor([*range(len(tree.nodes)), *_further_names(tree.nodes).values()])
        parts = {"train": source.train, "test": source.test, "val": source.val}
        nodes = {role: node_of[part.targets] for role, part in parts.items() if part is not None}
        is_mixed = bool((torch.cat([*nodes.values()]) >= tree.num_classes).any())
        changes: Any = {"class_names": names, "hierarchy": tree if is_mixed else None}
        found: Any = {
            role: replace(part, targets=nodes[role], **changes)
            for role, part in parts.items()
            if part is not None
        }
        return replace(source, **found)


def _further_names(nodes: Nodes) -> dict[str, int]:
    """Return names that nodes have beside their own, with the nodes."""
    own = set(nodes.names)
    return {name: node for name, node in nodes.known_names.items() if name not in own}


# ------------------------------------------------------- trees that labels make by themselves


@dataclass(frozen=True)
class LabelTree:
    """The tree that labels of several depths make: what has nothing below it is a class.

    Args:
        hierarchy: The tree.
        nodes: The node of each branch, from the root's children down to the classes.
    """

    hierarchy: Hierarchy
    nodes: Mapping[Branch, int]

    def targets(self, branches: Sequence[Branch], place: Callable[[int], str]) -> Tensor:
        """Return the node of each sample.

        Args:
            branches: The labels of each sample.
            place: Tells what to call a sample in an error.

        Raises:
            ValueError: A branch is none of the tree's.
        """
        found = [self.nodes.get(branch, -1) for branch in branches]
        if -1 in found:
            row = found.index(-1)
            name = " > ".join(branches[row])
            hint = did_you_mean(name, map(" > ".join, self.nodes))
            raise ValueError(
                f"{place(row)}: {short(name)} is not among the labels to train on; correct it or "
                f"leave it out.{hint}"
            )
        return torch.tensor(found)


def tree_of(
    branches: Sequence[Branch],
    place: Callable[[int], str],
    class_names: Sequence[str] | None = None,
) -> LabelTree:
    """Return the tree of the labels to train on.

    Args:
        branches: The labels of each sample, from the coarsest to the finest that is known.
        place: Tells what to call a sample in an error.
        class_names: The classes in their order. Defaults to None: integers in their order,
            others sorted.

    Raises:
        ValueError: A class is in two places.
    """
    first: dict[Branch, int] = {}
    for row, branch in enumerate(branches):
        first.setdefault(branch, row)
    inner = {branch[:depth] for branch in first for depth in range(1, len(branch))}
    classes: dict[str, Branch] = {}
    for branch in (branch for branch in first if branch not in inner):
        other = classes.setdefault(branch[-1], branch)
        if other != branch:
            raise ValueError(
                f"{place(first[branch])}: {branch[-1]!r} is {_above(branch)}, but "
                f"{_above(other)} in {place(first[other])}; a class is in one place, so correct "
                f"one of the two."
            )
    if len(classes) < 2:
        raise ValueError(f"there must be two or more classes. Got {', '.join(classes) or 'none'}.")
    names = sorted_names(classes) if class_names is None else class_names
    hierarchy = Hierarchy.from_taxonomy(_nested(classes.values()), names)
    return LabelTree(hierarchy, _numbered(hierarchy, classes))


def _above(branch: Branch) -> str:
    return f"below {' > '.join(branch[:-1])}" if len(branch) > 1 else "at the top"


def _nested(branches: Iterable[Branch]) -> dict[str, Any]:
    """Return branches as nested dicts, in which classes have nothing below them."""
    tree: dict[str, Any] = {}
    for branch in branches:
        below = tree
        for name in branch:
            below = below.setdefault(name, {})
    return tree


def _numbered(hierarchy: Hierarchy, classes: Mapping[str, Branch]) -> dict[Branch, int]:
    """Return the node of each branch: the smallest with all the classes below it."""
    nodes = hierarchy.nodes
    members: dict[Branch, list[int]] = {}
    for place, name in enumerate(hierarchy.class_names or ()):
        branch = classes[name]
        for depth in range(1, len(branch) + 1):
            members.setdefault(branch[:depth], []).append(place)
    return {branch: nodes.of_classes(own) for branch, own in members.items()}


# ------------------------------------------------------------------------ columns of labels


def branches_of(columns: Mapping[str, Sequence[str]], place: Callable[[int], str]) -> list[Branch]:
    """Return the labels of each row down to the finest that is known.

    Args:
        columns: The labels of all rows from the coarsest to the finest, ``""`` where unknown.
        place: Tells what to call a row in an error.

    Raises:
        ValueError: A row has no label at all, or a finer one below an empty cell.
    """
    rows = list(zip(*columns.values(), strict=True))
    depths = [sum(map(bool, row)) for row in rows]
    for number, (row, depth) in enumerate(zip(rows, depths, strict=True)):
        if not depth or not all(row[:depth]):
            empty = list(columns)[row.index("")]
            raise ValueError(
                f"{place(number)}: the label in the column {empty!r} is missing; only the finest "
                f"labels may be, and the columns go from the coarsest to the finest: "
                f"{', '.join(columns)}. Fill it in or remove the row."
            )
    return [row[:depth] for row, depth in zip(rows, depths, strict=True)]
