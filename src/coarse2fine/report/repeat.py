"""All that is needed to train the same again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from .runs import Entry, FinishedRun

T = TypeVar("T")
Settings = Mapping[str, Any]  # as the config of a run has them


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
        commands=[command for command in _distinct(map(_command, runs)) if command],
        config={name: value for name, value in shared.items() if value is not None},
        differences=own if differing else [],
        seeds=sorted({run.seed for run in runs}),
        versions=[found for found in _distinct(run.config.versions for run in runs) if found],
        runs=[_run_row(entry, run) for entry in entries for run in entry.runs],
    )


def _distinct(values: Iterable[T]) -> list[T]:
    """Return each value once, in order; values need no hash, as settings may be lists."""
    found: list[T] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


def _settings(runs: Iterable[FinishedRun], name: str) -> list[Any]:
    return _distinct(run.config.settings.get(name) for run in runs)


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
        own_epochs=result.own_epochs,
        best_epoch=result.best_epoch,
        curriculum_epochs=result.curriculum_epochs,
        num_clusters=result.num_clusters,
        seconds=result.seconds,
    )
