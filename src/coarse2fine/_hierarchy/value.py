"""Levels and their names as one immutable value, checked when it is made."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._util.arrays import IntArray
from .levels import check_cluster_names, check_levels, check_names, check_other_names, frozen

if TYPE_CHECKING:
    from typing_extensions import Self  # of typing itself from Python 3.11 on


class NestedLevels:
    """What a `Hierarchy` is as a value: equal where its parts are equal, and never changed.

    Args:
        levels: The partitions, coarsest first, each an array class → cluster.
        class_names: Defaults to None.
        cluster_names: Of each level but the last. Defaults to None.
        other_names: Further names of classes and clusters, each with the usual one: those of
            groups with the same classes as another. Defaults to none.
        approximate: Whether clustering found the levels only approximately; two that differ
            in nothing else are equal. Defaults to False.
    """

    levels: tuple[IntArray, ...]
    class_names: tuple[str, ...] | None
    cluster_names: tuple[tuple[str, ...], ...] | None
    other_names: Mapping[str, str]
    approximate: bool

    __slots__ = ("approximate", "class_names", "cluster_names", "levels", "other_names")

    def __init__(
        self,
        levels: Sequence[IntArray],
        class_names: Sequence[str] | None = None,
        cluster_names: Sequence[Sequence[str]] | None = None,
        other_names: Mapping[str, str] | None = None,
        approximate: bool = False,
    ) -> None:
        levels = tuple(frozen(level, index) for index, level in enumerate(levels))
        check_levels(levels)
        counts = tuple(int(level.max()) + 1 for level in levels)
        names = None if class_names is None else check_names(class_names, counts[-1], "class_names")
        groups = None if cluster_names is None else check_cluster_names(cluster_names, counts)
        # Past this class's own __setattr__, which refuses everything.
        set_once = super().__setattr__
        set_once("levels", levels)
        set_once("class_names", names)
        set_once("cluster_names", groups)
        set_once("other_names", MappingProxyType(check_other_names(other_names)))
        set_once("approximate", approximate)
        if len(levels) == 1:
            warnings.warn(
                f"The hierarchy of {counts[-1]} classes has no level above the classes, so "
                f"training with it is plain training.",
                stacklevel=2,
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NestedLevels):
            return NotImplemented
        return self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; cannot delete {name!r}.")

    # Immutable, so a copy is the value itself. Pickling goes through the constructor: with
    # __slots__ and no __setattr__, pickle's own way would fail, and this one checks again.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        names = self.class_names, self.cluster_names, dict(self.other_names)
        return type(self), (self.levels, *names, self.approximate)

    def _value(self) -> tuple[Any, ...]:
        levels = tuple(level.tobytes() for level in self.levels)
        others = tuple(sorted(self.other_names.items()))
        return levels, self.class_names, self.cluster_names, others
