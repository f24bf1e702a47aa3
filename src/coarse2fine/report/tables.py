"""The tables of a report: methods, runs, and the settings that repeat them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._util.distinct import distinct
from ..runs.statistics import paired
from .levels import Yardstick, mean_severity
from .runs import Entry, FinishedRun
from .summary import time_ratio, verdict_of

Settings = Mapping[str, Any]  # as the config of a run has them
Estimate = tuple[float, float]  # a mean over seeds and its standard error, nan for a single one


@dataclass(frozen=True)
class TableRow:
    """A method's row; means are over its seeds, and None is for what takes a baseline.

    Args:
        label: What the report calls it.
        method: ``"baseline"``, or the name of a method.
        seeds: How many.
        accuracy: On the test samples, in percent.
        gain: Over the baseline of the same seed, in percentage points.
        interval: The 95% interval of the gain; None for a single seed, too.
        wins: In how many runs it gained, and of how many.
        verdict: Whether it helped, in a word.
        epochs: How many it trained in all.
        hierarchy_epochs: How many more were only for its hierarchy; None where none were.
        own_epochs: After how many it had stopped by itself; None where it did not go on then.
        seconds: How long it trained, with what was only for its hierarchy.
        time_ratio: How many times as long as the baseline.
        severity: Of its mistakes; None where there are none, or no levels.
        is_shown: Whether it is the method whose details the report shows.
    """

    label: str
    method: str
    seeds: int
    accuracy: Estimate
    gain: Estimate | None
    interval: tuple[float, float] | None
    wins: tuple[float, int] | None
    verdict: str | None
    epochs: float
    hierarchy_epochs: float | None
    own_epochs: float | None
    seconds: float
    time_ratio: float | None
    severity: float | None
    is_shown: bool


def table_row(entry: Entry, yardstick: Yardstick, *, is_shown: bool) -> TableRow:
    """Return a method's row of the table.

    Args:
        entry: The method.
        yardstick: What the severity of mistakes is measured by.
        is_shown: Whether it is the method whose details the report shows.
    """
    accuracy, verdict = paired([run.accuracy for run in entry.runs]), verdict_of(entry)
    gain = verdict.gain if verdict else None
    return TableRow(
        label=entry.label,
        method=entry.method,
        seeds=len(entry.runs),
        accuracy=(accuracy.mean, accuracy.error),
        gain=(gain.mean, gain.error) if gain else None,
        interval=(gain.low, gain.high) if gain and gain.runs > 1 else None,
        wins=(gain.wins, gain.runs) if gain else None,
        verdict=verdict.word if verdict else None,
        epochs=float(np.mean([run.result.epochs for run in entry.runs])),
        hierarchy_epochs=_hierarchy_epochs(entry),
        own_epochs=_own_epochs(entry),
        seconds=float(np.mean([run.result.all_seconds for run in entry.runs])),
        time_ratio=time_ratio(entry),
        severity=mean_severity(yardstick, entry.runs),
        is_shown=is_shown,
    )


def _hierarchy_epochs(entry: Entry) -> float | None:
    """Return the mean over seeds of the epochs that were only for the hierarchy."""
    found = [run.result.hierarchy_epochs for run in entry.runs]
    return None if set(found) == {None} else float(np.mean([epochs or 0 for epochs in found]))


def _own_epochs(entry: Entry) -> float | None:
    """Return the mean over seeds, of which some may have trained as long as they would."""
    results = [run.result for run in entry.runs]
    if all(result.own_epochs is None for result in results):
        return None
    own = [r.epochs if r.own_epochs is None else r.own_epochs for r in results]
    return float(np.mean(own))


# -------------------------------------------------------------------------- how to repeat it


@dataclass(frozen=True)
class Difference:
    """A method's own settings.

    Args:
        label: Of the method.
        settings: Where its seeds differ, all of their values as a list.
    """

    label: str
    settings: Settings


@dataclass(frozen=True)
class RunRow:
    """A finished run.

    Args:
        label: Of its method.
        seed: Of everything random.
        folder: Its directory as it was given.
        accuracy: On the test samples, in percent.
        epochs: How many it trained in all.
        hierarchy_epochs: How many more were only for its hierarchy; None where none were.
        own_epochs: After how many it had stopped by itself; None where it did not go on then.
        best_epoch: That the accuracy is of.
        curriculum_epochs: T; None for methods without one.
        num_clusters: Of each level, coarsest first; empty without a hierarchy.
        seconds: How long it trained.
    """

    label: str
    seed: int
    folder: str
    accuracy: float
    epochs: int
    hierarchy_epochs: int | None
    own_epochs: int | None
    best_epoch: int
    curriculum_epochs: int | None
    num_clusters: tuple[int, ...]
    seconds: float


@dataclass(frozen=True)
class Repeat:
    """How to repeat the runs.

    Args:
        commands: That began them.
        config: The settings that all share.
        differences: The other settings, by method.
        seeds: Of all runs.
        versions: Of what has a say in the numbers; several where runs differ.
        runs: One by one.
    """

    commands: list[str]
    config: Settings
    differences: list[Difference]
    seeds: list[int]
    versions: list[Mapping[str, str]]
    runs: list[RunRow]


def how_to_repeat(entries: Sequence[Entry]) -> Repeat:
    """Return all that is needed to train the same again."""
    runs = [run for entry in entries for run in entry.runs]
    names = dict.fromkeys(name for run in runs for name in run.config.settings)
    values = {name: _settings(runs, name) for name in names if name != "seeds"}
    differing = [name for name, found in values.items() if len(found) > 1]
    shared = {name: found[0] for name, found in values.items() if len(found) == 1}
    own = [Difference(entry.label, _own_settings(entry, differing)) for entry in entries]
    return Repeat(
        commands=[command for command in distinct(map(_command, runs)) if command],
        config={name: value for name, value in shared.items() if value is not None},
        differences=own if differing else [],
        seeds=sorted({run.seed for run in runs}),
        versions=[found for found in distinct(run.config.versions for run in runs) if found],
        runs=[_run_row(entry, run) for entry in entries for run in entry.runs],
    )


def _settings(runs: Iterable[FinishedRun], name: str) -> list[Any]:
    return distinct(run.config.settings.get(name) for run in runs)


def _own_settings(entry: Entry, names: Iterable[str]) -> Settings:
    values = {name: _settings(entry.runs, name) for name in names}
    return {name: own[0] if len(own) == 1 else own for name, own in values.items()}


def _command(run: FinishedRun) -> str:
    """Return what began a run, ``c2f`` without the folder it was installed in."""
    return re.sub(r"^('[^']*/c2f'|\S*/c2f)(?=\s|$)", "c2f", run.config.command or "")


def _run_row(entry: Entry, run: FinishedRun) -> RunRow:
    result = run.result
    return RunRow(
        label=entry.label,
        seed=run.seed,
        folder=run.folder,
        accuracy=run.accuracy,
        epochs=result.epochs,
        hierarchy_epochs=result.hierarchy_epochs,
        own_epochs=result.own_epochs,
        best_epoch=result.best_epoch,
        curriculum_epochs=result.curriculum_epochs,
        num_clusters=result.num_clusters,
        seconds=result.all_seconds,
    )
