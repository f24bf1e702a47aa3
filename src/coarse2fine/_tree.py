"""A hierarchy as a tree of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

import numpy as np

from ._arrays import IntArray


def render(
    levels: Sequence[IntArray],
    class_names: Sequence[str] | None,
    cluster_names: Sequence[Sequence[str]] | None,
    *,
    width: int,
    max_lines: int,
) -> str:
    """Return the tree, one cluster a line, the classes of the lowest clusters in a row.

    A cluster that does not split at a level is not repeated there. Only as much of the tree
    is built as is shown.
    """
    counts = [int(level.max()) + 1 for level in levels]
    title = f"{counts[-1]} classes: {' → '.join(map(str, counts))}"
    tree = _Tree(levels, class_names, cluster_names)
    lines = [title]
    for line in tree.lines(np.arange(counts[-1]), 0, "", width):
        if len(lines) > max_lines:
            lines.append(f"… cut after {max_lines} lines; to_text(max_lines=...) shows more")
            break
        lines.append(line)
    return "\n".join(lines)


class _Tree:
    def __init__(
        self,
        levels: Sequence[IntArray],
        class_names: Sequence[str] | None,
        cluster_names: Sequence[Sequence[str]] | None,
    ) -> None:
        self.levels = levels
        self.class_names = class_names
        self.cluster_names = cluster_names

    def lines(self, classes: IntArray, level: int, indent: str, width: int) -> Iterator[str]:
        """Yield the lines below a cluster, given by its classes, from `level` downwards."""
        if level == len(self.levels) - 1:
            return
        groups = self._split(classes, level)
        for number, group in enumerate(groups):
            last = number == len(groups) - 1
            below = level + 1
            while below < len(self.levels) - 1 and len(self._split(group, below)) == 1:
                below += 1
            text = self._label(group, below)
            branch, trunk = ("└── ", "    ") if last else ("├── ", "│   ")
            yield (
                indent
                + branch
                + textwrap.shorten(text, max(20, width - len(indent) - 4), placeholder=" …")
            )
            yield from self.lines(group, below, indent + trunk, width)

    def _split(self, classes: IntArray, level: int) -> list[IntArray]:
        owner = self.levels[level][classes]
        order = np.argsort(owner, kind="stable")
        cuts = np.flatnonzero(np.diff(owner[order])) + 1
        return np.split(classes[order], cuts)

    def _label(self, classes: IntArray, below: int) -> str:
        is_lowest = below == len(self.levels) - 1
        names = ", ".join(self._class_name(c) for c in classes[:200].tolist()) if is_lowest else ""
        if self.cluster_names is None:
            return names if is_lowest else f"{len(classes)} classes"
        # The lowest level at which these classes are one cluster names them best.
        name = _printable(self.cluster_names[below - 1][self.levels[below - 1][classes[0]]])
        if is_lowest:
            return names if names == name else f"{name}: {names}"
        return f"{name} ({len(classes)} classes)"

    def _class_name(self, index: int) -> str:
        return str(index) if self.class_names is None else _printable(self.class_names[index])


def _printable(name: str) -> str:
    """Show control characters, a line break among them, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
