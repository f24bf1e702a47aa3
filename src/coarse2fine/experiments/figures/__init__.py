"""Figures of experiments, one file each: what they need of the runs, and how they are drawn."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, Protocol

from ...training.result import RunResult

FIGURES = (
    "sizes",
    "gains",
    "lengths",
    "curves",
    "confusion",
    "hierarchy",
    "levels",
    "classes",
)


class FigureModule(Protocol):
    """What each of the modules has."""

    def needed(self, runs: Sequence[RunResult]) -> dict[str, Any]:
        """Return what the figure needs beside results, for one setting, as plain values."""

    def shows(self, row: dict[str, Any]) -> bool:
        """Whether there is something of a setting to draw."""

    def draw(self, content: dict[str, Any], width: float | None = None) -> Any:
        """Return a matplotlib figure of an experiment's content, as wide in inches as given."""


def find_figure(name: str) -> FigureModule:
    """Return the module of a figure, one of `FIGURES`."""
    found: Any = importlib.import_module(f".{name}", __package__)
    return found  # type: ignore[no-any-return]
