"""The nodes of a hierarchy: every class and every cluster, numbered and named.

A node is a set of classes, so a cluster of one class is that class, and a cluster that several
levels share is one node. The classes are the nodes 0 to K-1, the root, which is all classes, is
K, and the clusters follow from the coarsest level to the finest.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from reprlib import repr as short
from typing import Any

import numpy as np

from ._hierarchy.levels import to_class_indices
from ._util.arrays import Array, IntArray
from ._util.text import did_you_mean

ROOT_NAME = "(any)"


class Nodes:
    """The nodes of a hierarchy; ask a hierarchy for its own by ``hierarchy.nodes``.

    In `order` the classes of every node stand side by side: node n has the classes
    ``order[starts[n]:stops[n]]``. So sums over nodes are sums over slices.

    Attributes:
        num_classes: K, the number of classes.
        root: The node of all classes, K.
        order: The classes, those of a cluster side by side.
        starts: Where in `order` each node begins.
        stops: Where in `order` each node ends, exclusive.
        parents: The smallest node above each node; -1 for the root.
        first_levels: The coarsest level at which a node is a cluster; -1 for the root.
        of_level: For each level an array cluster → node.
        names: A name for each node, all different where those of the classes are.

    Examples:
        >>> from coarse2fine import Hierarchy
        >>> nodes = Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []}).nodes
        >>> nodes.names
        ('cat', 'dog', 'car', '(any)', 'pet')
        >>> nodes.parents
        array([ 4,  4,  3, -1,  3])
    """

    def __init__(
        self,
        levels: Sequence[IntArray],
        class_names: Sequence[str] | None,
        cluster_names: Sequence[Sequence[str]] | None,
        other_names: Mapping[str, str] | None = None,
    ) -> None:
        self.num_classes = self.root = len(levels[-1])
        # Sorted by the coarsest level first; levels are nested, so each cluster is a slice.
        self.order: IntArray = np.lexsort(tuple(reversed(levels)))
        self._number(levels)
        self._lookup: dict[str, int] = {}
        self._several: dict[str, list[int]] = {}  # the nodes that have one name
        self.names: tuple[str, ...] = self._name(class_names, cluster_names)
        self._know_others(other_names or {})

    def __len__(self) -> int:
        return len(self.parents)

    def classes(self, node: int) -> IntArray:
        """Return the classes of a node, in ascending order."""
        return np.sort(self.order[self.starts[node] : self.stops[node]])

    @property
    def sizes(self) -> IntArray:
        """The number of classes of each node."""
        return self.stops - self.starts

    @cached_property
    def upwards(self) -> IntArray:
        """Each node's path up to the root, itself first; the root fills the ends of the rows.

        Examples:
            >>> from coarse2fine import Hierarchy
            >>> Hierarchy.from_taxonomy({"pet": ["cat", "dog"], "car": []}).nodes.upwards
            array([[0, 4, 3],
                   [1, 4, 3],
                   [2, 3, 3],
                   [3, 3, 3],
                   [4, 3, 3]])
        """
        parents = np.where(self.parents < 0, self.root, self.parents)
        steps = [np.arange(len(self))]
        while (steps[-1] != self.root).any():
            steps.append(parents[steps[-1]])
        return np.stack(steps, axis=1)

    def at_level(self, level: int) -> IntArray:
        """Return an array node → node: the coarser of each node and its cluster at a level.

        Args:
            level: The index of a level.

        Examples:
            >>> from coarse2fine import Hierarchy
            >>> Hierarchy.from_levels([[0, 0, 1, 2], [0, 1, 2, 3]]).nodes.at_level(0)
            array([5, 5, 2, 3, 4, 5])
        """
        clusters = self.of_level[level][self._levels[level][self.order[self.starts]]]
        return np.where(self.sizes[clusters] >= self.sizes, clusters, np.arange(len(self)))

    def within(self, clusters: IntArray) -> IntArray:
        """Return the cluster in which each node lies, -1 where it has classes of several.

        Args:
            clusters: The cluster of each class: a level, also that of another hierarchy.

        Examples:
            >>> from coarse2fine import Hierarchy
            >>> nodes = Hierarchy.from_levels([[0, 0, 1], [0, 1, 2]]).nodes
            >>> nodes.within(np.array([5, 5, 7]))
            array([ 5,  5,  7, -1,  5])
        """
        ordered = clusters[self.order]
        changes = np.concatenate([[0], np.cumsum(np.diff(ordered) != 0)])
        is_one = changes[self.starts] == changes[self.stops - 1]
        return np.where(is_one, ordered[self.starts], -1)

    def of_classes(self, classes: Sequence[int]) -> int:
        """Return the smallest node with all of these classes.

        Args:
            classes: At least one.

        Examples:
            >>> from coarse2fine import Hierarchy
            >>> Hierarchy.from_levels([[0, 0, 1], [0, 1, 2]]).nodes.of_classes([1, 0])
            4
        """
        places = self.starts[list(classes)]
        first, last = places.min(), places.max()
        above = (int(classes[0]), *self.ancestors(int(classes[0])))
        holds = (node for node in above if self.starts[node] <= first and last < self.stops[node])
        return next(holds)

    def probabilities(self, classes: Array) -> Array:
        """Return the probability of every node, (N, nodes), from those of the classes, (N, K).

        Args:
            classes: A row of probabilities for each sample.
        """
        ordered = np.concatenate([classes[:, self.order], np.zeros((len(classes), 1))], axis=1)
        # reduceat sums from each index to the next one; of the pairs (start, stop) every other.
        edges = np.stack([self.starts, self.stops], axis=1).reshape(-1)
        return np.asarray(np.add.reduceat(ordered, edges, axis=1)[:, ::2])

    def ancestors(self, node: int) -> tuple[int, ...]:
        """Return the nodes above a node, nearest first, the root last."""
        found = []
        while (node := int(self.parents[node])) >= 0:
            found.append(node)
        return tuple(found)

    def encode(self, names: Iterable[str]) -> IntArray:
        """Return the nodes of these names.

        A name that a class and a cluster share means the class.

        Args:
            names: Of classes or clusters.
        """
        if isinstance(names, str):
            raise TypeError(f"names must be a sequence of strings. Got {short(names)}.")
        return np.array([self._find(name) for name in names], np.int64)

    def decode(self, nodes: Any) -> list[str]:
        """Return the names of these nodes.

        Args:
            nodes: Of shape (N).
        """
        found = to_class_indices(nodes, len(self), "nodes")
        if found.ndim != 1:
            raise ValueError(f"nodes must have shape (N). Got {tuple(found.shape)}.")
        return [self.names[node] for node in found.tolist()]

    @property
    def known_names(self) -> Mapping[str, int]:
        """The node of each name that means just one: those of `names`, and further ones."""
        return {name: node for name, node in self._lookup.items() if name not in self._several}

    def no_class(self, name: str) -> str:
        """Return what a name may mean that is none of a class, to be added to an error.

        Args:
            name: It was given where only classes may be.
        """
        if name in self._lookup:
            return " It is a cluster; give only samples that are labelled with their class."
        return did_you_mean(name, self.names[: self.num_classes])

    def _find(self, name: Any) -> int:
        node = self._lookup.get(name) if isinstance(name, str) else None
        if node is not None and name not in self._several:
            return node
        if not isinstance(name, str):
            raise TypeError(f"a name must be a string. Got {short(name)}.")
        if node is None:
            hint = did_you_mean(name, self._lookup)
            raise ValueError(f"the hierarchy has no class or cluster {short(name)}.{hint}")
        if node < self.num_classes:
            same = ", ".join(map(str, self._several[name]))
            raise ValueError(f"{name!r} names several classes, {same}; call them differently.")
        same = ", ".join(repr(self.names[other]) for other in self._several[name])
        raise ValueError(f"{name!r} names several clusters. Say which: {same}.")

    def _know(self, name: str, node: int) -> None:
        """Note a name of a node; it may be that of several."""
        first = self._lookup.setdefault(name, node)
        if first != node:
            nodes = self._several.setdefault(name, [first])
            nodes += [node] * (node not in nodes)

    def _number(self, levels: Sequence[IntArray]) -> None:
        """Give each set of classes a number, from the coarsest level to the finest."""
        classes = self.num_classes
        self._levels = tuple(levels)
        place = np.empty(classes, np.int64)
        place[self.order] = np.arange(classes)
        starts, stops = [place, np.zeros(1, np.int64)], [place + 1, np.full(1, classes)]
        parents = [np.full(classes, self.root), np.full(1, -1)]
        first_levels = [np.full(classes, -1), np.full(1, -1)]
        of_level: list[IntArray] = []
        above, count = np.full(classes, self.root), classes + 1  # each class's node one level up
        for at, level in enumerate(levels):
            sizes = np.bincount(level)
            begin = np.full(len(sizes), classes)
            np.minimum.at(begin, level, place)
            member = self.order[begin]  # a class of each cluster
            node, parent = member.copy(), above[member]
            size_above = _size_of(parent, classes, np.concatenate(stops) - np.concatenate(starts))
            is_same = (sizes == size_above) & (sizes > 1)
            node[is_same] = parent[is_same]
            is_new = (sizes > 1) & ~is_same
            node[is_new] = count + np.arange(is_new.sum())
            count += int(is_new.sum())
            is_class = (sizes == 1) & (parent >= classes)  # and not by itself already above
            parents[0][member[is_class]] = parent[is_class]
            first_levels[0][member[is_class]] = at
            parents.append(parent[is_new])
            starts.append(begin[is_new])
            stops.append(begin[is_new] + sizes[is_new])
            first_levels.append(np.full(int(is_new.sum()), at))
            of_level.append(node)
            above = node[level]
        self.starts, self.stops = np.concatenate(starts), np.concatenate(stops)
        self.parents, self.first_levels = np.concatenate(parents), np.concatenate(first_levels)
        self.of_level: tuple[IntArray, ...] = tuple(of_level)

    def _name(
        self,
        class_names: Sequence[str] | None,
        cluster_names: Sequence[Sequence[str]] | None,
    ) -> tuple[str, ...]:
        """Return a name for each node, and note all names that it is known by."""
        own = [str(at) for at in range(self.num_classes)] if class_names is None else class_names
        names: list[str] = [*own, *[""] * (len(self) - self.num_classes)]
        for at, name in enumerate(own):
            self._know(name, at)
        taken = set(own)
        for at, nodes in enumerate(self.of_level[:-1]):
            given = [""] * len(nodes) if cluster_names is None else cluster_names[at]
            for cluster, (node, name) in enumerate(zip(nodes.tolist(), given, strict=True)):
                if name and name not in taken:
                    self._know(name, node)
                if node > self.root and not names[node]:
                    names[node] = name or f"level {at} cluster {cluster}"
        names[self.root] = ROOT_NAME
        return self._distinct(names, taken)

    def _distinct(self, names: list[str], taken: set[str]) -> tuple[str, ...]:
        """Add the level, and where need be the number, to names of clusters that others have."""
        for node in range(self.root, len(names)):
            name, level = names[node], self.first_levels[node]
            if name in self._several or name in taken:
                name = f"{name} (level {level})"
            names[node] = name if name not in taken else f"{name[:-1]}, node {node})"
            taken.add(names[node])
            self._lookup.setdefault(names[node], node)
        return tuple(names)

    def _know_others(self, other_names: Mapping[str, str]) -> None:
        """Note further names, each with one that a node has already; others mean nothing here."""
        for name, own in other_names.items():
            if own in self._lookup and name not in self._lookup:
                self._lookup[name] = self._lookup[own]


def _size_of(nodes: IntArray, classes: int, sizes: IntArray) -> IntArray:
    """Return the sizes of nodes, classes among them."""
    return np.where(nodes < classes, 1, sizes[nodes])
