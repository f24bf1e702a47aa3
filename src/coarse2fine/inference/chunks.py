"""A few samples at a time, from whatever holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..data.sources.table_stream import OnFault, TablePart

__all__ = ["FAULTS", "Chunk", "OnFault", "grouped", "sliced"]

FAULTS = (ValueError, TypeError, OSError)
"""What is raised for a sample that cannot be used."""


@dataclass(frozen=True)
class Chunk:
    """Samples as they were given.

    Args:
        names: What to call each.
        values: One a sample: a list of paths, encoded images, images, arrays or sentences;
            an array or tensor; or rows of a table.
    """

    names: Sequence[str]
    values: Any

    def __len__(self) -> int:
        return len(self.names)

    def singles(self) -> Iterator[Chunk]:
        """Yield each sample by itself."""
        for row in range(len(self)):
            yield self._cut(row, row + 1)

    def _cut(self, start: int, stop: int) -> Chunk:
        is_table = isinstance(self.values, TablePart)
        values = self.values.cut(start, stop) if is_table else self.values[start:stop]
        return Chunk(self.names[start:stop], values)


def grouped(items: Iterable[tuple[str, Any]], size: int) -> Iterator[Chunk]:
    """Yield named samples that come one at a time in chunks of a size."""
    left = iter(items)
    while found := list(islice(left, size)):
        yield Chunk([name for name, _ in found], [value for _, value in found])


def sliced(values: Any, size: int, name: str = "sample") -> Iterator[Chunk]:
    """Yield an array or tensor, one row a sample, in chunks of a size.

    Args:
        values: The samples.
        size: How many a chunk has at most.
        name: What to call a sample, before its number from 0. Defaults to ``"sample"``.
    """
    for start in range(0, len(values), size):
        rows = values[start : start + size]
        yield Chunk([f"{name} {start + row}" for row in range(len(rows))], rows)
