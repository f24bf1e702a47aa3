"""What the labels of the scikit-learn estimator are: classes, or nodes of a hierarchy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._hierarchy.levels import match_names
from .._util.arrays import IntArray
from ..hierarchy import Hierarchy


class Labels(NamedTuple):
    """Labels as numbers.

    Args:
        classes: The K classes, sorted.
        targets: The class of each sample or, from K on, its node of the hierarchy.
        hierarchy: With its classes in that order; None where none was given.
    """

    classes: NDArray[Any]
    targets: IntArray
    hierarchy: Hierarchy | None

    @property
    def has_nodes(self) -> bool:
        """Whether some labels are no classes."""
        return bool((self.targets >= len(self.classes)).any())


def read_labels(labels: NDArray[Any], given: Hierarchy | None) -> Labels:
    """Return what labels mean.

    Names may be those of any node of a hierarchy that knows its classes by name, and then its
    classes are the classes. Otherwise the distinct labels are.

    Args:
        labels: One for each sample.
        given: The hierarchy, if there is one already.

    Examples:
        >>> pets = Hierarchy.from_taxonomy({"dog": ["poodle", "husky"], "cat": ["tabby", "manx"]})
        >>> found = read_labels(np.array(["tabby", "dog", "husky"]), pets)
        >>> found.classes.tolist(), found.targets.tolist()
        (['husky', 'manx', 'poodle', 'tabby'], [3, 5, 0])
    """
    distinct, places = np.unique(labels, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError(f"y must hold two classes or more. Got one class, {labels[0]!r}.")
    if given is None:
        return Labels(distinct, places, None)
    is_flat = len(given.levels) == 1  # and has no clusters
    if given.class_names is not None and isinstance(distinct[0], str) and not is_flat:
        names = sorted(given.class_names)
        hierarchy = given.for_classes(names)
        targets = hierarchy.encode(distinct.tolist())[places]
        kind = object if labels.dtype == object else str  # as the labels are
        return Labels(np.array(names, kind), targets, hierarchy)
    return Labels(distinct, places, _in_order(given, [str(label) for label in distinct]))


def _in_order(given: Hierarchy, names: list[str]) -> Hierarchy:
    """Return the hierarchy with its classes in the order of these names."""
    if len(given.levels) > 1:
        return given.for_classes(names)
    match_names(given.class_names, names, given.num_classes)
    return given  # as for_classes would warn again that it is flat
