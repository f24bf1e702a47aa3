"""Each value once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def distinct(values: Iterable[T]) -> list[T]:
    """Return each value once, in order; values need no hash, as settings may be lists.

    Args:
        values: Any that can be compared.

    Examples:
        >>> distinct([{"a": 1}, {"a": 2}, {"a": 1}])
        [{'a': 1}, {'a': 2}]
    """
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found
