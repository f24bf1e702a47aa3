"""The figure of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..figures import find_figure, gains, lengths, sizes
from ..figures.panels import Panel
from .results import Row


def draw_figure(figure: str, rows: Sequence[Row], width: float | None = None) -> Any:
    """Return a matplotlib figure of an experiment's results.

    Args:
        figure: One of `coarse2fine.experiments.values.FIGURES`.
        rows: The results.
        width: In inches. Defaults to None: as wide as it likes.
    """
    panels = _size_panels(rows) if figure == "sizes" else _panels(rows, _VALUES[figure])
    return find_figure(figure).draw(panels, width)


def _panels(rows: Sequence[Row], values: Callable[[Row], Any]) -> list[Panel[Any]]:
    """Return a panel for each setting that has something to draw."""
    found = [Panel(row.label, _labels([row]), values(row)) for row in rows]
    return [panel for panel in found if panel.values]


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    return {variant.name: variant.shown for row in rows for variant in row.variants}


def _gains(row: Row) -> dict[str, gains.Gain]:
    return gains.values_of(row.runs, row.paper)


def _lengths(row: Row) -> lengths.Lengths | None:
    asked = {
        variant.name: {**row.config, **variant.settings}.get("curriculum_epochs")
        for variant in row.variants
    }
    return lengths.values_of(row.runs, asked)


_VALUES: dict[str, Callable[[Row], Any]] = {
    "gains": _gains,
    "lengths": _lengths,
    "curves": lambda row: row.values.curves,
    "levels": lambda row: row.values.levels,
    "classes": lambda row: row.values.classes,
    "confusion": lambda row: row.values.confusion,
    "hierarchy": lambda row: row.values.hierarchies,
}


def _size_panels(rows: Sequence[Row]) -> list[Panel[list[sizes.Size]]]:
    """Return a panel for each data set and model, of all settings that have runs."""
    groups: dict[tuple[str, str], list[tuple[Row, sizes.Size]]] = {}
    for row in rows:
        size = sizes.values_of(row.runs, row.config.get("train_size"), row.values.samples)
        if size is not None:
            key = (row.config["data"], row.config["model"])
            groups.setdefault(key, []).append((row, size))
    found = ((key, *zip(*group, strict=True)) for key, group in groups.items())
    return [Panel(_shared(own, key), _labels(own), list(values)) for key, own, values in found]


def _shared(rows: Sequence[Row], key: tuple[str, str]) -> str:
    """Return what the labels of settings begin with alike, else data and model."""
    parts = [row.label.split(", ") for row in rows]
    same = 0
    while all(len(part) > same and part[same] == parts[0][same] for part in parts):
        same += 1
    return ", ".join(parts[0][:same] or key)
