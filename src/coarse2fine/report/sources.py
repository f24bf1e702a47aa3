"""Where the runs of a report are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .._files import parse_json
from ..errors import RunError
from ..training.restore import SEED
from ..training.result import Result, RunResult
from ..training.run import CONFIG

Source = str | os.PathLike[str] | RunResult | Result
FORMAT = "coarse2fine run"
OTHERS = ("hierarchy-", "search")  # how folders begin whose runs are no method of a comparison


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
    if _is_run(path):
        yield path, True
        return
    if SEED.fullmatch(path.resolve().name):
        runs = _methods(path)
    else:
        matches = ((SEED.fullmatch(folder.name), folder) for folder in path.iterdir())
        seeds = {int(match[1]): folder for match, folder in matches if match and folder.is_dir()}
        runs = [run for seed in sorted(seeds) for run in _methods(seeds[seed])]
    if not runs:
        raise RunError(f"{path} holds no run: there is neither a {CONFIG} of a run nor a seed-0.")
    yield from ((run, False) for run in runs)


def _methods(folder: Path) -> list[Path]:
    """Return the runs of a seed, in the order in which their methods were asked for."""
    runs = [f for f in folder.iterdir() if not f.name.startswith(OTHERS) and _is_run(f)]
    return sorted(runs, key=_place)


def _place(run: Path) -> tuple[int, str]:
    content = run_content(run)
    asked = content["config"].get("methods")
    asked = asked if isinstance(asked, list) else []
    method = content["method"]
    return (asked.index(method) if method in asked else len(asked)), run.name


def _is_run(path: Path) -> bool:
    if not (path / CONFIG).is_file():
        return False
    content = _parsed(path / CONFIG)
    return isinstance(content, dict) and content.get("format") == FORMAT


def _parsed(path: Path) -> Any:
    try:
        return parse_json(path)
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no {path.name}, so it is not a run.") from None
    except ValueError as error:
        raise RunError(str(error)) from None


def run_content(path: Path) -> dict[str, Any]:
    """Return what a run directory's config.json holds, once all that is needed is there."""
    content = _parsed(path / CONFIG)
    try:
        data, config = content["data"], content["config"]
        texts = (content["method"], data["kind"], data["fingerprint"], *data["class_names"])
    except KeyError as error:
        raise RunError(f"{path / CONFIG} is damaged: it has no {error}.") from None
    except TypeError:
        raise RunError(f"{path / CONFIG} is damaged: it does not hold what a run has.") from None
    if not isinstance(config, dict) or not all(isinstance(text, str) for text in texts):
        raise RunError(f"{path / CONFIG} is damaged: it does not hold what a run has.")
    found: dict[str, Any] = content
    return found
