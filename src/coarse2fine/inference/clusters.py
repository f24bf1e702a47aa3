"""What the clusters of a model's classes are called."""

from __future__ import annotations

from collections.abc import Sequence

from ..hierarchy import Hierarchy

_NAMED = 3  # classes by which a cluster without a name is called


def clusters_of_classes(
    hierarchy: Hierarchy | None, class_names: tuple[str, ...]
) -> list[tuple[str, ...]]:
    """Return for each class the names of its clusters, coarsest first.

    Args:
        hierarchy: None for no clusters.
        class_names: Of the classes.
    """
    if hierarchy is None:
        return [()] * len(class_names)
    depth = len(hierarchy.levels) - 1
    names = [cluster_names(hierarchy, level, class_names) for level in range(depth)]
    levels = [level.tolist() for level in hierarchy.levels[:-1]]
    return [
        tuple(names[level][levels[level][index]] for level in range(depth))
        for index in range(len(class_names))
    ]


def cluster_names(
    hierarchy: Hierarchy, level: int, class_names: Sequence[str] | None = None
) -> list[str]:
    """Return a name for each cluster of a level: its own, or its first classes.

    Args:
        hierarchy: The hierarchy.
        level: One of its levels.
        class_names: Of the classes. Defaults to None: the hierarchy's.

    Examples:
        >>> animals = Hierarchy.from_levels([[0, 0, 0, 0, 1]], ["cat", "dog", "fox", "cow", "car"])
        >>> cluster_names(animals, 0)
        ['cat, dog, fox, …', 'car']
    """
    classes = class_names or hierarchy.class_names or range(hierarchy.num_classes)
    given = None if hierarchy.cluster_names is None else hierarchy.cluster_names[level]
    named = []
    for cluster, members in enumerate(hierarchy.clusters(level)):
        first = [str(classes[index]) for index in members[:_NAMED]]
        listed = ", ".join([*first, "…"] if len(members) > _NAMED else first)
        named.append((given[cluster] if given else "") or listed)
    return named


def node_names(hierarchy: Hierarchy) -> list[str]:
    """Return a name for each node, that of a cluster as in `cluster_names`.

    Args:
        hierarchy: The hierarchy.

    Examples:
        >>> node_names(Hierarchy.from_levels([[0, 0, 1]], ["cat", "dog", "car"]))
        ['cat', 'dog', 'car', '(any)', 'cat, dog']
    """
    nodes = hierarchy.nodes
    names = list(nodes.names)
    for level in reversed(range(len(hierarchy.levels) - 1)):  # the name at the coarsest one counts
        own = cluster_names(hierarchy, level)
        for node, name in zip(nodes.of_level[level].tolist(), own, strict=True):
            if node > nodes.root:
                names[node] = name
    return names
