"""Hierarchy: nested partitions of the classes, coarsest first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ._hierarchy.files import read_content, write_content
from ._hierarchy.levels import (
    FORMAT,
    VERSION,
    match_names,
    read_parts,
    to_class_indices,
    to_level,
)
from ._hierarchy.tree import render
from ._hierarchy.value import NestedLevels
from ._util.arrays import IntArray, check_whole, is_tensor
from ._util.text import brief
from .clustering import Linkage, cluster_distances, cluster_embeddings
from .distances import class_distances
from .nodes import Nodes

if TYPE_CHECKING:
    from torch import nn

CONFUSION_METRICS = ("confusion", "confusion_distance")


class Hierarchy(NestedLevels):
    """Nested partitions of K classes, from the coarsest to the classes themselves.

    An immutable value that is valid once it exists: compare it with ``==``, print it to see
    the tree. Create one by a ``from_...`` method or `load`.

    Attributes:
        levels: The partitions, coarsest first, each an array class → cluster with ids from
            0 without gaps; the last one is the classes themselves.
        class_names: The names of the classes, or None.
        cluster_names: For each level but the last the names of its clusters, or None.
        other_names: Further names, each with that of the class or cluster that it means: a group
            of a taxonomy may have the same classes as the one above it, or one class alone.
        approximate: Whether its levels come from approximate clustering, see `from_embeddings`.

    Examples:
        >>> hierarchy = Hierarchy.from_levels([[0, 0, 0, 1]], ["cat", "dog", "fox", "car"])
        >>> print(hierarchy)
        4 classes: 2 → 4
        ├── cat, dog, fox
        └── car
        >>> hierarchy.clusters(0)
        ((0, 1, 2), (3,))
        >>> hierarchy.coarsen([3, 2, 1], level=0)
        array([1, 0, 0])
    """

    __slots__ = ("_nodes",)
    _nodes: Nodes

    # ------------------------------------------------------------------ ways to create one

    @classmethod
    def from_classifier(
        cls,
        model: nn.Module,
        metric: Any = "embedding",
        *,
        head: str | None = None,
        confusion: Any = None,
        linkage: Linkage = "single",
        seed: int = 0,
        class_names: Sequence[str] | None = None,
        approximate: bool = False,
        executor: str | None = None,
    ) -> Hierarchy:
        """Cluster the classes of a trained classifier (Algorithm 2 of the paper).

        Args:
            model: The classifier; its final layer is found by `find_head`.
            metric: How far apart classes are: ``"embedding"``, ``"embedding_similarity"``,
                ``"embedding_centred"``, ``"confusion"``, ``"confusion_distance"``,
                ``"random"``, or a K×K matrix of distances, see `class_distances`. Defaults to
                ``"embedding"``.
            head: The name of the final layer, if it cannot be found. Defaults to None.
            confusion: For the two confusion metrics: a confusion matrix on validation
                data, or a pair (predictions, targets). Defaults to None.
            linkage: See `cluster_distances`. Defaults to ``"single"``.
            seed: Of the random metric. Defaults to 0.
            class_names: Defaults to None.
            approximate: For the metric ``"embedding"``, see `cluster_embeddings`. Defaults to
                False.
            executor: Likewise. Defaults to None.
        """
        check_is_of_embeddings(metric, approximate, executor)
        from .heads import class_vectors  # which imports torch

        if isinstance(metric, str) and metric in CONFUSION_METRICS:
            if confusion is None:
                raise ValueError(
                    f"metric {metric!r} needs confusion=: a K×K confusion matrix on validation "
                    f"data, or a pair (predictions, targets)."
                )
            # Where the names tell how many classes there are, the model may do without a head.
            known = class_vectors(model, head) if class_names is None else class_names
            return cls.from_confusion(
                confusion,
                metric,
                num_classes=len(known),
                linkage=linkage,
                class_names=class_names,
            )
        vectors = class_vectors(model, head)
        # From the vectors themselves, so that the K×K distances of many classes are never stored.
        if isinstance(metric, str) and metric == "embedding":
            return cls.from_embeddings(
                vectors,
                linkage=linkage,
                class_names=class_names,
                approximate=approximate,
                executor=executor,
            )
        distances = class_distances(vectors, metric, num_classes=len(vectors), seed=seed)
        return cls.from_distances(distances, linkage=linkage, class_names=class_names)

    @classmethod
    def from_embeddings(
        cls,
        embeddings: Any,
        *,
        linkage: Linkage = "single",
        class_names: Sequence[str] | None = None,
        approximate: bool = False,
        executor: str | None = None,
    ) -> Hierarchy:
        """Cluster classes by the cosine distances of a K×E matrix, one row per class.

        Args:
            embeddings: See `cluster_embeddings`.
            linkage: See `cluster_distances`. Defaults to ``"single"``.
            class_names: Defaults to None.
            approximate: See `cluster_embeddings`; the hierarchy says that it is. Defaults to
                False.
            executor: See `cluster_embeddings`. Defaults to None.
        """
        found = cluster_embeddings(embeddings, linkage, approximate=approximate, executor=executor)
        return cls(found.levels, class_names, approximate=found.approximate)

    @classmethod
    def from_distances(
        cls,
        distances: Any,
        *,
        linkage: Linkage = "single",
        class_names: Sequence[str] | None = None,
    ) -> Hierarchy:
        """Cluster classes by a symmetric K×K matrix of their distances."""
        return cls(cluster_distances(distances, linkage).levels, class_names)

    @classmethod
    def from_confusion(
        cls,
        confusion: Any,
        metric: str = "confusion_distance",
        *,
        num_classes: int | None = None,
        linkage: Linkage = "single",
        class_names: Sequence[str] | None = None,
    ) -> Hierarchy:
        """Cluster classes by how often they are confused with each other.

        Args:
            confusion: A K×K confusion matrix, rows the true classes, in counts or rates;
                or a pair (predictions, targets).
            metric: ``"confusion_distance"`` puts together what is often confused,
                ``"confusion"`` what is rarely confused. Defaults to
                ``"confusion_distance"``.
            num_classes: K, if predictions and targets may lack some classes. Defaults to None.
            linkage: See `cluster_distances`. Defaults to ``"single"``.
            class_names: Defaults to None.
        """
        if metric not in CONFUSION_METRICS:
            raise ValueError(f"metric must be one of {CONFUSION_METRICS}. Got {metric!r}.")
        distances = class_distances(confusion, metric, num_classes=num_classes)
        return cls.from_distances(distances, linkage=linkage, class_names=class_names)

    @classmethod
    def from_levels(
        cls,
        levels: Iterable[Any],
        class_names: Sequence[str] | None = None,
        cluster_names: Sequence[Sequence[str]] | None = None,
    ) -> Hierarchy:
        """Return a hierarchy with the given levels.

        Args:
            levels: Coarsest first, each an array class → cluster of length K, or a list of
                clusters, which are lists of classes. The last, finest level, each class by
                itself, may be left out.
            class_names: Defaults to None.
            cluster_names: Names of the clusters of each level above the classes. Defaults
                to None.
        """
        if not isinstance(levels, Iterable):
            raise TypeError(f"levels must be a list of levels, coarsest first. Got {levels!r}.")
        arrays = [to_level(level, f"levels[{index}]") for index, level in enumerate(levels)]
        if arrays and len(np.unique(arrays[-1])) < len(arrays[-1]):
            arrays.append(np.arange(len(arrays[-1])))
        return cls(arrays, class_names, cluster_names)

    @classmethod
    def from_taxonomy(
        cls,
        taxonomy: Any,
        class_names: Sequence[str] | None = None,
        *,
        columns: Sequence[str] = ("coarse_label", "fine_label"),
        parents: Literal["first"] | None = None,
    ) -> Hierarchy:
        """Read a tree of classes made by people.

        Classes may stand at different depths: one that sits higher than others stays a cluster
        of its own at the levels below it.

        Args:
            taxonomy: One of

                - a nested dict whose leaves are classes, ``{"animal": {"pet": ["cat",
                  "dog"]}, "vehicle": ["car"]}``, or a path to such a JSON file;
                - a path to a CSV file with the columns ``parent`` and ``child``;
                - a path to a CSV file, or a table (dict of columns, DataFrame), with the
                  columns named by `columns`, in which every row is a sample. Its finest
                  labels may be empty: it is not known any finer, or there is nothing finer.
            class_names: The classes in the order of the model's outputs. Defaults to None:
                the order in which the tree names them; integer labels keep their own.
            columns: The labels of a sample from the coarsest to the finest. Defaults to
                ``("coarse_label", "fine_label")``.
            parents: ``"first"`` takes a node that has several parents below the first of them,
                in the order of the tree or file. Defaults to None: that is an error.
        """
        from .taxonomy import read_taxonomy

        return cls(*read_taxonomy(taxonomy, class_names, columns, parents))

    # ------------------------------------------------------------------ levels and classes

    @property
    def num_classes(self) -> int:
        """K, the number of classes."""
        return len(self.levels[-1])

    @property
    def num_clusters(self) -> tuple[int, ...]:
        """The number of clusters at each level, K at the last."""
        return tuple(int(level.max()) + 1 for level in self.levels)

    def clusters(self, level: int) -> tuple[tuple[int, ...], ...]:
        """Return the clusters of a level, each as the classes in it."""
        owner = self._level(level)
        order = np.argsort(owner, kind="stable")
        cuts = np.cumsum(np.bincount(owner))[:-1]
        return tuple(tuple(part.tolist()) for part in np.split(order, cuts))

    def coarsen(self, labels: Any, level: int) -> Any:
        """Replace class labels by their clusters at a level (Algorithm 1 of the paper).

        Returns an int64 tensor on the same device for a torch tensor, else a numpy array.
        """
        owner = self._level(level)
        labels = to_class_indices(labels, self.num_classes)
        if is_tensor(labels):
            import torch

            # A copy, since torch has no read-only tensors and would warn of one.
            return torch.from_numpy(owner.copy()).to(labels.device)[labels]
        return owner[labels]

    @property
    def nodes(self) -> Nodes:
        """The classes, the root and the clusters, numbered and named, see `Nodes`."""
        # Made when first asked for, and kept, as a hierarchy never changes.
        if not hasattr(self, "_nodes"):
            names = self.class_names, self.cluster_names, self.other_names
            nodes = Nodes(self.levels, *names)
            object.__setattr__(self, "_nodes", nodes)
        return self._nodes

    def encode(self, names: Iterable[str]) -> IntArray:
        """Return the nodes of these names, of classes or of clusters.

        Examples:
            >>> hierarchy = Hierarchy.from_taxonomy({"animal": ["cat", "dog"], "thing": ["car"]})
            >>> hierarchy.encode(["cat", "animal"])
            array([0, 4])
            >>> hierarchy.decode([0, 4])
            ['cat', 'animal']
        """
        return self.nodes.encode(names)

    def decode(self, nodes: Any) -> list[str]:
        """Return the names of these nodes."""
        return self.nodes.decode(nodes)

    def keep_levels(self, levels: Iterable[int]) -> Hierarchy:
        """Return a hierarchy with only the given levels, and the finest."""
        depth = len(self.levels)
        if not isinstance(levels, Iterable):
            raise TypeError(f"levels must be a list of levels to keep. Got {levels!r}.")
        kept = sorted({self._index(level) for level in levels} | {depth - 1})
        groups = self.cluster_names
        return Hierarchy(
            [self.levels[level] for level in kept],
            self.class_names,
            None if groups is None else [groups[level] for level in kept[:-1]],
            self.other_names,
            self.approximate,
        )

    def max_levels(self, count: int) -> Hierarchy:
        """Return a hierarchy thinned evenly to at most `count` levels.

        The coarsest and the finest stay; one level means the finest.
        """
        if check_whole(count, "count") < 1:
            raise ValueError(f"count must be at least 1. Got {count}.")
        depth = len(self.levels)
        if count >= depth:
            return self
        return self.keep_levels(np.linspace(depth - 1, 0, count).round().astype(int).tolist())

    def max_cluster_share(self, share: float) -> Hierarchy:
        """Return a hierarchy without lopsided levels, which guessing nearly solves.

        A coarse level is left out where its largest cluster holds more than `share` of the
        classes. The finest of the coarse levels stays in any case.

        Args:
            share: Between 0 and 1.

        Examples:
            >>> Hierarchy.from_levels([[0, 0, 0, 1], [0, 0, 1, 2]]).max_cluster_share(0.5)
            Hierarchy(num_classes=4, num_clusters=(3, 4))
        """
        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1. Got {share}.")
        most = share * self.num_classes
        finest = len(self.levels) - 1
        kept = [at for at in range(finest - 1) if np.bincount(self.levels[at]).max() <= most]
        return self.keep_levels([*kept, max(finest - 1, 0)])

    def for_classes(self, class_names: Sequence[str]) -> Hierarchy:
        """Return the hierarchy with its classes in the order of some data.

        Classes are matched by name; a hierarchy without names gets these.
        """
        names = tuple(class_names)
        order = match_names(self.class_names, names, self.num_classes)
        # Cluster ids stay, and with them the cluster names; only the classes are reordered, and
        # the finest level is 0..K-1 in any order of them.
        coarse = [level[order] for level in self.levels[:-1]]
        return Hierarchy(
            [*coarse, self.levels[-1]],
            names,
            self.cluster_names,
            self.other_names,
            self.approximate,
        )

    # ------------------------------------------------------------------ text, files, value

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, width: int = 100, max_lines: int = 80) -> str:
        """Return the tree as text, cut where it is wider or longer than asked for."""
        return render(self, width=width, max_lines=max_lines)

    def plot(self) -> Any:
        """Return a plotly figure to zoom into by clicks; it needs the extra ``report``."""
        from .figures.icicle import plot

        return plot(self.levels, self.class_names, self.cluster_names)

    def to_dict(self) -> dict[str, Any]:
        """Return what `save` writes, as plain lists and strings."""
        return {**self._content(), "levels": [level.tolist() for level in self.levels[:-1]]}

    @classmethod
    def from_dict(cls, content: Any) -> Hierarchy:
        """Return the hierarchy that `to_dict` described, after checking every part of it."""
        return cls(*read_parts(content))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the hierarchy; an existing file is replaced whole or not at all.

        JSON has the fields ``format`` (``"coarse2fine-hierarchy"``), ``version`` (1),
        ``num_classes``, ``levels`` (all but the finest, coarsest first, each a list of K cluster
        ids), ``class_names`` (a list or null), ``cluster_names`` (a list for each of these levels,
        or null) and, where there are any, ``other_names`` (of groups, each with the name of the
        cluster or class that has the same classes).

        Safetensors have the same as arrays: ``levels.0`` and so on, in the smallest unsigned type;
        of names ``class_names.text``, all in one piece of UTF-8, and ``class_names.lengths``, how
        many characters each has; likewise ``cluster_names.0.text``. The rest is metadata.

        Args:
            path: A name that ends in ``.safetensors`` is written as such, which is smaller and
                faster for many classes; any other as JSON.
        """
        write_content(Path(path), self._content())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Hierarchy:
        """Read a hierarchy that `save` wrote."""
        content = read_content(Path(path))
        try:
            return cls.from_dict(content)
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}: {brief(error)}") from error

    def __repr__(self) -> str:
        how = ", approximate=True" if self.approximate else ""
        return f"Hierarchy(num_classes={self.num_classes}, num_clusters={self.num_clusters}{how})"

    def _content(self) -> dict[str, Any]:
        """Return what a file holds, with levels that are arrays."""
        groups = self.cluster_names
        return {
            "format": FORMAT,
            "version": VERSION,
            "num_classes": self.num_classes,
            "levels": self.levels[:-1],
            "class_names": None if self.class_names is None else list(self.class_names),
            "cluster_names": None if groups is None else [list(group) for group in groups],
            **({"other_names": dict(self.other_names)} if self.other_names else {}),
            **({"approximate": True} if self.approximate else {}),
        }

    def _level(self, level: int) -> IntArray:
        return self.levels[self._index(level)]

    def _index(self, level: int) -> int:
        depth = len(self.levels)
        index = check_whole(level, "level")
        if not -depth <= index < depth:
            raise ValueError(
                f"level must lie in 0..{depth - 1}, or count from the end, -{depth}..-1. Got "
                f"{index}."
            )
        return index % depth


def check_is_of_embeddings(metric: Any, approximate: bool, executor: str | None) -> None:
    """Raise a `ValueError` for ways to cluster that a metric does not have."""
    if not isinstance(metric, str) or metric != "embedding":
        given = repr(metric) if isinstance(metric, str) else f"a {type(metric).__name__}"
        for what, value in (("approximate clustering", approximate), ("an executor", executor)):
            if value:
                raise ValueError(f"{what} is for the metric 'embedding'. Got {given}.")
