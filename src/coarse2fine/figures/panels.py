"""A panel of a figure for papers: values, and what they and their methods are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Values = TypeVar("Values", covariant=True)


@dataclass(frozen=True)
class Panel(Generic[Values]):
    """What one panel shows.

    Args:
        title: Above it; may be empty.
        labels: What each method but the baseline is called, by its name and in the order of
            the legend.
        values: What the figure's ``values_of`` gives.
    """

    title: str
    labels: Mapping[str, str]
    values: Values
