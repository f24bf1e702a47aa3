"""What an experiment's figure shows of a setting beside the results of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..figures import classes, confusion, curves, hierarchy, levels
from ..figures.classes import ClassAccuracies
from ..figures.confusion import ConfusionPair
from ..figures.curves import Curve
from ..figures.hierarchy import NamedHierarchy
from ..figures.levels import Levels
from ..runs.directory import Run
from ..runs.result import RunResult

FIGURES = ("sizes", "gains", "lengths", "curves", "levels", "classes", "confusion", "hierarchy")


@dataclass(frozen=True)
class FigureValues:
    """What a figure needs of a setting's runs; None for what it does not need, or they lack.

    Args:
        samples: How many there are to train and validate on, for ``"sizes"``.
        curves: For ``"curves"``.
        levels: For ``"levels"``.
        classes: For ``"classes"``.
        confusion: For ``"confusion"``, with a baseline.
        hierarchies: For ``"hierarchy"``.
    """

    samples: int | None = None
    curves: Sequence[Curve] | None = None
    levels: Levels | None = None
    classes: ClassAccuracies | None = None
    confusion: ConfusionPair | None = None
    hierarchies: Sequence[NamedHierarchy] | None = None


def figure_values(figure: str | None, runs: Sequence[RunResult]) -> FigureValues:
    """Return what a figure needs of runs.

    Args:
        figure: One of `FIGURES`, or None. ``"gains"`` and ``"lengths"`` need the results alone.
        runs: Those of a setting that are done.
    """
    match figure:
        case "sizes":
            return FigureValues(samples=_samples(runs))
        case "curves":
            return FigureValues(curves=curves.values_of(runs))
        case "levels":
            return FigureValues(levels=levels.values_of(runs))
        case "classes":
            return FigureValues(classes=classes.values_of(runs))
        case "confusion":
            pair = confusion.values_of(runs)
            is_whole = pair is not None and pair.before is not None
            return FigureValues(confusion=pair if is_whole else None)
        case "hierarchy":
            return FigureValues(hierarchies=hierarchy.values_of(runs))
    return FigureValues()


def _samples(runs: Sequence[RunResult]) -> int | None:
    if not runs:
        return None
    train, val, _ = Run(runs[0].path).config.data.samples
    return train + val
