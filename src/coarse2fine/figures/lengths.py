"""Test accuracy against the curriculum's length T."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..runs.result import BASELINE, RunResult
from .style import Panel, add_legend, add_title, draw_panels
from .theme import COLOURS, GREY
from .values import Estimate, mean_accuracies


class Length(NamedTuple):
    """How good a curriculum of some length is.

    Args:
        epochs: T; the mean over seeds where each has its own.
        accuracy: On the test samples.
    """

    epochs: float
    accuracy: Estimate


@dataclass(frozen=True)
class Lengths:
    """How good curricula of several lengths are.

    Args:
        baseline: Without a curriculum; None where it has no runs.
        given: Those whose T was given, the shortest first.
        by_rule: Those whose T was found by a rule, for each seed its own.
    """

    baseline: Estimate | None
    given: tuple[Length, ...]
    by_rule: tuple[Length, ...]


def values_of(runs: Sequence[RunResult], asked: Mapping[str, Any]) -> Lengths | None:
    """Return the accuracies of methods by their T; None where none has one.

    Args:
        runs: Of all methods.
        asked: What `Config.curriculum_epochs` was for each method: T, or the name of a rule.
    """
    found = mean_accuracies(runs)
    given, by_rule = [], []
    for name in asked:
        lengths = [run.curriculum_epochs for run in runs if run.method == name]
        known = [length for length in lengths if length is not None]
        if not known or len(known) < len(lengths):
            continue
        if isinstance(asked[name], int):
            given.append(Length(asked[name], found[name]))
        else:
            by_rule.append(Length(sum(known) / len(known), found[name]))
    if not given and not by_rule:
        return None
    return Lengths(found.get(BASELINE), tuple(sorted(given)), tuple(sorted(by_rule)))


def draw(panels: Sequence[Panel[Lengths]], width: float | None = None) -> Any:
    """Return a matplotlib figure: a point for each T, and the baseline as a line."""
    figure = draw_panels(panels, _draw_panel, total=width)
    return add_legend(figure, "mean over seeds ± standard error")


def _draw_panel(axes: Any, panel: Panel[Lengths]) -> None:
    plain, given, by_rule = panel.values.baseline, panel.values.given, panel.values.by_rule
    if plain is not None:
        low, high = plain.mean - plain.error, plain.mean + plain.error
        axes.axhline(plain.mean, color=GREY, label=BASELINE)
        axes.axhspan(low, high, color=GREY, alpha=0.2, linewidth=0)
    if given:
        style = {"fmt": "o-", "linewidth": 1, "elinewidth": 1.5, "capsize": 3}
        _draw_points(axes, given, color=COLOURS[0], label="T given", **style)
        axes.set_xticks([length.epochs for length in given])
    if by_rule:
        _draw_points(axes, by_rule, color=COLOURS[1], label="T by rule", fmt="D", capsize=3)
    axes.set_xlabel("length of the curriculum T, epochs")
    axes.set_ylabel("test accuracy, %")
    add_title(axes, panel.title)


def _draw_points(axes: Any, lengths: Sequence[Length], **style: Any) -> None:
    epochs = [length.epochs for length in lengths]
    means, errors = zip(*(length.accuracy for length in lengths), strict=True)
    axes.errorbar(epochs, means, yerr=errors, **style)
