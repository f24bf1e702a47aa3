"""The taxonomy that several test files share."""

from __future__ import annotations

from coarse2fine import Hierarchy

NESTED = {
    "animal": {"pet": ["cat", "dog"], "wild": ["fox", "wolf"]},
    "vehicle": {"road": ["car", "bus"], "rail": ["tram", "train"]},
}
LEVELS = [[0, 0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 2, 2, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7]]
CLASSES = ("cat", "dog", "fox", "wolf", "car", "bus", "tram", "train")
GROUPS = (("animal", "vehicle"), ("pet", "wild", "road", "rail"))
PAIRS = [
    *[("animal", "pet"), ("animal", "wild"), ("vehicle", "road"), ("vehicle", "rail")],
    *[("pet", "cat"), ("pet", "dog"), ("wild", "fox"), ("wild", "wolf")],
    *[("road", "car"), ("road", "bus"), ("rail", "tram"), ("rail", "train")],
]


def as_lists(hierarchy: Hierarchy) -> list[list[int]]:
    return [level.tolist() for level in hierarchy.levels]


def assert_is_the_example(hierarchy: Hierarchy) -> None:
    assert as_lists(hierarchy) == LEVELS
    assert hierarchy.class_names == CLASSES
    assert hierarchy.cluster_names == GROUPS
