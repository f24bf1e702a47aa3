"""Where the runs of a report are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..errors import RunError
from ..runs.directory import Run
from ..runs.find import SEED, runs_of_seed, seed_folders
from ..runs.result import Result, RunResult

Source = str | os.PathLike[str] | RunResult | Result


def run_paths(sources: Iterable[Source]) -> Iterator[tuple[Path, bool]]:
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
