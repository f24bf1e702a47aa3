"""How often classes are taken for each other, in the order of the hierarchy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..._arrays import Array
from ..._nesting import edges, nested_order
from ...errors import require
from ...metrics import confusion_matrix
from ...training.result import BASELINE, RunResult
from .letters import cut, fitted, inches, lettering
from .style import MARGINS, add_title, labels_and_colours, new_figure, new_panels, points, room_of

MOST_NAMED = 30
MOST_CLASSES = 2000  # of more, a class is no point of a page, and the counts take gigabytes
NAMES = 7  # points
LONGEST_NAME = 1.3  # inches
LINE = 0.1  # inches of a name
BELOW = 0.6  # inches for the scale
SIDE_BY_SIDE = 6.5  # inches that three panels need
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
    if count > MOST_CLASSES:
        raise ValueError(
            f"a confusion matrix of {count} classes cannot be looked at, {MOST_CLASSES} can: draw "
            f"levels or classes instead."
        )
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


def shows(row: dict[str, Any]) -> bool:
    """Whether a setting has a baseline and a curriculum."""
    return "confusion" in row


def draw(content: dict[str, Any], width: float | None = None) -> Any:
    """Return three panels for each setting: baseline, curriculum, and their difference.

    They are side by side, or one below the other in a narrow figure.
    """
    rows = list(filter(shows, content["settings"]))
    if not rows:
        return new_panels(0)[0]
    names = any(_names(row["confusion"]) for row in rows)
    columns = 3 if width is None or width >= SIDE_BY_SIDE else 1
    lines = 3 * len(rows) // columns
    if width is None:
        figure = new_figure(14.0 if names else 12.5, (6.0 if names else 5.0) * lines)
    else:
        figure = new_figure(width, (width / columns + BELOW) * lines)
    panels = figure.subplots(lines, columns, squeeze=False, sharey="row")
    for row, own in zip(rows, panels.reshape(len(rows), 3), strict=True):
        _draw_row(own, row, _names(row["confusion"], width and width / columns))
        for axes in own[::columns]:
            axes.set_ylabel("true class")
    return figure


def _draw_row(panels: Any, row: dict[str, Any], names: list[str]) -> None:
    found = row["confusion"]
    plain, curriculum = (
        _rates(found["counts"][name], found["order"]) for name in (BASELINE, found["method"])
    )
    change = curriculum - plain
    top, most = _frequent([plain, curriculum]), _frequent([abs(change)])
    label = labels_and_colours([row])[found["method"]][0]
    beside = max((inches(name, NAMES) for name in names), default=0.0)
    for axes, what in zip(panels, (BASELINE, label, f"{label} − {BASELINE}"), strict=True):
        _write_names(axes, names)
        add_title(axes, row["label"], what, beside)
    scale = {"cmap": "Blues", "vmin": 0.0, "vmax": top}
    both = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    share, gain = (
        fitted(text, room_of(panels[0]) - beside - MARGINS, points("medium"))
        for text in (
            f"share of the true class, %; clipped at {top:.1f}",
            f"percentage points; clipped at ±{most:.1f}",
        )
    )
    _draw_matrix(panels[0], plain, found, share, scale)
    _draw_matrix(panels[1], curriculum, found, share, scale)
    _draw_matrix(panels[2], change, found, gain, both)


def _rates(counts: list[list[int]], order: list[int]) -> Array:
    """Return the percentages of each true class, 0 where it has no samples."""
    ordered = np.array(counts, dtype=float)[np.ix_(order, order)]
    rates: Array = 100 * ordered / np.maximum(ordered.sum(axis=1, keepdims=True), 1)
    return rates


def _frequent(matrices: list[Array]) -> float:
    """Return what nearly no mistake is above, for a scale on which they can be told apart."""
    wrong = [matrix[~np.eye(len(matrix), dtype=bool)] for matrix in matrices]
    return float(np.quantile(wrong, QUANTILE)) or 1.0


def _names(found: dict[str, Any], width: float | None = None) -> list[str]:
    """Return the names in order, none where they are too many to read.

    Args:
        found: What is drawn.
        width: Of a panel in inches. Defaults to None: of enough.
    """
    names, most = found["class_names"], MOST_NAMED
    if width is not None:
        most = min(most, int((width - LONGEST_NAME - MARGINS) / LINE))
    if len(found["order"]) > most or names is None:
        return []
    return [cut(names[index], LONGEST_NAME, NAMES) for index in found["order"]]


def _draw_matrix(
    axes: Any, rates: Array, found: dict[str, Any], text: str, scale: dict[str, Any]
) -> None:
    image = axes.imshow(rates, interpolation="nearest", **scale)
    extend = "both" if scale["vmin"] else "max"
    axes.figure.colorbar(
        image, ax=axes, location="bottom", label=text, extend=extend, shrink=0.8, aspect=30
    )
    for level, width in zip(found["edges"], WIDTHS, strict=False):
        _outline(axes, level, width)
    axes.set_xlabel("predicted class")


def _write_names(axes: Any, names: list[str]) -> None:
    ticks = range(len(names))
    style = {"fontsize": NAMES, **lettering("".join(names))}
    axes.set_xticks(ticks, names, rotation=90, **style)
    axes.set_yticks(ticks, names, **style)


def _outline(axes: Any, level: list[int], width: float) -> None:
    """Draw the clusters of a level along the diagonal."""
    rectangle = require("matplotlib.patches", "report").Rectangle
    for start, end in pairwise(level):
        corner, side = (start - 0.5, start - 0.5), end - start
        axes.add_patch(rectangle(corner, side, side, fill=False, linewidth=width))
