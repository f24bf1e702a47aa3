"""A hierarchy as a tree of text."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

import numpy as np

from .._util.arrays import IntArray
from .._util.text import printable
from .value import NestedLevels

# Lines keep room for this much text, however deep they are indented.
_LEAST_TEXT = 20


def render(hierarchy: NestedLevels, *, width: int, max_lines: int) -> str:
    """Return the tree, one cluster a line, the classes of the lowest clusters in a row.

    A cluster that does not split at a level is not repeated there. Only as much of the tree
    is built as is shown.
    """
    counts = [int(level.max()) + 1 for level in hierarchy.levels]
    how = ", by approximate clustering" if hierarchy.approximate else ""
    lines = [_cut(f"{counts[-1]} classes{how}: {' → '.join(map(str, counts))}", width, " → ")]
    for line in _Tree(hierarchy, width).lines():
        if len(lines) > max_lines:
            lines.append(f"… cut after {max_lines} lines; a larger max_lines shows more")
            break
        lines.append(line)
    return "\n".join(lines)


class _Tree:
    def __init__(self, hierarchy: NestedLevels, width: int) -> None:
        self.levels = hierarchy.levels
        self.class_names = hierarchy.class_names
        self.cluster_names = hierarchy.cluster_names
        self.width = width

    def lines(self) -> Iterator[str]:
        """Yield a line for each cluster, parents before their children."""
        lowest = len(self.levels) - 1
        # Depth first without recursion, as a hierarchy may be deeper than Python's stack. The
        # stack holds, for each cluster above the current line, its children yet to be shown.
        path = [self._children(np.arange(len(self.levels[-1])), 0, "")]
        while path:
            child = next(path[-1], None)
            if child is None:
                path.pop()
                continue
            group, level, indent, is_last = child
            # Levels are nested, so a group that one level splits is split by all finer ones:
            # the first of them is found by bisection.
            splits = partial(self._is_split, group)
            below = level + 1 + bisect_left(range(level + 1, lowest), True, key=splits)
            room = max(_LEAST_TEXT, self.width - len(indent) - 4)
            branch, trunk = ("└── ", "    ") if is_last else ("├── ", "│   ")
            yield indent + branch + _cut(self._label(group, level, below, room), room, ", ")
            path.append(self._children(group, below, indent + trunk))

    def _children(
        self, classes: IntArray, level: int, indent: str
    ) -> Iterator[tuple[IntArray, int, str, bool]]:
        if level == len(self.levels) - 1:
            return
        groups = self._split(classes, level)
        for number, group in enumerate(groups, start=1):
            yield group, level, indent, number == len(groups)

    def _is_split(self, classes: IntArray, level: int) -> bool:
        owner = self.levels[level][classes]
        return bool((owner != owner[0]).any())

    def _split(self, classes: IntArray, level: int) -> list[IntArray]:
        owner = self.levels[level][classes]
        order = np.argsort(owner, kind="stable")
        cuts = np.flatnonzero(np.diff(owner[order])) + 1
        return np.split(classes[order], cuts)

    def _label(self, classes: IntArray, level: int, below: int, room: int) -> str:
        """Name a cluster that is whole from `level` to above `below`."""
        titles = self._titles(int(classes[0]), level, below)
        if below < len(self.levels) - 1:
            size = f"{len(classes)} classes"
            return f"{' > '.join(titles)} ({size})" if titles else size
        # A name and its comma take two characters or more, so no more than these can fit; a
        # cluster may have a million.
        names = [self._class_name(index) for index in classes[: room // 2 + 2].tolist()]
        if titles[-1:] == names:  # a class that is a cluster by itself
            titles = titles[:-1]
        return f"{' > '.join(titles)}{': ' if titles else ''}{', '.join(names)}"

    def _titles(self, member: int, level: int, below: int) -> list[str]:
        if self.cluster_names is None:
            return []
        names = [self.cluster_names[at][self.levels[at][member]] for at in range(level, below)]
        return [printable(name) for name in dict.fromkeys(names) if name]

    def _class_name(self, index: int) -> str:
        return str(index) if self.class_names is None else printable(self.class_names[index])


def _cut(text: str, width: int, separator: str) -> str:
    """Shorten a text, between two of its parts if it has several, else within the one."""
    if len(text) <= width:
        return text
    end = text.rfind(separator, 0, max(width - 1, 0))
    return f"{text[:end]}{separator}…" if end > 0 else f"{text[: max(width - 1, 0)]}…"
