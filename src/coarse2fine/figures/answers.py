"""How fine a model can answer: the share of answers at each level against the promised accuracy.

Thresholds are calibrated by the validation samples of a run, and answers are counted on its test
samples, see `LevelPredictor`. Runs store no probabilities, so their models are asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._calibration import needed_samples
from ..errors import RunError
from ..hierarchy import Hierarchy
from ..runs.directory import Run
from ..runs.restorer import Restorer
from ..runs.result import RunResult
from .promises import CONFIDENCE, PROMISES, Logits, Promise, promises_of
from .style import Panel, add_legend, add_title, add_x_label, draw_panels
from .theme import COLOURS, FAINT, INK, graph_objects, new_figure

LAST_START = 90  # percent; from here on promises are shown however accurate the model is
RIGHT, PROMISED = "right answers", "right as promised"
X, Y = "promised share of right answers, %", "share of all answers, %"
OPACITY = 0.8  # of classes; clusters are paler, the more the coarser


# --------------------------------------------------------------------------------- values


@dataclass(frozen=True, eq=False)
class RunAnswers:
    """How fine a run can answer.

    Args:
        method: ``"baseline"``, or the name of a method.
        seed: Of the run.
        accuracy: Of its likeliest classes, on the test samples, in percent.
        samples: How many validation samples calibrate it.
        promises: Those that so many samples can prove, the lowest first.
    """

    method: str
    seed: int
    accuracy: float
    samples: int
    promises: list[Promise]


@dataclass(frozen=True, eq=False)
class Answers:
    """How fine runs can answer, by one hierarchy, so that the levels are the same ones.

    Args:
        num_clusters: Of each level, coarsest first; the last is the classes.
        runs: All that are compared.
    """

    num_clusters: tuple[int, ...]
    runs: list[RunAnswers]

    @property
    def methods(self) -> list[str]:
        """The names of the methods, in order."""
        return list(dict.fromkeys(run.method for run in self.runs))

    @property
    def start(self) -> int:
        """The lowest promise to show: any lower one is kept by classes alone."""
        return min(LAST_START, *(int(run.accuracy) for run in self.runs))

    def means(self, method: str) -> list[Promise]:
        """Return the means over the seeds of a method, from `start` on."""
        own = [run.promises for run in self.runs if run.method == method]
        # Promises are counted from 1 and end where a run has too few samples.
        return [_mean(found) for found in zip(*own, strict=False)][max(self.start - 1, 0) :]

    @property
    def lacking(self) -> str | None:
        """Return which promises the validation samples are too few for; None if for none."""
        run = min(self.runs, key=lambda run: run.samples)
        if len(run.promises) == len(PROMISES):
            return None
        first = PROMISES[len(run.promises)]
        needed = needed_samples(first / 100, CONFIDENCE).all
        return (
            f"from {first} % on, a promise needs {needed} validation samples or more; there are "
            f"{run.samples}"
        )


def _mean(promises: Sequence[Promise]) -> Promise:
    right = float(np.mean([promise.right for promise in promises]))
    shares = np.mean([promise.shares for promise in promises], axis=0)
    return Promise(promises[0].promised, right, shares)


def values_of(runs: Sequence[RunResult], restorer: Restorer | None = None) -> Answers | None:
    """Return how fine runs can answer by the first of their hierarchies; None without any.

    Args:
        runs: Of one comparison.
        restorer: Makes the models and reads the data. Defaults to None: one that looks for them
            where the runs say.

    Raises:
        RunError: A model or the data cannot be had again, or the validation samples are too few
            for any promise; and as `Restorer.data`, as for other errors.
    """
    first = next((run for run in runs if run.num_clusters), None)
    return None if first is None else answers_of(runs, first.hierarchy(), restorer)


def answers_of(
    runs: Sequence[RunResult], hierarchy: Hierarchy, restorer: Restorer | None = None
) -> Answers:
    """Return how fine runs can answer by a given hierarchy; see `values_of`."""
    restorer = restorer or Restorer()
    found = Answers(hierarchy.num_clusters, [_asked(run, hierarchy, restorer) for run in runs])
    if not all(map(found.means, found.methods)):
        raise RunError(f"the validation samples are too few: {found.lacking}.")
    return found


def _asked(run: RunResult, hierarchy: Hierarchy, restorer: Restorer) -> RunAnswers:
    """Return what a run's model answers to its test samples."""
    trained, data = restorer.trained(run.path), restorer.data(Run(run.path))
    parts = data.val.with_class(), data.test.with_class()
    for what, split in zip(("validation", "test"), parts, strict=True):
        if not len(split):
            raise RunError(f"{run.path} has no {what} samples with a class.")
    hierarchy = hierarchy.for_classes(trained.class_names)
    val, test = (Logits.checked(trained.logits(split), split.targets, hierarchy) for split in parts)
    accuracy = 100 * float((test.logits.argmax(axis=1) == test.targets).mean())
    promises = list(promises_of(val, test, hierarchy.nodes))
    return RunAnswers(run.method, run.seed, accuracy, len(val.targets), promises)


