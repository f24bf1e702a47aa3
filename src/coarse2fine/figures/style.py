"""What all matplotlib figures have in common: panels, how lines look, and how they are saved."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

from .._util.files import write_atomically
from ..errors import require
from ..runs.result import BASELINE
from .letters import cut, fitted, inches, lettering
from .theme import GREY, looks_of

FORMATS = (".svg", ".png", ".pdf")
LEAST_PANEL = 3.0  # inches; a narrower figure has fewer panels side by side
IN_PRINT = 8  # points; letters of a figure that is printed in its own size
FLAT = 2.6  # inches, the height of a panel in print
MARGINS = 0.4  # inches beside a panel, for its numbers
DASHES = {"solid": "solid", "dot": "dotted", "dashdot": "dashdot"}  # plotly's, and matplotlib's
MOST_PIXELS = 4e8  # take 1.6 GB while they are drawn
KEY = 0.6  # inches beside a label of the legend
Values = TypeVar("Values")


@dataclass(frozen=True)
class Panel(Generic[Values]):
    """What one panel shows.

    Args:
        title: Above it; may be empty.
        labels: What each method but the baseline is called, by its name and in the order of
            the legend.
        values: What the figure's ``values_of`` gives.
    """

    title: str
    labels: Mapping[str, str]
    values: Values

    def label(self, method: str) -> str:
        """Return what a method, or the baseline, is called."""
        return BASELINE if method == BASELINE else self.labels[method]


def printed(width: float | None) -> AbstractContextManager[None]:
    """Return a context to draw a figure in, whose letters suit its width.

    Args:
        width: In inches, in which it will be printed; None for a figure of no certain size.
    """
    settings = {} if width is None else {"font.size": IN_PRINT, "lines.markersize": 4}
    context: AbstractContextManager[None] = require("matplotlib", "report").rc_context(settings)
    return context


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
    count: int,
    width: float = 4.5,
    height: float = 3.5,
    columns: int = 3,
    total: float | None = None,
) -> tuple[Any, list[Any]]:
    """Return a figure with so many panels, or with a word about it where there are none.

    Args:
        count: How many.
        width: Of a panel, in inches. Defaults to 4.5.
        height: Of a panel, in inches. Defaults to 3.5.
        columns: The most side by side. Defaults to 3.
        total: The width of the figure, in inches, which its panels share. Defaults to None:
            as wide as they ask for.
    """
    if not count:
        figure = new_figure()
        figure.text(0.5, 0.5, "no runs to draw yet", ha="center", va="center", color=GREY)
        return figure, []
    if total is not None:
        columns = min(columns, max(1, int(total / LEAST_PANEL)))
    lines = math.ceil(count / columns)
    columns = math.ceil(count / lines)
    # A panel by itself is wider, for its legend.
    whole = max(width * columns, 5.5) if total is None else total
    figure = new_figure(whole, height * lines + 0.5)
    panels = list(figure.subplots(lines, columns, squeeze=False).flat)
    for unused in panels[count:]:
        unused.remove()
    for axes in panels[:count]:
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels[:count]


def draw_panels(
    panels: Sequence[Panel[Values]], draw_panel: Callable[[Any, Panel[Values]], None], **sizes: Any
) -> Any:
    """Return a figure of panels.

    Args:
        panels: What each shows.
        draw_panel: Draws one into its axes.
        **sizes: See `new_panels`.
    """
    figure, places = new_panels(len(panels), **sizes)
    for panel, axes in zip(panels, places, strict=True):
        draw_panel(axes, panel)
    return figure


def add_title(axes: Any, label: str, what: str = "", beside: float = 0.0) -> None:
    """Write above a panel what it shows, as much of it as there is room for.

    Args:
        axes: One of a row of panels of equal width.
        label: Of the setting; may be empty.
        what: Of the setting the panel shows. Defaults to nothing: all.
        beside: See `add_x_label`. Defaults to 0.0.
    """
    size, room = points("medium"), room_of(axes) - beside - MARGINS
    line = ": ".join(part for part in (label, what) if part)
    parts = [line] if inches(cut(line, math.inf), size) <= room else [label, what]
    text = "\n".join(cut(part, room, size) for part in parts if part)
    axes.set_title(text, fontsize="medium", **lettering(text))


def add_x_label(axes: Any, text: str, beside: float = 0.0) -> None:
    """Write below a panel what its axis is, in as many lines as it needs.

    Args:
        axes: One of a row of panels of equal width.
        text: Of the label.
        beside: How many inches to the left the names of what is drawn take. Defaults to 0.0.
    """
    room = room_of(axes) - beside - MARGINS
    axes.set_xlabel(fitted(text, room, points("medium")), **lettering(text))


def room_of(axes: Any) -> float:
    """Return the inches from one side of a panel's place to the other."""
    columns: int = axes.get_subplotspec().get_gridspec().ncols
    return float(axes.figure.get_figwidth()) / columns - 0.2


