"""Figures of finished runs: the values of each, computed once, and its drawings.

A module a figure. ``values_of`` computes what it shows from runs, ``draw`` makes a matplotlib
figure for papers, and ``plot`` a plotly figure for pages. Where both drawings are long, the one
of plotly has a file of its own: `heatmap` for confusions, `icicle` for hierarchies.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..runs.result import RunResult
    from .style import Panel


class FigureModule(Protocol):
    """What the module of each figure has."""

    def values_of(self, runs: Sequence[RunResult]) -> Any:
        """Return what the figure shows of runs; None or nothing where they lack it.

        Those of `sizes` and `lengths` need to know the settings of an experiment, too.
        """

    def draw(self, panels: Sequence[Panel[Any]], width: float | None = None) -> Any:
        """Return a matplotlib figure.

        Args:
            panels: With the values of each.
            width: Of the figure, in inches. Defaults to None: as wide as it likes.
        """


def find_figure(name: str) -> FigureModule:
    """Return the module of a figure, such as ``"curves"``."""
    found: Any = importlib.import_module(f".{name}", __package__)
    return found  # type: ignore[no-any-return]