# ----------------------------------------------------------------------------- for both


def names_of(num_clusters: Sequence[int]) -> list[str]:
    """Return what answers at each depth are called, from the root to the classes.

    Args:
        num_clusters: Of each level, coarsest first; the last is the classes.

    Examples:
        >>> names_of([4, 100])
        ['no class or cluster', 'one of 4 clusters', 'one of 100 classes']
    """
    *coarse, classes = num_clusters
    clusters = (f"one of {count} clusters" for count in coarse)
    return ["no class or cluster", *clusters, f"one of {classes} classes"]


def _opacities(count: int) -> list[float]:
    """Return how opaque answers of each depth are drawn; one level looks the same everywhere."""
    coarse = (OPACITY * (1 - 0.7**at) for at in range(1, count - 1))
    return [0.0, *coarse, OPACITY]


def _x_label(values: Answers, between: str) -> str:
    return X if values.lacking is None else f"{X}{between}({values.lacking})"


# ------------------------------------------------------------------------------ for pages


def plot(values: Answers, method: str) -> Any:
    """Return a plotly figure: the shares of answers, stacked, and of those that are right.

    Args:
        values: Of one comparison.
        method: Whose means over its seeds are shown.
    """
    found = values.means(method)
    promised = [promise.promised for promise in found]
    names, opacities = names_of(values.num_clusters), _opacities(len(values.num_clusters) + 1)
    figure = new_figure(
        height=460,
        hovermode="x unified",
        xaxis={"title": {"text": _x_label(values, "<br>")}, "showgrid": False},
        yaxis={"title": {"text": Y}, "range": [0, 100]},
    )
    for depth in reversed(range(len(names))):
        shares = [float(promise.shares[depth]) for promise in found]
        colour = f"rgba(0,114,178,{opacities[depth]:.3f})" if depth else FAINT  # of COLOURS[0]
        area = {"stackgroup": "answers", "fillcolor": colour, "line": {"width": 0}}
        figure.add_trace(_line(promised, shares, names[depth], **area))
    right = [promise.right for promise in found]
    for name, line, dash in ((RIGHT, right, "solid"), (PROMISED, promised, "dot")):
        style = {"color": INK, "dash": dash, "width": 2}
        figure.add_trace(_line(promised, line, name, line=style))
    return figure


def _line(x: Sequence[float], y: Sequence[float], name: str, **style: Any) -> Any:
    hover = "%{y:.1f} %"
    return graph_objects().Scatter(x=x, y=y, name=name, mode="lines", hovertemplate=hover, **style)


# ----------------------------------------------------------------------------- for papers


def draw(panels: Sequence[Panel[Answers]], width: float | None = None) -> Any:
    """Return a matplotlib figure: the shares of answers, stacked, of each method by itself."""
    places: list[Panel[tuple[Answers, str]]] = [
        Panel(panel.title, panel.labels, (panel.values, method))
        for panel in panels
        for method in panel.values.methods
    ]
    figure = draw_panels(places, _draw_panel, height=3.8, total=width)
    has_seeds = any(len(own.values.runs) > len(own.values.methods) for own in panels)
    return add_legend(figure, "mean over seeds" if has_seeds else None)


def _draw_panel(axes: Any, panel: Panel[tuple[Answers, str]]) -> None:
    values, method = panel.values
    found = values.means(method)
    promised = [promise.promised for promise in found]
    names, opacities = names_of(values.num_clusters), _opacities(len(values.num_clusters) + 1)
    colours = ["#cccccc", *((COLOURS[0], opacity) for opacity in opacities[1:])]
    shares = np.array([promise.shares for promise in found]).T
    axes.stackplot(promised, shares[::-1], labels=names[::-1], colors=colours[::-1], linewidth=0)
    right = [promise.right for promise in found]
    axes.plot(promised, right, color="black", linewidth=1.2, label=RIGHT)
    axes.plot(promised, promised, color="black", linewidth=1, linestyle="dotted", label=PROMISED)
    axes.set(ylim=(0, 100), xlim=(values.start, PROMISES[-1]))
    add_x_label(axes, _x_label(values, " "))
    axes.set_ylabel(Y)
    add_title(axes, panel.title, panel.label(method))
