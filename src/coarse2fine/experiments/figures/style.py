"""What all figures have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...errors import require
from ...training.result import BASELINE
from ..statistics import paired

# Told apart by people who see colours differently, too (after Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#555555"  # of the baseline, and of what is not data


def new_figure(width: float = 7.0, height: float = 4.0) -> Any:
    """Return an empty matplotlib figure that no window shows.

    Args:
        width: In inches. Defaults to 7.0.
        height: In inches. Defaults to 4.0.
    """
    figure = require("matplotlib.figure", "report").Figure((width, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return figure


def new_panels(
    count: int, width: float = 4.5, height: float = 3.5, columns: int = 3
) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels, or with a word about it where there are none.

    Args:
        count: How many.
        width: Of a panel, in inches. Defaults to 4.5.
        height: Of a panel, in inches. Defaults to 3.5.
        columns: The most side by side. Defaults to 3.
    """
    if not count:
        figure = new_figure()
        figure.text(0.5, 0.5, "no runs to draw yet", ha="center", va="center", color=GREY)
        return figure, []
    lines = math.ceil(count / columns)
    columns = math.ceil(count / lines)
    # A panel by itself is wider, for its legend.
    figure = new_figure(max(width * columns, 5.5), height * lines + 0.5)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for unused in panels[count:]:
        unused.remove()
    for axes in panels[:count]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels[:count]


def add_legend(figure: Any, panels: Iterable[Any], title: str | None = None) -> None:
    """Put one legend for all panels below them, where it hides nothing.

    Args:
        figure: See `new_figure`.
        panels: Those with labelled lines; a label that several have is shown once.
        title: Of the legend. Defaults to None.
    """
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if found:
        figure.legend(
            found.values(), found.keys(), loc="outside lower center", ncols=min(len(found), 4),
            fontsize="small", title=title, title_fontsize="small", frameon=False,
        )  # fmt: skip


def labels_and_colours(rows: Sequence[dict[str, Any]]) -> dict[str, tuple[str, str]]:
    """Return label and colour of the baseline, and of every variant that any row has."""
    labels = {variant["name"]: variant["label"] for row in rows for variant in row["variants"]}
    shown = {
        name: (label, COLOURS[place % len(COLOURS)])
        for place, (name, label) in enumerate(labels.items())
    }
    return {BASELINE: (BASELINE, GREY), **shown}


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and its standard error, 0 for a single value, as it has no extent.

    Examples:
        >>> mean_and_error([29.0, 30.0, 31.0])[0], mean_and_error([29.0])
        (30.0, (29.0, 0.0))
    """
    found = paired(list(values))
    return found.mean, 0.0 if math.isnan(found.error) else found.error


def save(figure: Any, path: Path) -> None:
    """Write a figure, the same one always as the same file.

    Args:
        figure: See `new_figure`.
        path: The file, whose suffix says what is written: ``.svg`` or ``.png``.
    """
    # Else an SVG holds the date, and random names for its parts.
    metadata = {"Date": None} if path.suffix == ".svg" else None
    with require("matplotlib", "report").rc_context({"svg.hashsalt": "coarse2fine"}):
        figure.savefig(path, metadata=metadata, dpi=150)
