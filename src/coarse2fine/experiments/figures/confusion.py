"""How often classes are taken for each other, in the order of the hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..._arrays import Array
from ...errors import require
from ...metrics import confusion_matrix
from ...training.result import BASELINE, RunResult
from .nesting import edges, nested_order
from .style import labels_and_colours, new_figure, new_panels

MOST_NAMED = 30
WIDTHS = (1.4, 0.7)  # of the outlines, for the coarsest level and the next
QUANTILE = 0.998  # of the mistakes, as very few are far more frequent than all others


def needed(runs: Sequence[RunResult]) -> dict[str, Any]:
    """Return the counts of the baseline and the curriculum, and the order of the classes.

    The counts, rows the true classes, are summed over the seeds that both have. The order is
    that of the first seed's hierarchy; ``edges`` are those of its levels above the classes.
    """
    seeds = {run.seed for run in runs if run.method == BASELINE}
    curricula = [run for run in runs if run.num_clusters and run.seed in seeds]
    if not curricula:
        return {}
    first = min(curricula, key=lambda run: run.method != "continuous")
    hierarchy = first.hierarchy()
    levels, count = hierarchy.levels[:-1], hierarchy.num_classes
    order = nested_order(levels, count)
    shared = {run.seed for run in curricula if run.method == first.method}
    found = {
        "method": first.method,
        "class_names": hierarchy.class_names and list(hierarchy.class_names),
        "order": order.tolist(),
        "edges": [edges(level, order) for level in levels],
        "counts": {
            name: _counts((r for r in runs if r.method == name and r.seed in shared), count)
            for name in (BASELINE, first.method)
        },
    }
    return {"confusion": found}


def _counts(runs: Iterable[RunResult], count: int) -> list[list[int]]:
    matrices = [confusion_matrix(*run.predictions("test"), count) for run in runs]
    summed: list[list[int]] = np.sum(matrices, axis=0).tolist()
    return summed


def draw(content: dict[str, Any]) -> Any:
    """Return three panels for each setting: baseline, curriculum, and their difference."""
    rows = [row for row in content["settings"] if "confusion" in row]
    if not rows:
        return new_panels(0)[0]
    names = any(_names(row["confusion"]) for row in rows)
    figure = new_figure(14.0 if names else 12.5, (6.0 if names else 5.0) * len(rows))
    panels = figure.subplots(len(rows), 3, squeeze=False, sharey="row")
    for row, own in zip(rows, panels, strict=True):
        _draw_row(own, row)
    return figure


def _draw_row(panels: Any, row: dict[str, Any]) -> None:
    found = row["confusion"]
    plain, curriculum = (
        _rates(found["counts"][name], found["order"]) for name in (BASELINE, found["method"])
    )
    change = curriculum - plain
    top, most = _frequent([plain, curriculum]), _frequent([abs(change)])
    label = labels_and_colours([row])[found["method"]][0]
    titles = [f"{row['label']}: {what}" for what in (BASELINE, label, f"{label} − {BASELINE}")]
    scale = {"cmap": "Blues", "vmin": 0.0, "vmax": top}
    both = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    share = f"share of the true class, %; clipped at {top:.1f}"
    points = f"percentage points; clipped at ±{most:.1f}"
    _draw_matrix(panels[0], plain, titles[0], found, share, scale)
    _draw_matrix(panels[1], curriculum, titles[1], found, share, scale)
    _draw_matrix(panels[2], change, titles[2], found, points, both)
    panels[0].set_ylabel("true class")


def _rates(counts: list[list[int]], order: list[int]) -> Array:
    """Return the percentages of each true class, 0 where it has no samples."""
    ordered = np.array(counts, dtype=float)[np.ix_(order, order)]
    rates: Array = 100 * ordered / np.maximum(ordered.sum(axis=1, keepdims=True), 1)
    return rates


def _frequent(matrices: list[Array]) -> float:
    """Return what nearly no mistake is above, for a scale on which they can be told apart."""
    wrong = [matrix[~np.eye(len(matrix), dtype=bool)] for matrix in matrices]
    return float(np.quantile(wrong, QUANTILE)) or 1.0


def _names(found: dict[str, Any]) -> list[str]:
    """Return the names in order, none where they are too many to read."""
    names = found["class_names"]
    if len(found["order"]) > MOST_NAMED or names is None:
        return []
    return [names[index] for index in found["order"]]


def _draw_matrix(
    axes: Any, rates: Array, title: str, found: dict[str, Any], text: str, scale: dict[str, Any]
) -> None:
    image = axes.imshow(rates, interpolation="nearest", **scale)
    extend = "both" if scale["vmin"] else "max"
    axes.figure.colorbar(
        image, ax=axes, location="bottom", label=text, extend=extend, shrink=0.8, aspect=30
    )
    for level, width in zip(found["edges"], WIDTHS, strict=False):
        _outline(axes, level, width)
    names = _names(found)
    ticks = range(len(names))
    axes.set_xticks(ticks, names, rotation=90, fontsize=7, parse_math=False)
    axes.set_yticks(ticks, names, fontsize=7, parse_math=False)
    axes.set_xlabel("predicted class")
    axes.set_title(title, fontsize="medium")


def _outline(axes: Any, level: list[int], width: float) -> None:
    """Draw the clusters of a level along the diagonal."""
    rectangle = require("matplotlib.patches", "report").Rectangle
    for start, end in pairwise(level):
        corner, side = (start - 0.5, start - 0.5), end - start
        axes.add_patch(rectangle(corner, side, side, fill=False, linewidth=width))
