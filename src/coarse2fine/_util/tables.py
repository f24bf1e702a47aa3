"""Small CSV files, read whole without any extra; `coarse2fine.data` reads large ones by Arrow."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a CSV file that are not blank, each with the number of its line.

    Args:
        path: The file, in UTF-8. Space around cells is left out.

    Raises:
        ValueError: It is no CSV file, or not in UTF-8.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                cells = [cell.strip() for cell in row]
                if any(cells):
                    yield reader.line_num, cells
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"not readable as CSV: {error}") from None
