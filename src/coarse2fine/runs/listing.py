"""What a folder of runs holds, as far as its small files tell: settings and results.

Neither weights nor predictions are read, nor compared with their checksums; whoever uses them
does that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .._util.files import Json, parse_json
from .._util.text import brief
from ..errors import RunError
from ..methods import PLAIN
from .begun import has_format
from .directory import (
    COMPARISON,
    CONFIG,
    METRICS,
    OLD_VERSION,
    RESULT,
    RUN,
    Run,
    comparison_remarks,
)
from .find import runs_begun, runs_of_seed, seed_folders
from .guards import is_locked
from .result import BASELINE, Result, RunResult
from .verdict import Verdict

State = Literal["finished", "training", "interrupted", "damaged", "foreign"]
DEPTH = 3  # how many folders deep runs are looked for; sweeps have theirs in a folder of their own
_OLD = "coarse2fine 0.1 began it, so it cannot be resumed"


@dataclass(frozen=True)
class Listed:
    """A comparison, a run that is in none, or a folder that holds neither.

    Args:
        path: Its directory.
        state: ``"training"`` is one that a process of this machine has locked; ``"interrupted"``
            one that was begun and is not done; ``"foreign"`` a folder without any run.
        reason: Why it is damaged, foreign or cannot be resumed. Defaults to ``""``.
        data: What it was trained on, as it was asked for. Defaults to ``""``: not known.
        model: What was trained. Defaults to ``""``: not known.
        methods: What is compared, the baseline first. Defaults to nothing.
        planned: The seeds that were asked for. Defaults to none.
        done: Those of which all runs are finished. Defaults to none.
        result: The finished runs. Defaults to None: there are none.
    """

    path: Path
    state: State
    reason: str = ""
    data: str = ""
    model: str = ""
    methods: tuple[str, ...] = ()
    planned: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    result: Result | None = None

    @property
    def judged(self) -> tuple[str, Verdict] | None:
        """Which method's gain counts, and what it tells; None without a baseline.

        That of the best method, or where this is the baseline, of the one that validates best
        of the others.
        """
        found = self.result.verdicts if self.result else {}
        if self.result is None or not found:
            return None
        best = self.result.best.method
        method = best if best in found else max(found, key=self.validation)
        return method, found[method]

    def validation(self, method: str) -> float:
        """Return the mean validation accuracy of a method; NaN where there is none."""
        runs = self.result.of(method) if self.result else ()
        found = [run.val_accuracy for run in runs if run.val_accuracy is not None]
        return float(np.mean(found)) if found else np.nan

    @property
    def seconds(self) -> float:
        """How long its finished runs took, with trainings that only hierarchies were made from."""
        runs = self.result.runs if self.result else ()
        made = {run.seed: run.hierarchy_seconds for run in runs if run.hierarchy_seconds}
        return sum(run.seconds for run in runs) + sum(made.values())

    def to_dict(self) -> Json:
        """Return all there is to say of it as plain values."""
        told = self.result.to_dict() if self.result else {}
        verdicts = self.result.verdicts if self.result else {}
        return {
            "path": str(self.path),
            "state": self.state,
            "reason": self.reason or None,
            "data": self.data or None,
            "model": self.model or None,
            "methods": list(self.methods),
            "seeds": {"planned": list(self.planned), "done": list(self.done)},
            "best": told.get("best"),
            "summary": told.get("summary", {}),
            "verdicts": {method: found.word for method, found in verdicts.items()},
            "epochs": {m: [run.epochs for run in self.result.of(m)] for m in self.result.methods}
            if self.result
            else {},
            "seconds": self.seconds,
        }


def list_runs(folder: Path) -> list[Listed]:
    """Return what a folder holds: comparisons, runs that are in none, and folders without runs.

    Of a folder that is a comparison or a run itself, only that.

    Args:
        folder: It is looked into `DEPTH` folders deep.
    """
    if not folder.is_dir():
        raise RunError(f"there is no folder {folder}; c2f train keeps its runs in the folder runs.")
    return list(_within(folder, DEPTH))


def _within(folder: Path, depth: int) -> Iterator[Listed]:
    """Yield what there is in a folder, in the order of the names, numbers by their size."""
    try:
        if _is_comparison(folder):
            yield _comparison(folder)
        elif has_format(folder, RUN) or (folder / METRICS).is_file():
            yield _run(folder)
        elif depth:
            places = (place for place in folder.iterdir() if place.is_dir())
            shown = [place for place in places if not place.name.startswith(".")]
            for place in sorted(shown, key=_order):
                found = list(_within(place, depth - 1))
                is_named = depth == DEPTH and not found  # further down it is no matter of runs
                yield from [Listed(place, "foreign", "it holds no run")] if is_named else found
    except (RunError, OSError) as error:
        yield Listed(folder, "damaged", _reason(error))


def _order(place: Path) -> list[tuple[int, str]]:
    parts = re.split(r"(\d+)", place.name)
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]


def _is_comparison(path: Path) -> bool:
    folders = seed_folders(path).values()
    return has_format(path, COMPARISON) or any(True for f in folders for _ in f.glob(f"*/{CONFIG}"))


def _comparison(path: Path) -> Listed:
    """Return what a comparison's files tell; one of a sweep has no config of its own."""
    reasons: list[str] = []
    runs = {seed: runs_of_seed(folder) for seed, folder in seed_folders(path).items()}
    every = {(seed, name): run for seed, found in runs.items() for name, run in found.items()}
    has_config = (path / CONFIG).is_file()
    content = _content(path if has_config else runs_begun(path)[0], reasons)
    settings = _settings(content)
    results = {key: result for key, run in every.items() if (result := _result(run, reasons))}
    planned = _planned(settings) if has_config else []
    methods = planned or sorted(dict.fromkeys(name for _, name in every), key=_baseline_first)
    seeds = sorted({*runs, *(_seeds(settings) if has_config else ())})
    done = [seed for seed in seeds if all((seed, name) in results for name in methods)]
    is_finished = (path / RESULT).is_file() if has_config else len(results) == len(every)
    return Listed(
        path,
        *_state(path, is_finished, content, reasons),
        *_names(settings),
        methods=tuple(methods),
        planned=tuple(seeds),
        done=tuple(done),
        result=Result(tuple(results.values()), (), path) if results else None,
    )