def add_legend(figure: Any, title: str | None = None) -> Any:
    """Put one legend for all panels below them, where it hides nothing, and return the figure.

    Args:
        figure: Whose panels have labelled lines; a label that several have is shown once.
        title: Of the legend. Defaults to None.
    """
    found: dict[str, object] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if not found:
        return figure
    size, room = points("small"), figure.get_figwidth() - 0.2
    labels = [cut(label, room - KEY, size) for label in found]
    columns = int(room / (max(inches(label, size) for label in labels) + KEY))
    columns = max(1, min(len(found), 4, columns))
    legend = figure.legend(
        found.values(), labels, loc="outside lower center", ncols=columns, fontsize="small",
        title=title and fitted(title, room, size), title_fontsize="small", frameon=False,
    )  # fmt: skip
    legend.get_title().set_multialignment("center")
    for text in legend.get_texts():
        text.set(**lettering(text.get_text()))
    return figure


def points(size: str) -> float:
    """Return how large letters are that matplotlib has a word for, as "small"."""
    font = require("matplotlib.font_manager", "report").FontProperties(size=size)
    return float(font.get_size_in_points())


class LineStyle(TypedDict):
    """How matplotlib draws the line of a method, as arguments of its functions."""

    label: str
    color: str
    linestyle: str


def line_styles(labels: Mapping[str, str]) -> dict[str, LineStyle]:
    """Return how the lines of the baseline and of every method look.

    Args:
        labels: See `Panel`.
    """
    styles: dict[str, LineStyle] = {
        name: {"label": labels[name], "color": look.colour, "linestyle": DASHES[look.dash]}
        for name, look in looks_of(labels).items()
    }
    return {BASELINE: {"label": BASELINE, "color": GREY, "linestyle": "solid"}, **styles}


def check_format(path: Path) -> str:
    """Return the suffix of a file that a figure can be written to, in lower case.

    Raises:
        ValueError: Where it is not one of `FORMATS`.
        FileNotFoundError: Where there is no folder for it.
    """
    suffix = path.suffix.lower()
    if suffix not in FORMATS:
        raise ValueError(f"{path}: a figure is written as {', '.join(FORMATS)}.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    return suffix


def _check_pixels(figure: Any, dpi: float) -> None:
    width, height = (round(dpi * side) for side in figure.get_size_inches())
    if width * height > MOST_PIXELS:
        raise ValueError(f"{width:,} × {height:,} pixels are too many; ask for fewer an inch.")


def save(figure: Any, path: Path, dpi: float = 150) -> None:
    """Write a figure, the same one always as the same file, and whole or not at all.

    Letters are outlines in an SVG, which looks the same everywhere, and fonts in a PDF.

    Args:
        figure: See `new_figure`.
        path: The file, whose suffix says what is written, one of `FORMATS`.
        dpi: Pixels an inch. Defaults to 150.
    """
    suffix = check_format(path)
    _check_pixels(figure, dpi)
    # Else a file holds the date, and an SVG random names for its parts.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
    settings = {"svg.hashsalt": "coarse2fine", "pdf.fonttype": 42}
    drawn = io.BytesIO()
    with require("matplotlib", "report").rc_context(settings):
        figure.savefig(drawn, format=suffix[1:], metadata=metadata, dpi=dpi)
    write_atomically(path, drawn.getvalue())
