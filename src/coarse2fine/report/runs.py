"""The finished runs that a report is about, each with the baseline it is compared with."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._hierarchy.levels import to_class_indices
from .._util.arrays import IntArray
from ..errors import RunError
from ..figures.curves import Curve, learning_curve
from ..figures.values import flat_hierarchies
from ..hierarchy import Hierarchy
from ..runs.directory import Run, RunConfig
from ..runs.find import SEED, runs_of_seed, seed_folders
from ..runs.result import BASELINE, Result, RunResult

Source = str | os.PathLike[str] | RunResult | Result


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A finished run and what its directory tells.

    Args:
        result: What came out.
        config: What it was begun with.
        folder: Its directory as it was given.
        comparison: The directory of all that was trained with it.
        baseline: What it is compared with. Defaults to None: there is none.
    """

    result: RunResult
    config: RunConfig
    folder: str
    comparison: Path
    baseline: FinishedRun | None = None

    @property
    def seed(self) -> int:
        """Of everything random."""
        return self.result.seed

    @property
    def accuracy(self) -> float:
        """On the test samples, in percent."""
        return 100 * self.result.accuracy

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The names of the K classes."""
        return self.config.data.class_names

    @cached_property
    def predictions(self) -> tuple[IntArray, IntArray]:
        """The predicted and the true classes of the test samples."""
        path = Run(self.result.path).predictions_file
        try:
            count = len(self.class_names)
            predicted, wanted = (
                to_class_indices(x, count) for x in self.result.predictions("test")
            )
        except (ValueError, TypeError) as error:
            raise _named(path, error) from None
        if predicted.shape != wanted.shape:
            raise RunError(f"{path} is damaged: {len(predicted)} of {len(wanted)} are predicted.")
        return np.asarray(predicted), np.asarray(wanted)

    def level_hits(self, hierarchy: Hierarchy) -> tuple[IntArray, IntArray]:
        """Return for each level how many test predictions are right, and of how many."""
        try:
            return self.result.level_hits(hierarchy)
        except (ValueError, TypeError) as error:
            raise _named(Run(self.result.path).predictions_file, error) from None

    @cached_property
    def hierarchy(self) -> Hierarchy | None:
        """What it was trained with; None where it needs none."""
        path = Run(self.result.path).hierarchy_file
        if not self.result.num_clusters:
            return None
        try:
            with flat_hierarchies():
                return self.result.hierarchy().for_classes(self.class_names)
        except FileNotFoundError:
            raise RunError(f"there is no {path}, which belongs to the run.") from None
        except (ValueError, TypeError) as error:
            raise _named(path, error) from None

    def curve(self) -> Curve:
        """Return how the training went on."""
        path = Run(self.result.path).metrics_file
        if not path.is_file():
            raise RunError(f"there is no {path}, which belongs to the run.")
        return learning_curve(self.result)


def _named(path: Path, error: Exception) -> RunError:
    """Return an error that names the file, as those of some readers do by themselves."""
    text = str(error)
    return RunError(text if str(path) in text else f"{path} is damaged: {text}")


class Entry(NamedTuple):
    """A method of a report.

    Args:
        label: What the report calls it.
        method: ``"baseline"``, or the name of a method.
        runs: One a seed.
    """

    label: str
    method: str
    runs: tuple[FinishedRun, ...]


class Gathered(NamedTuple):
    """What a report is about.

    Args:
        entries: The methods, baselines first.
        remarks: What was left out.
    """

    entries: tuple[Entry, ...]
    remarks: tuple[str, ...]


def gather(sources: Iterable[Source]) -> Gathered:
    """Return the runs of one or more sources, by method and comparison.

    Args:
        sources: Each the directory of a run, of a comparison, or of anything that holds
            runs as seed-N/METHOD; or a `RunResult`, or a `Result`.

    Raises:
        RunError: Where a run is not done, damaged, or not of the same classes or test
            samples as what it would be compared with.
    """
    found: dict[Path, FinishedRun] = {}
    unfinished: dict[Path, Path] = {}
    for path, is_given in _run_paths(sources):
        if not is_given and not Run(path).is_done:
            unfinished[path.resolve()] = path
        else:
            found.setdefault(path.resolve(), _load(path))
    if unfinished and not found:
        first = next(iter(unfinished.values()))
        raise RunError(f"{first} is not finished, nor is any other run, so there is none to show.")
    if not found:
        raise RunError("there is no run to make a report of.")
    runs = list(found.values())
    _check_classes(runs)
    baselines = [run for run in runs if run.result.method == BASELINE]
    remarks = (f"{path} is not finished, so it is left out." for path in unfinished.values())
    return Gathered(_entries([_paired(run, baselines) for run in runs]), tuple(remarks))


def _load(path: Path) -> FinishedRun:
    config, result = Run(path).config, RunResult.load(path)
    whole = path.resolve().parent
    comparison = whole.parent if SEED.fullmatch(whole.name) else whole
    return FinishedRun(result, config, str(path), comparison)


# ------------------------------------------------------------------------ where runs are


def _run_paths(sources: Iterable[Source]) -> Iterator[tuple[Path, bool]]:
    """Yield the directories of all runs, and whether each was given by itself."""
    for source in sources:
        if isinstance(source, Result):
            yield from ((run.path, True) for run in source.runs)
        elif isinstance(source, RunResult):
            yield source.path, True
        else:
            yield from _paths_within(Path(source))


def _paths_within(path: Path) -> Iterator[tuple[Path, bool]]:
    if not path.is_dir():
        raise RunError(f"there is no run {path}; give the folder of a run or of a comparison.")
    if Run(path).is_begun:
        yield path, True
        return
    if SEED.fullmatch(path.resolve().name):
        runs = _methods(path)
    else:
        runs = [run for folder in seed_folders(path).values() for run in _methods(folder)]
    if not runs:
        raise RunError(
            f"{path} holds no run: there is neither a {Run(path).config_file.name} of a run nor a "
            f"seed-0."
        )
    yield from ((run, False) for run in runs)


def _methods(folder: Path) -> list[Path]:
    """Return the runs of a seed, in the order in which their methods were asked for."""
    found = [path for path in runs_of_seed(folder).values() if Run(path).is_begun]
    return sorted(found, key=_place)


def _place(path: Path) -> tuple[int, str]:
    config = Run(path).config
    asked = config.settings.get("methods")
    asked = asked if isinstance(asked, list) else []
    return (asked.index(config.method) if config.method in asked else len(asked)), path.name


# ------------------------------------------------------------------------ what is compared


def _check_classes(runs: Sequence[FinishedRun]) -> None:
    first = runs[0]
    for run in runs[1:]:
        if run.class_names != first.class_names:
            raise RunError(
                f"{first.folder} and {run.folder} have different classes; make a report of each."
            )


def _paired(run: FinishedRun, baselines: Sequence[FinishedRun]) -> FinishedRun:
    """Return a run with the baseline of its seed, from its own comparison if that has one."""
    if run.result.method == BASELINE:
        return run
    of_seed = [plain for plain in baselines if plain.seed == run.seed]
    own = [plain for plain in of_seed if plain.comparison == run.comparison]
    named = [plain for plain in own if plain.result.path.name == BASELINE]
    plain = next((group[0] for group in (named, own, of_seed) if len(group) == 1), None)
    if plain is None:
        return run
    run = replace(run, baseline=plain)
    if not np.array_equal(run.predictions[1], plain.predictions[1]):
        raise RunError(
            f"{plain.folder} and {run.folder} were tested on different samples, so they cannot be "
            f"compared; make a report of each."
        )
    return run


def _entries(runs: Sequence[FinishedRun]) -> tuple[Entry, ...]:
    """Return the runs by comparison and method, baselines first."""
    groups: dict[tuple[Path, str], list[FinishedRun]] = {}
    repeated = _repeated(runs)
    for run in runs:
        key = (run.comparison, run.result.method)
        name = run.result.path.name if key in repeated else run.result.method
        groups.setdefault((run.comparison, name), []).append(run)
    shown = tails({comparison for comparison, _ in groups})
    places = Counter(name for _, name in groups)
    entries = [
        Entry(
            f"{shown[comparison]}: {name}" if places[name] > 1 else name,
            own[0].result.method,
            tuple(sorted(own, key=lambda run: run.seed)),
        )
        for (comparison, name), own in groups.items()
    ]
    return tuple(sorted(entries, key=lambda entry: entry.method != BASELINE))


def _repeated(runs: Iterable[FinishedRun]) -> set[tuple[Path, str]]:
    """Return the methods that a comparison has twice for a seed, as in a copied folder."""
    counts = Counter((run.comparison, run.result.method, run.seed) for run in runs)
    return {(comparison, method) for (comparison, method, _), n in counts.items() if n > 1}


def tails(paths: Iterable[Path]) -> dict[Path, str]:
    """Return the shortest ends of paths that tell them apart.

    Args:
        paths: At least one.

    Examples:
        >>> sorted(tails([Path("/a/run"), Path("/b/run")]).values())
        ['a/run', 'b/run']
    """
    paths = set(paths)
    for length in range(1, max(len(path.parts) for path in paths) + 1):
        found = {path: "/".join(path.parts[-length:]) for path in paths}
        if len(set(found.values())) == len(paths):
            break
    return found
