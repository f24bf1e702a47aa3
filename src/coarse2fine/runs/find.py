"""Which run directories a path means: a run's own, a seed's, or a comparison's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import RunError
from .directory import CONFIG, RESULT
from .result import BASELINE

_SEED = "seed-"  # how the folders of a comparison begin
SEED = re.compile(rf"{_SEED}(\d+)")
LONGER = re.compile(rf"{BASELINE}-(\d+)")  # a baseline that went on for so many epochs
AUXILIARY = ("hierarchy-", "search")  # how folders begin whose runs no method is compared by


def longer_baseline(epochs: int) -> str:
    """Return the name of the directory of a baseline that goes on for so many epochs."""
    return f"{BASELINE}-{epochs}"


def seed_folder(path: Path, seed: int) -> Path:
    """Return the folder of a comparison that holds the runs of a seed."""
    return path / f"{_SEED}{seed}"


def seed_folders(path: Path) -> dict[int, Path]:
    """Return the folders of a comparison's seeds, in the order of the seeds."""
    named = ((SEED.fullmatch(folder.name), folder) for folder in path.iterdir())
    found = {int(match[1]): folder for match, folder in named if match and folder.is_dir()}
    return dict(sorted(found.items()))


def runs_of_seed(folder: Path) -> dict[str, Path]:
    """Return the runs that are compared for one seed, by their names.

    The baseline is the one that was trained for the longest.
    """
    return {
        name: run
        for name, run in _all_runs(folder).items()
        if not name.startswith(AUXILIARY) and not LONGER.fullmatch(name)
    }


def _all_runs(folder: Path) -> dict[str, Path]:
    found = {run.parent.name: run.parent for run in sorted(folder.glob(f"*/{CONFIG}"))}
    longer = {
        int(match[1]): run
        for name, run in found.items()
        if (match := LONGER.fullmatch(name)) and (run / RESULT).is_file()
    }
    if longer and BASELINE in found:
        found[BASELINE] = longer[max(longer)]
    return found


def runs_begun(path: Path) -> list[Path]:
    """Return every run in a comparison, those of a search for T included, done or not."""
    levels = (f"{_SEED}*/*", f"{_SEED}*/*/*")  # a search has its runs in a folder of their own
    return [file.parent for level in levels for file in sorted(path.glob(f"{level}/{CONFIG}"))]


def find_run(path: Path, method: str | None = None, seed: int | None = None) -> Path:
    """Return the run directory that is meant by a run or by a comparison of several.

    Args:
        path: Of a run or a comparison.
        method: Of a comparison's runs, such as ``"baseline"``. Defaults to None: the first
            that is not the baseline.
        seed: Of a comparison's runs. Defaults to None: the first.
    """
    if not path.is_dir():
        raise RunError(f"there is no run {path}.")
    seeds = seed_folders(path)
    if not seeds:
        if method is not None or seed is not None:
            raise RunError(f"{path} is not a comparison, so there is no method or seed to choose.")
        return path
    folder = _chosen("seed", min(seeds) if seed is None else seed, seeds, path)
    runs = _all_runs(folder)
    if not runs:
        raise RunError(f"{folder} holds no run yet.")
    if method is None:
        method = next((name for name in runs_of_seed(folder) if name != BASELINE), min(runs))
    return _chosen("method", method, runs, folder)


def _chosen(what: str, wanted: Any, found: Mapping[Any, Path], path: Path) -> Path:
    if wanted not in found:
        there = ", ".join(map(str, sorted(found)))
        raise RunError(f"{path} has no {what} {wanted}, but {there}.")
    return found[wanted]
