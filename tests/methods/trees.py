"""The nodes of hierarchies by enumeration, for tests of losses that use them."""

from __future__ import annotations

import torch
from torch import Tensor

from coarse2fine import Hierarchy

# pet {0, 1}, and over it land {0, 1, 2}; car {3, 4} is alone under the root, and so is 5.
# The clusters {3, 4} and {5} are at both levels.
DEEP = Hierarchy.from_levels([[0, 0, 0, 1, 1, 2], [0, 0, 1, 2, 2, 3]])


def paths(hierarchy: Hierarchy) -> list[list[frozenset[int]]]:
    """Return for each class the sets that hold it, from itself to all classes, each once."""
    classes = range(hierarchy.num_classes)
    sets = {frozenset(classes)}
    for level in hierarchy.levels:
        for cluster in set(level.tolist()):
            sets.add(frozenset(c for c in classes if level[c] == cluster))
    return [sorted((each for each in sets if c in each), key=len) for c in classes]


def height(of: frozenset[int], hierarchy: Hierarchy) -> int:
    """Return how many sets, one in the other, lie below one of them at most."""
    found = paths(hierarchy)
    return max(found[c].index(of) for c in of)


def meeting(one: int, other: int, hierarchy: Hierarchy) -> frozenset[int]:
    """Return the smallest set that holds two classes."""
    return next(each for each in paths(hierarchy)[one] if other in each)


def chance(of: frozenset[int], probabilities: Tensor) -> Tensor:
    """Return the probability of a set."""
    return probabilities[torch.tensor(sorted(of))].sum()
