"""Everything that a report shows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..errors import MissingExtraError, RunError
from ..figures.curves import Curve
from ..figures.values import PREFERRED, Confusions, Layout, Level, count_confusions
from ..runs.identity import Factory
from ..runs.restorer import Restorer
from ..runs.result import BASELINE
from .answers import AnswerLevels, answer_levels
from .clusters import Classes, Clusters, class_accuracies, cluster_accuracies
from .comparisons import NO_BASELINE, Comparison, comparisons_of, title_of
from .examples import Examples, example_images
from .levels import LevelAccuracies, Severities, Yardstick, level_accuracies, severities
from .mistakes import (
    Change,
    ConfusionMatrix,
    Mistake,
    Mistakes,
    changed_mistakes,
    confusion_matrix,
    mistakes_by_class,
)
from .runs import Entry, FinishedRun, Source, gather
from .summary import pairs, remarks_of, sentence_of, verdict_of
from .tables import Repeat, TableRow, how_to_repeat, table_row


@dataclass(frozen=True)
class Shown:
    """Whose details are shown.

    Args:
        comparison: The name of the one it belongs to.
        label: Of the method.
        baseline: The label of what it is compared with; None without.
        seed: Whose hierarchy orders the classes.
        seeds: Over which mistakes are counted.
    """

    comparison: str
    label: str
    baseline: str | None
    seed: int
    seeds: list[int]


@dataclass(frozen=True)
class Content:
    """What a report shows.

    Classes are in the order of the shown hierarchy, and counted by their position in it; rates
    are in percent.

    Args:
        title: Data and models.
        choice: Which run to use, and why: in the words of `Result.choice`.
        verdict: Whether it helped, in a word.
        sentence: The same, with how sure it is and what it costs.
        comparisons: What came out of each.
        table: A row for each method.
        remarks: What to bear in mind.
        shown: Whose details follow.
        classes: All of them.
        levels: Those above the classes, coarsest first.
        clusters: Of each of these levels.
        mistakes: That changed most.
        confusion: None where there are too many classes and clusters.
        taken_for: For each class the most frequent mistakes; None where `confusion` is not that
            of the classes.
        level_accuracy: Of every method.
        severity: How bad mistakes are.
        curves: Of every run; in place of its method each has its label.
        answers: How fine the shown run can answer; None without a hierarchy, or if not asked for.
        examples: Images; None without.
        repeat: How to repeat it.
    """

    title: str
    choice: str
    verdict: str
    sentence: str
    comparisons: list[Comparison]
    table: list[TableRow]
    remarks: list[str]
    shown: Shown
    classes: Classes
    levels: list[Level]
    clusters: list[Clusters]
    mistakes: Mistakes
    confusion: ConfusionMatrix | None
    taken_for: list[list[Mistake]] | None
    level_accuracy: LevelAccuracies
    severity: Severities
    curves: list[Curve]
    answers: AnswerLevels | None
    examples: Examples | None
    repeat: Repeat


def report_content(
    sources: Iterable[Source],
    *,
    method: str | None = None,
    seed: int | None = None,
    examples: int = 4,
    answers: bool = True,
    folder: str | os.PathLike[str] | None = None,
    model: Factory | None = None,
) -> Content:
    """Return what a report shows.

    Args:
        sources: See `gather`.
        method: Whose details are shown: the label or the name of a method. Defaults to None:
            the first with a hierarchy, ``"continuous"`` preferred.
        seed: Whose hierarchy orders the classes. Defaults to None: the first.
        examples: How many images of each class, where the data have images. Defaults to 4.
        answers: Whether to ask the shown run's model how fine it can answer. Defaults to True.
        folder: Where a named data set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.
        model: What makes that model. Defaults to None: what the run names.

    Raises:
        RunError: As `gather`; and where there is no such method or seed.
    """
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise ValueError(f"examples must be a whole number from 0 on. Got {examples!r}.")
    entries, left_out = gather(sources)
    shown = _shown(entries, method)
    before = [plain for plain, _ in pairs(shown)]
    after = [run for _, run in pairs(shown)] or list(shown.runs)
    owner = shown if _has_hierarchy(shown) else _default(entries)
    chosen = _chosen(shown, after, seed)
    yardstick = Yardstick(owner, chosen.seed)
    layout = Layout(yardstick.shown)
    counts = (_counted(layout, before) if before else None, _counted(layout, after))
    change, matrix = Change.of(*counts), confusion_matrix(layout, *counts)
    restorer = Restorer(folder, model)
    images, reasons = _examples(chosen, layout, examples, restorer)
    remarks = [*left_out, *remarks_of(entries), *_borrowed(shown, owner, yardstick.seed)]
    baseline = _label_of(entries, before[0]) if before else None
    comparisons, verdict = comparisons_of(entries), verdict_of(shown)
    own = comparisons[chosen.comparison]
    return Content(
        title=title_of(entries),
        choice=own.choice,
        verdict=verdict.word if verdict else NO_BASELINE,
        sentence=sentence_of(shown),
        comparisons=list(comparisons.values()),
        table=[table_row(entry, yardstick, is_shown=entry is shown) for entry in entries],
        remarks=[*remarks, *yardstick.remarks(), *reasons],
        shown=Shown(own.name, shown.label, baseline, chosen.seed, [run.seed for run in after]),
        classes=class_accuracies(layout, *counts),
        levels=layout.levels,
        clusters=cluster_accuracies(layout, *counts, change),
        mistakes=changed_mistakes(change),
        confusion=matrix,
        taken_for=mistakes_by_class(change) if matrix and matrix.level is None else None,
        level_accuracy=level_accuracies(yardstick, entries),
        severity=severities(yardstick, before, after),
        answers=(
            answer_levels(chosen, layout.hierarchy, restorer) if answers and layout.levels else None
        ),
        curves=[_curve(entry, run) for entry in entries for run in entry.runs],
        examples=images,
        repeat=how_to_repeat(entries),
    )


# --------------------------------------------------------------------------- what is shown


def _has_hierarchy(entry: Entry) -> bool:
    return any(run.result.num_clusters for run in entry.runs)


def _default(entries: Sequence[Entry]) -> Entry:
    """Return the first method with a hierarchy, else the first that is no baseline."""
    able = [entry for entry in entries if _has_hierarchy(entry)]
    others = [entry for entry in entries if entry.method != BASELINE]
    return min(able or others or entries, key=lambda entry: entry.method != PREFERRED)


def _shown(entries: Sequence[Entry], method: str | None) -> Entry:
    if method is None:
        return _default(entries)
    found = [entry for entry in entries if method in (entry.label, entry.method)]
    if not found:
        labels = ", ".join(entry.label for entry in entries)
        raise RunError(f"there is no method {method}, but {labels}.")
    return min(found, key=lambda entry: entry.label != method)


def _chosen(shown: Entry, shared: Sequence[FinishedRun], seed: int | None) -> FinishedRun:
    """Return the run whose hierarchy and samples are shown."""
    runs = {run.seed: run for run in shown.runs}
    if seed is not None and seed not in runs:
        there = ", ".join(map(str, runs))
        raise RunError(f"{shown.label} has no seed {seed}, but {there}.")
    return shared[0] if seed is None else runs[seed]


def _borrowed(shown: Entry, owner: Entry, seed: int) -> list[str]:
    if shown is owner or not _has_hierarchy(owner):
        return []
    place = f"{owner.label}, seed {seed}"
    return [f"{shown.label} was trained without a hierarchy; shown is that of {place}."]


def _counted(layout: Layout, runs: Sequence[FinishedRun]) -> Confusions:
    """Return how often each position was predicted as each, over all runs."""
    pairs = zip(*(run.predictions for run in runs), strict=True)
    predictions, targets = (layout.position[np.concatenate(part)] for part in pairs)
    return count_confusions(predictions, targets, len(layout.order))


def _label_of(entries: Sequence[Entry], run: FinishedRun) -> str:
    return next(entry.label for entry in entries if run in entry.runs)


def _curve(entry: Entry, run: FinishedRun) -> Curve:
    """Return a curve called by its label, as several entries may be of the same method."""
    return replace(run.curve(), method=entry.label)


def _examples(
    run: FinishedRun, layout: Layout, count: int, restorer: Restorer
) -> tuple[Examples | None, list[str]]:
    """Return the images, or a remark why there is none."""
    try:
        return example_images(run, layout, count, restorer), []
    except (OSError, ValueError, TypeError, MissingExtraError, RunError) as error:
        return None, [f"There are no example images: {str(error).rstrip('.')}."]
