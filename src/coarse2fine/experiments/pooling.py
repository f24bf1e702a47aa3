"""Results that were made in parts, setting by setting or seed by seed, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._util.distinct import distinct
from ..runs.config import settings_affecting
from .figures import pooled_values
from .results import Results, Row


def pooled(parts: Sequence[Results]) -> Results:
    """Return the results of an experiment that several files have a part of, as one.

    Rows of the same setting are put together where they have other seeds. Of those that share
    a seed, the one with the most runs is taken.

    Args:
        parts: At least one; all of the same experiment at the same scale.
    """
    if len(parts) == 1:
        return parts[0]
    figure = parts[0].figure
    by_key: dict[str, list[Row]] = {}
    for row in (row for results in parts for row in results.rows):
        by_key.setdefault(row.key, []).append(row)
    taken = [_of_other_seeds(rows) for rows in by_key.values()]
    kept = {id(row) for rows in taken for row in rows}
    used = [results for results in parts if any(id(row) in kept for row in results.rows)]
    return replace(
        used[0],
        seeds=tuple(sorted({seed for results in used for seed in results.seeds})),
        command="; ".join(results.command for results in used),
        rows=tuple(_together(rows, figure) for rows in taken),
    )


def _of_other_seeds(rows: Sequence[Row]) -> list[Row]:
    """Return the row with the most runs, and those that only add seeds to it."""
    taken: list[Row] = []
    for row in sorted(rows, key=lambda row: -len(row.runs)):
        if not taken or (
            _is_same(row, taken[0]) and not any(_share_seeds(row, it) for it in taken)
        ):
            taken.append(row)
    return taken


def _share_seeds(one: Row, other: Row) -> bool:
    return bool({run.seed for run in one.runs} & {run.seed for run in other.runs})


def _is_same(one: Row, other: Row) -> bool:
    """Whether two rows compare the same methods, trained by the same settings."""
    return (
        one.variants == other.variants
        and one.chosen_among == other.chosen_among
        and _trained_by(one) == _trained_by(other)
    )


def _trained_by(row: Row) -> Mapping[str, Any]:
    others = settings_affecting("randomness", "machine", "log")
    return {name: value for name, value in row.config.items() if name not in others}


def _together(rows: Sequence[Row], figure: str | None) -> Row:
    """Return rows of the same setting as one, their runs in the order of the seeds."""
    if len(rows) == 1:
        return rows[0]
    return replace(
        rows[0],
        runs=tuple(sorted((run for row in rows for run in row.runs), key=lambda run: run.seed)),
        versions=tuple(distinct(made for row in rows for made in row.versions)),
        cut=sum(row.cut for row in rows),
        seeds=tuple(sorted(distinct(seed for row in rows for seed in row.seeds))),
        values=pooled_values(figure, [row.values for row in rows]),
    )