def _run(path: Path) -> Listed:
    """Return what the files of a run tell that is in no comparison."""
    reasons: list[str] = []
    content = _content(path, reasons)
    settings, result = _settings(content), _result(path, reasons)
    begun = str(content.get("method", ""))
    method = result.method if result else {PLAIN: BASELINE}.get(begun, begun)
    seeds = (result.seed,) if result else _seeds(settings)[:1]
    return Listed(
        path,
        *_state(path, result is not None, content, reasons),
        *_names(settings),
        methods=(method,),
        planned=seeds,
        done=seeds if result else (),
        result=Result((result,), (), path) if result else None,
    )


# ------------------------------------------------------- what is damaged is a reason, no error


def _content(path: Path, reasons: list[str]) -> Json:
    """Return what a directory's config holds."""
    try:
        content = parse_json(path / CONFIG)
    except (OSError, ValueError) as error:
        reasons.append(_reason(error))
        return {}
    if isinstance(content, dict) and isinstance(content.get("config"), dict):
        return content
    reasons.append(f"{path / CONFIG} does not hold what a run has")
    return {}


def _result(run: Path, reasons: list[str]) -> RunResult | None:
    """Return the result of a run, None where it is not done."""
    try:
        return RunResult.load(run) if Run(run).is_done else None
    except (RunError, OSError) as error:
        reasons.append(_reason(error))
        return None


def _state(path: Path, is_finished: bool, content: Json, reasons: list[str]) -> tuple[State, str]:
    """Return the state of a comparison or a run, and the reason for it where there is one."""
    try:
        comparison_remarks(path)  # also of the damage of its result.json
        if not reasons and not is_finished:
            begun = [run for run in (path, *runs_begun(path)) if not Run(run).is_done]
            is_old = content.get("version") == OLD_VERSION
            is_training = any(map(is_locked, begun))
            return ("training", "") if is_training else ("interrupted", _OLD if is_old else "")
    except (RunError, OSError) as error:
        reasons.append(_reason(error))
    return ("damaged", reasons[0]) if reasons else ("finished", "")


def _settings(content: Json) -> Json:
    settings: Json = content.get("config", {})
    return settings


def _seeds(settings: Mapping[str, Any]) -> tuple[int, ...]:
    seeds = settings.get("seeds")
    return tuple(s for s in seeds if type(s) is int) if isinstance(seeds, list) else ()


def _planned(settings: Mapping[str, Any]) -> list[str]:
    """Return what the runs of each seed are called."""
    methods = settings.get("methods")
    named = [str(name).replace(":", ".") for name in methods] if isinstance(methods, list) else []
    return [*[BASELINE][: bool(settings.get("baseline", True))], *named]


def _names(settings: Mapping[str, Any]) -> tuple[str, str]:
    """Return what the data and the model are called."""
    data, model = (str(settings.get(name) or "") for name in ("data", "model"))
    return data, model.partition("#")[0]


def _baseline_first(name: str) -> tuple[bool, str]:
    return name != BASELINE, name


def _reason(error: Exception) -> str:
    return brief(str(error).rstrip("."))
