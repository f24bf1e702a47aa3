"""An Arrow table that knows what to call its rows in an error."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from .._printable import brief
from ..errors import require
from .readers import Table


class Rows:
    """The rows of one or more tables.

    Args:
        pieces: The tables, in order, each with what it is called.
    """

    def __init__(self, pieces: Sequence[tuple[str, Table]]) -> None:
        arrow = require("pyarrow", "train")
        self.titles = [title for title, _ in pieces]
        tables = [table for _, table in pieces]
        self.starts: list[int] = list(accumulate((table.num_rows for table in tables), initial=0))
        try:
            self.table = arrow.concat_tables(tables, promote_options="permissive")
        except arrow.ArrowException as error:
            raise ValueError(
                f"the columns of {self.titles[0]} and {self.titles[-1]} do not go together "
                f"({brief(str(error).rstrip('.'))})."
            ) from None

    def __len__(self) -> int:
        return self.starts[-1]

    @property
    def title(self) -> str:
        """What the rows together are called: the first table."""
        return self.titles[0]

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        names: list[str] = self.table.column_names
        return names

    def column(self, name: str) -> Any:
        """Return a column as a `pyarrow.ChunkedArray`, or say which there are."""
        if name not in self.names:
            raise ValueError(
                f"{self.title} has no column {brief(name)!r}; it has "
                f"{brief(', '.join(map(repr, self.names)))}."
            )
        values = self.table[name]
        if require("pyarrow", "train").types.is_dictionary(values.type):
            return values.cast(values.type.value_type)
        return values

    def place(self, row: int) -> str:
        """Return what to call a row, counted from 0: its table, and its number from 1 there."""
        piece = bisect_right(self.starts, row) - 1
        return f"{self.titles[piece]}, row {row - self.starts[piece] + 1}"

    def first_place(self, mask: Any) -> str | None:
        """Return what to call the first row of which something is true.

        Args:
            mask: An Arrow array of booleans; null counts as false.
        """
        row = require("pyarrow.compute", "train").index(mask, True).as_py()
        return None if row < 0 else self.place(row)
