"""The figure of an experiment: what it shows of the runs, how that is stored, and its panels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._util.files import Json
from ..figures import (
    classes,
    confusion,
    curves,
    find_figure,
    gains,
    hierarchy,
    lengths,
    levels,
    mistakes,
    sizes,
    worth,
)
from ..figures.classes import ClassAccuracies
from ..figures.confusion import ConfusionPair
from ..figures.curves import Curve
from ..figures.hierarchy import NamedHierarchy
from ..figures.levels import Levels, RunLevels
from ..figures.mistakes import Measures, Mistakes
from ..figures.style import Panel
from ..figures.values import Confusions, flat_hierarchies
from ..figures.worth import Worth
from ..hierarchy import Hierarchy
from ..runs.directory import Run
from ..runs.result import BASELINE, RunResult

if TYPE_CHECKING:
    from .results import Row

DECIMALS = 5  # of an accuracy's share; as many as 100,000 test images can have


# ------------------------------------------------------------------ what is stored of runs


class Stored(NamedTuple):
    """What a figure shows of a setting beside the results of its runs.

    Args:
        name: In the file of results.
        collect: Computes it from the runs that are done; None where they lack it.
        write: Makes plain values of it.
        read: Makes it of these again.
        needs_data: Whether it takes the folder of named sets, too. Defaults to False.
        is_by_run: Whether it is a list with an item for each run. Defaults to False.
        headings: Of what it adds to the table. Defaults to none.
        cells: Returns the cells of a method below these.
    """

    name: str
    collect: Callable[..., Any]
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    needs_data: bool = False
    is_by_run: bool = False
    headings: tuple[str, ...] = ()
    cells: Callable[[Any, str], Sequence[str]] = lambda *_: ()


def figure_values(figure: str | None, runs: Sequence[RunResult], folder: Path | None = None) -> Any:
    """Return what a figure shows of runs beside their results; None for nothing.

    Args:
        figure: One of `FIGURES`, or None.
        runs: Those of a setting that are done.
        folder: Where named sets lie. Defaults to None: the environment's.
    """
    stored = _STORED.get(figure or "")
    if stored is None:
        return None
    return stored.collect(runs, folder) if stored.needs_data else stored.collect(runs)


def pooled_values(figure: str | None, found: Sequence[Any]) -> Any:
    """Return what a figure shows of a setting whose seeds were run in parts; None for nothing.

    Args:
        figure: See `figure_values`.
        found: What it shows of each part. A figure of one run alone shows that of the first.
    """
    stored = _STORED.get(figure or "")
    if stored is None or not stored.is_by_run:
        return found[0]
    return [item for values in found for item in values or []]


def table_headings(figure: str | None) -> tuple[str, ...]:
    """Return the headings of what a figure adds to the table; of most figures none."""
    stored = _STORED.get(figure or "")
    return stored.headings if stored else ()


def table_cells(figure: str | None, values: Any, method: str) -> Sequence[str]:
    """Return the cells of a method below `table_headings`.

    Args:
        figure: See `figure_values`.
        values: What the figure shows; None for nothing.
        method: The name of a variant, or of the baseline.
    """
    stored = _STORED.get(figure or "")
    return stored.cells(values or [], method) if stored else ()


def values_to_dict(figure: str | None, values: Any) -> Json:
    """Return what a figure shows as plain values, to be stored with the results."""
    stored = _STORED.get(figure or "")
    return {stored.name: stored.write(values)} if stored and values is not None else {}


def values_from_dict(figure: str | None, row: Json) -> Any:
    """Return what a stored row holds for a figure; None for nothing."""
    stored = _STORED.get(figure or "")
    return stored.read(row[stored.name]) if stored and stored.name in row else None


def _samples(runs: Sequence[RunResult]) -> int | None:
    if not runs:
        return None
    train, val, _ = Run(runs[0].path).config.data.samples
    return train + val


def _curves_to_list(curves: Sequence[Curve]) -> list[Json]:
    return [
        {
            "method": curve.method,
            "seed": curve.seed,
            "test_accuracy" if curve.is_test else "val_accuracy": _shares(curve.accuracy),
            "level": curve.level,
            **({"coarse_accuracy": _shares(curve.coarse)} if curve.coarse else {}),
        }
        for curve in curves
    ]


def _shares(percents: Sequence[float]) -> list[float | None]:
    return [None if math.isnan(x) else round(x / 100, DECIMALS) for x in percents]


def _percents(shares: Sequence[float | None]) -> list[float]:
    return [math.nan if share is None else 100 * share for share in shares]


def _curve_from_dict(curve: Json) -> Curve:
    is_test = "test_accuracy" in curve
    accuracy = _percents(curve["test_accuracy" if is_test else "val_accuracy"])
    coarse = _percents(curve.get("coarse_accuracy", []))
    return Curve(curve["method"], curve["seed"], accuracy, curve["level"], is_test, coarse)


def _curves_from_list(curves: list[Json]) -> list[Curve]:
    return [_curve_from_dict(curve) for curve in curves]


def _levels_from_dict(levels: Json) -> Levels:
    return Levels(**{**levels, "runs": [RunLevels(**run) for run in levels["runs"]]})


def _classes_to_dict(classes: ClassAccuracies) -> Json:
    pairs = ((BASELINE, classes.before), (classes.method, classes.after))
    return {
        "method": classes.method,
        "class_names": list(classes.class_names or ()),
        "accuracies": {
            name: [None if math.isnan(x) else x for x in accuracies.tolist()]
            for name, accuracies in pairs
        },
    }


def _classes_from_dict(classes: Json) -> ClassAccuracies:
    method = classes["method"]
    both = (classes["accuracies"][name] for name in (BASELINE, method))
    before, after = (np.array(accuracies, dtype=float) for accuracies in both)
    return ClassAccuracies(method, classes["class_names"], before, after)


def _confusion_to_dict(pair: ConfusionPair) -> Json:
    both = ((BASELINE, pair.before), (pair.method, pair.after))
    return {
        "method": pair.method,
        "class_names": pair.class_names and list(pair.class_names),
        "order": pair.order.tolist(),
        "edges": [list(level) for level in pair.edges],
        "counts": {name: counts.matrix.tolist() for name, counts in both if counts is not None},
    }


def _confusion_from_dict(pair: Json) -> ConfusionPair:
    method, names, edges = pair["method"], pair["class_names"], pair["edges"]
    before, after = (Confusions.from_matrix(pair["counts"][it]) for it in (BASELINE, method))
    return ConfusionPair(method, names, np.array(pair["order"]), edges, before, after)


def _hierarchies_to_dict(found: Sequence[NamedHierarchy]) -> Json:
    return {it.method: {"seed": it.seed, **it.hierarchy.to_dict()} for it in found}


def _hierarchies_from_dict(found: Json) -> list[NamedHierarchy]:
    with flat_hierarchies():
        return [
            NamedHierarchy(Hierarchy.from_dict(it), method, it.get("seed"))
            for method, it in found.items()
        ]


def _worths_to_list(found: Sequence[Worth]) -> list[Json]:
    return [asdict(worth) for worth in found]


def _worths_from_list(found: list[Json]) -> list[Worth]:
    return [Worth(**worth) for worth in found]


def _mistakes_to_list(found: Sequence[Mistakes]) -> list[Json]:
    return [asdict(run) for run in found]


def _mistakes_from_list(found: list[Json]) -> list[Mistakes]:
    return [Mistakes(**{**run, **_measures(run)}) for run in found]


def _measures(run: Json) -> dict[str, Measures | None]:
    return {by: run[by] and Measures(**run[by]) for by in ("people", "made")}


_STORED = {
    "sizes": Stored("samples", _samples, int, int),
    "curves": Stored(
        "curves", curves.values_of, _curves_to_list, _curves_from_list, is_by_run=True
    ),
    "levels": Stored("levels", levels.values_of, asdict, _levels_from_dict),
    "classes": Stored("classes", classes.values_of, _classes_to_dict, _classes_from_dict),
    "confusion": Stored("confusion", confusion.values_of, _confusion_to_dict, _confusion_from_dict),
    "hierarchy": Stored(
        "hierarchies", hierarchy.values_of, _hierarchies_to_dict, _hierarchies_from_dict
    ),
    "worth": Stored("worth", worth.values_of, _worths_to_list, _worths_from_list, is_by_run=True),
    "mistakes": Stored(
        "mistakes",
        mistakes.values_of,
        _mistakes_to_list,
        _mistakes_from_list,
        needs_data=True,
        is_by_run=True,
        headings=mistakes.HEADINGS,
        cells=mistakes.cells,
    ),
}
FIGURES = (*_STORED, "gains", "lengths")  # which need nothing but the results


# ------------------------------------------------------------------------------- drawing


def draw_figure(figure: str, rows: Sequence[Row], width: float | None = None) -> Any:
    """Return a matplotlib figure of an experiment's results.

    Args:
        figure: One of `FIGURES`.
        rows: The results.
        width: In inches. Defaults to None: as wide as it likes.
    """
    panels = _size_panels(rows) if figure == "sizes" else _panels(figure, rows)
    return find_figure(figure).draw(panels, width)


def _panels(figure: str, rows: Sequence[Row]) -> list[Panel[Any]]:
    """Return a panel for each setting that has something to draw."""
    found = [Panel(row.label, _labels([row]), _drawn(figure, row)) for row in rows]
    return [panel for panel in found if panel.values]


def _labels(rows: Sequence[Row]) -> dict[str, str]:
    return {variant.name: variant.shown for row in rows for variant in row.variants}


def _drawn(figure: str, row: Row) -> Any:
    """Return what a panel shows: what is stored for it, or what follows from the results."""
    if figure == "gains":
        return gains.values_of(row.runs, row.paper)
    if figure == "lengths":
        asked = {
            variant.name: {**row.config, **variant.settings}.get("curriculum_epochs")
            for variant in row.variants
        }
        return lengths.values_of(row.runs, asked)
    return row.values


def _size_panels(rows: Sequence[Row]) -> list[Panel[list[sizes.Size]]]:
    """Return a panel for each data set and model, of all settings that have runs."""
    groups: dict[tuple[str, str], list[tuple[Row, sizes.Size]]] = {}
    for row in rows:
        size = sizes.values_of(row.runs, row.config.get("train_size"), row.values)
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
