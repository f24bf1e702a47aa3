"""How bad the mistakes of each method are: by the hierarchy of people, and by the baseline's."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.load import VARIABLE, load_data
from ..data.split import Source
from ..errors import RunError
from ..hierarchical_metrics import hierarchical_f1, level_calibration_errors
from ..hierarchy import Hierarchy
from ..metrics import mean_height, mistake_severity
from ..runs.config import GIVEN, Config
from ..runs.directory import Run
from ..runs.identity import stored_config
from ..runs.restore import divided_as_in_training, load_trained
from ..runs.result import BASELINE, RunResult
from ..runs.statistics import paired, plus_minus
from .style import Panel, add_legend, add_title, add_x_label, draw_panels
from .theme import COLOURS, GREY, MARKERS
from .values import Estimate


@dataclass(frozen=True)
class Measures:
    """How good the predictions of a run are, as a hierarchy sees it.

    Args:
        mean_height: Of the lowest common ancestors of prediction and target, over all samples.
        severity: The same over the mistakes alone; None where there is none.
        f1: The hierarchical F1, in percent.
        calibration: The expected calibration error at each level, coarsest first, in percent.
    """

    mean_height: float
    severity: float | None
    f1: float
    calibration: list[float]


@dataclass(frozen=True)
class Mistakes:
    """How bad the mistakes of a run on the test samples are.

    Args:
        method: Of the run.
        seed: Of the run.
        accuracy: On the classes, in percent.
        people: By the hierarchy that the data brings.
        made: By the one that was made for the seed, from its baseline; None where none was.
    """

    method: str
    seed: int
    accuracy: float
    people: Measures
    made: Measures | None


# ------------------------------------------------------------------------------- computed


def values_of(runs: Sequence[RunResult], folder: Path | None = None) -> list[Mistakes]:
    """Return how bad the mistakes of each run are.

    That needs data that can be loaded again and that has a hierarchy of its own; of other runs
    there is nothing to return.

    The models are run on the test samples again, as a run keeps its predictions and not its
    probabilities.

    Args:
        runs: All of the same data.
        folder: Where named sets lie. Defaults to None: the environment's.
    """
    place = folder or os.environ.get(VARIABLE)
    made = _with_made_hierarchy(runs)
    found = (
        _mistakes(run.path, made.get(run.seed), Path(place) if place else None) for run in runs
    )
    return [each for each in found if each is not None]


def _with_made_hierarchy(runs: Sequence[RunResult]) -> dict[int, Path]:
    """Return for each seed the first run whose hierarchy was made for it."""
    found: dict[int, Path] = {}
    for run in runs:
        if Run(run.path).has_hierarchy and _config(run.path).hierarchy is None:
            found.setdefault(run.seed, run.path)
    return found


# A run that is done does not change, and results are asked for more than once.
@lru_cache(maxsize=1024)
def _mistakes(path: Path, made: Path | None, folder: Path | None) -> Mistakes | None:
    """Return how bad a run's mistakes are.

    Args:
        path: Of the run.
        made: A run whose hierarchy was made for the seed.
        folder: Where named sets lie.
    """
    config = _config(path)
    if config.data == GIVEN:
        return None
    source = _source(config.data, folder, config.image_size, config.target, config.text, Path.cwd())
    if source.groups is None:
        return None
    run, logits = RunResult.load(path), _logits(path, source)
    people = _measures(run, logits, source.own_hierarchy())
    by_made = None if made is None else _measures(run, logits, Run(made).hierarchy())
    return Mistakes(run.method, run.seed, 100 * run.accuracy, people, by_made)


def _config(path: Path) -> Config:
    return stored_config(Run(path).config.settings)


@lru_cache(maxsize=1)
def _source(
    data: str,
    folder: Path | None,
    image_size: int | None,
    target: str | None,
    text: str | None,
    _: Path,  # the current directory, which paths may start from
) -> Source:
    return load_data(data, folder=folder, image_size=image_size, target=target, text=text)


def _logits(path: Path, source: Source) -> Tensor:
    """Return what a run's model makes of its test samples."""
    trained = load_trained(path)
    data = divided_as_in_training(source, trained.config, trained.fingerprint)
    if data is None:
        raise RunError(
            f"{path} was trained with other data than {trained.config.data} holds now, so its "
            f"mistakes cannot be measured; give the folder that it was trained from."
        )
    return trained.logits(data.test)


def _measures(run: RunResult, logits: Tensor, hierarchy: Hierarchy) -> Measures:
    both = run.predictions("test")
    errors = level_calibration_errors(logits, both[1], hierarchy)
    severity = mistake_severity(*both, hierarchy)
    return Measures(
        mean_height(*both, hierarchy),
        None if math.isnan(severity) else severity,
        100 * hierarchical_f1(*both, hierarchy),
        (100 * errors).tolist(),
    )


# ---------------------------------------------------------------------------- in a table

HEADINGS = (
    "mean height",
    "of mistakes",
    "hierarchical F1",
    "calibration error",
    "of the groups",
)
_COLUMNS: tuple[Callable[[Measures], float], ...] = (
    lambda found: found.mean_height,
    lambda found: math.nan if found.severity is None else found.severity,
    lambda found: found.f1,
    lambda found: found.calibration[-1],
    lambda found: found.calibration[0],
)


def cells(values: Sequence[Mistakes], method: str) -> list[str]:
    """Return the means of a method's measures by the hierarchy of people, one a heading.

    Args:
        values: Of all methods.
        method: One of them, or the baseline.
    """
    own = [found.people for found in values if found.method == method]
    if not own:
        return [""] * len(HEADINGS)
    means = (paired([column(found) for found in own]) for column in _COLUMNS)
    return [plus_minus((mean.mean, mean.error)) for mean in means]


# --------------------------------------------------------------------------------- drawn


def draw(panels: Sequence[Panel[Sequence[Mistakes]]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a point for each method, its mistakes against its accuracy.

    Each setting has two panels, since the mean over mistakes alone can get better just because
    there are more mild mistakes.
    """
    both = [
        Panel(panel.title, panel.labels, (panel, what, column))
        for panel in panels
        for what, column in (
            ("mean height over all samples", _COLUMNS[0]),
            ("mean height over mistakes", _COLUMNS[1]),
        )
    ]
    return add_legend(draw_panels(both, _draw_panel, width=4.5, height=3.8, total=width))


def _draw_panel(axes: Any, panel: Panel[Any]) -> None:
    own, what, column = panel.values
    for place, name in enumerate([BASELINE, *own.labels]):
        found = [each for each in own.values if each.method == name]
        if found:
            x = Estimate.of(each.accuracy for each in found)
            y = Estimate.of(column(each.people) for each in found)
            axes.errorbar(
                x.mean, y.mean, xerr=x.error, yerr=y.error, elinewidth=0.8, label=own.label(name),
                linestyle="", marker=MARKERS[place % len(MARKERS)], markersize=5,
                color=COLOURS[(place - 1) % len(COLOURS)] if place else GREY,
            )  # fmt: skip
    add_x_label(axes, "test accuracy, %")
    axes.set_ylabel(what)
    add_title(axes, panel.title)
