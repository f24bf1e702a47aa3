"""Tables as a model takes them: the columns of the training, or the one of the text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from torch import Tensor

from .._util.text import brief
from ..data.sources.features import features, text_column
from ..data.sources.table_labels import TARGET_NAMES
from ..data.sources.table_reader import Table, arrow_array, column_called, pa, table_of_objects
from ..data.sources.table_stream import TablePart
from .chunks import Chunk
from .preprocessing import Preprocessing, wrong_kind


def frame_part(value: Any, title: str = "the table") -> TablePart:
    """Return a frame, an Arrow table or a dict of columns as rows.

    Args:
        value: The table.
        title: What to call it. Defaults to ``"the table"``.
    """
    try:
        arrow = _arrow(value)
    except (pa.ArrowException, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"{title} cannot be used ({brief(error)}).") from error
    return TablePart(title, arrow, range(1, arrow.num_rows + 1))


def _arrow(value: Any) -> Any:
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatch):
        return pa.Table.from_batches([value])
    if isinstance(value, Mapping):
        return pa.table({str(name): arrow_array(list(value[name])) for name in value})
    if hasattr(value, "to_arrow"):  # as polars has it
        return value.to_arrow()
    return pa.Table.from_pandas(value, preserve_index=False)


def row_parts(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[TablePart]:
    """Yield dicts, one a row, as rows of a table in parts of a size."""
    left, first = iter(rows), 1
    while found := list(islice(left, size)):
        yield TablePart("the table", table_of_objects(found), range(first, first + len(found)))
        first += len(found)


# ------------------------------------------------------------------------------- chunks


def table_chunks(
    parts: Iterable[TablePart], preprocessing: Preprocessing, *, is_regular: bool = True
) -> Iterator[Chunk]:
    """Yield the samples that parts of a table hold.

    Args:
        parts: Of one table.
        preprocessing: Of the model.
        is_regular: Whether all rows have the same columns, so that a missing one is the
            table's fault and not that of each row. Defaults to True.
    """
    text: str | None = None
    for number, part in enumerate(parts):
        if preprocessing.kind == "text":
            text = text or _text_column(part, preprocessing)
            yield Chunk(part.places(), _sentences(part, text, is_regular))
        elif preprocessing.kind in ("table", "other"):
            if is_regular and not number:
                _used_columns(part, preprocessing)
            yield Chunk(part.places(), part)
        else:
            raise wrong_kind(f"the table {part.title}", preprocessing)


def table_features(table: Table, preprocessing: Preprocessing) -> Tensor:
    """Return the columns of the training, as numbers (N, F)."""
    return features(table, _used_columns(table, preprocessing))


def _used_columns(table: Table, preprocessing: Preprocessing) -> tuple[str, ...]:
    """Return what `features` is to make, or say which columns are missing."""
    if preprocessing.columns:
        for name in preprocessing.columns:
            _check_column(table, name)
        return preprocessing.columns
    target = _target_column(table, preprocessing)
    others = [name for name in table.names if name != target]
    for names in (table.names, others):
        if (len(names),) == preprocessing.input_shape:
            return tuple(names)
    raise ValueError(
        f"{table.title} has {len(others)} columns beside the target, but the model takes "
        f"{preprocessing.wanted}."
    )


def _check_column(table: Table, name: str) -> None:
    starts = [name[:place] for place, character in enumerate(name) if character == "="]
    if name not in table.names and not any(start in table.names for start in starts):
        table.column(starts[0] if starts else name)  # which says that there is none


def _target_column(table: Table, preprocessing: Preprocessing) -> str | None:
    if preprocessing.target in table.names:
        return preprocessing.target
    return column_called(TARGET_NAMES, table.names)


def _text_column(table: Table, preprocessing: Preprocessing) -> str:
    if preprocessing.text is not None:
        table.column(preprocessing.text)
        return preprocessing.text
    target = _target_column(table, preprocessing)
    found = text_column(table, target or "", None)
    others = [name for name in table.names if name != target]
    if found is None and len(others) == 1:
        return others[0]
    if found is None:
        raise ValueError(
            f"{table.title} has the columns {brief(', '.join(table.names))}, and none of them is "
            f"plainly the text; name it by text=."
        )
    return found


def _sentences(table: Table, text: str, is_regular: bool) -> list[Any]:
    if not is_regular and text not in table.names:
        return [None] * len(table)
    sentences: list[Any] = table.column(text).to_pylist()
    return sentences
