"""Which model of a comparison to use: by validation accuracy alone, and how sure that is."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._util.files import Json, writing
from .directory import BEST, CHECKPOINT, KEPT, RESULT, Run
from .find import find_run, runs_of_seed, seed_folders
from .guards import check_no_links
from .result import BASELINE, RunResult
from .statistics import Paired, paired, plus_minus
from .verdict import early_baseline

FEW_SAMPLES = 300  # a validation set below this is called small


@dataclass(frozen=True)
class Choice:
    """The run to use, and why.

    Args:
        run: It validates best.
        sentence: Says which it is and what speaks for it.
        doubts: A sentence for each reason not to be sure of it.
    """

    run: RunResult
    sentence: str
    doubts: tuple[str, ...]

    def to_dict(self) -> Json:
        """Return the choice as plain values."""
        run = self.run
        return {
            "method": run.method,
            "seed": run.seed,
            "val_accuracy": run.val_accuracy,
            "accuracy": run.accuracy,
            "why": str(self),
        }

    def __str__(self) -> str:
        return " ".join((self.sentence, *self.doubts))


def choose(runs: Sequence[RunResult]) -> Choice:
    """Return which run of a comparison to use.

    The method with the best mean validation accuracy over the seeds is chosen, and of its runs
    the one that validates best. The baseline is preferred where it validates as well. Test
    accuracies have no say.

    Args:
        runs: Of one or more methods and seeds, at least one.
    """
    by_method = _by_method(runs)
    if not by_method:
        return _unvalidated(runs)
    means = {name: _mean(found) for name, found in by_method.items()}
    method = max(means, key=lambda name: means[name])  # of equals the first, the baseline
    run = max(by_method[method].values(), key=lambda each: each.val_accuracy or 0.0)
    rival = _rival(method, means)
    if rival is None:
        text = f"use {_called(method)}, all that was trained: it validates at {means[method]:.2f} %"
        return Choice(run, f"{text}{_seed(run, by_method[method])}.", tuple(_samples(run)))
    gains = _gains(by_method[method], by_method[rival])
    sentence = f"{comparison(method, rival, means, len(gains))}{_seed(run, by_method[method])}."
    early = early_baseline(by_method.get(BASELINE, {}).values())
    doubts = [*_seeds(paired(gains)), *_samples(run), *filter(None, [early])]
    return Choice(run, sentence, tuple(doubts))


def _by_method(runs: Sequence[RunResult]) -> dict[str, dict[int, RunResult]]:
    """Return the runs with a validation accuracy by method and seed, the baseline first.

    Only of seeds that all methods have, so that means are over the same samples.
    """
    found: dict[str, dict[int, RunResult]] = {}
    for run in sorted(runs, key=lambda each: each.method != BASELINE):
        if run.val_accuracy is not None:
            found.setdefault(run.method, {})[run.seed] = run
    shared = set.intersection(*map(set, found.values())) if found else set()
    if not shared:  # such as after a kill between two seeds
        return {name: by_seed for name, by_seed in found.items() if name == next(iter(found))}
    return {name: {s: r for s, r in by.items() if s in shared} for name, by in found.items()}


def _mean(runs: Mapping[int, RunResult]) -> float:
    """Return the mean validation accuracy in percent."""
    return 100 * float(np.mean([run.val_accuracy for run in runs.values()]))


def _gains(first: Mapping[int, RunResult], second: Mapping[int, RunResult]) -> list[float]:
    pairs = [(first[seed].val_accuracy or 0.0, second[seed].val_accuracy or 0.0) for seed in first]
    return [100 * (one - other) for one, other in pairs]


def _rival(method: str, means: Mapping[str, float]) -> str | None:
    """Return what the chosen method is compared with: the baseline, or the next best."""
    others = {name: mean for name, mean in means.items() if name != method}
    if not others or BASELINE in others:
        return BASELINE if others else None
    return max(others, key=lambda name: others[name])


def _called(method: str) -> str:
    return "the baseline" if method == BASELINE else method


def comparison(method: str, rival: str, means: Mapping[str, float], seeds: int = 1) -> str:
    """Return which method to use and what speaks for it, as the start of a sentence.

    Args:
        method: The one to use.
        rival: What it is compared with.
        means: The mean validation accuracy of each, in percent.
        seeds: How many the means are over. Defaults to 1.

    Examples:
        >>> comparison("baseline", "continuous", {"baseline": 52.7, "continuous": 49.2})
        'use the baseline: it validates 3.50 points better than continuous (52.70 and 49.20 %)'
    """
    gain = means[method] - means[rival]
    over = f", mean of {seeds} seeds" if seeds > 1 else ""
    mine, theirs, more = (plus_minus((mean, None)) for mean in (means[method], means[rival], gain))
    figures = f"({mine} and {theirs} %{over})"
    if round(gain, 2) > 0:
        than = f"it validates {more} points better than {_called(rival)}"
        return f"use {_called(method)}: {than} {figures}"
    return f"use {_called(method)}: {_called(rival)} validates no better {figures}"


def _seed(run: RunResult, runs: Mapping[int, RunResult]) -> str:
    return f"; of its seeds, {run.seed} validates best" if len(runs) > 1 else ""


def _unvalidated(runs: Sequence[RunResult]) -> Choice:
    run = next((each for each in runs if each.method != BASELINE), runs[0])
    why = "there are no validation samples to choose by"
    return Choice(run, f"use {_called(run.method)}, though nothing speaks for it: {why}.", ())


# ------------------------------------------------------------------- reasons not to be sure


def _seeds(gain: Paired) -> list[str]:
    if gain.runs == 1:
        return ["With one seed this may be chance; three or more would tell."]
    if gain.runs == 2:
        return ["Two seeds are too few to rule out chance; three or more would tell."]
    if gain.is_clear:
        return []
    if not gain.has_width:
        return ["The difference is the same in each seed, so no interval tells how sure it is."]
    interval = f"{gain.low:+.2f} to {gain.high:+.2f}"
    return [f"The 95 % interval of the difference, {interval}, includes 0, so it may be chance."]


def _samples(run: RunResult) -> list[str]:
    count = run.val_samples
    if not count or count >= FEW_SAMPLES:
        return []
    what = "validation samples with a class" if run.with_class else "validation samples"
    return [f"There are only {count} {what}, each of them {100 / count:.2f} points."]


# ------------------------------------------------------------------------- run directories


def finished_runs(path: Path) -> list[RunResult]:
    """Return the results of a comparison's finished runs, by seed and method."""
    folders = seed_folders(path).values()
    runs = [run for folder in folders for run in runs_of_seed(folder).values()]
    return [RunResult.load(run) for run in runs if Run(run).is_done]


def find_best(path: Path, method: str | None = None, seed: int | None = None) -> RunResult:
    """Return the run whose model is meant by a run or by a comparison of several.

    Args:
        path: Of a run or a comparison.
        method: Of a comparison's runs. Defaults to None: the one that validates best.
        seed: Of a comparison's runs. Defaults to None: the one that validates best.
    """
    is_open = path.is_dir() and seed_folders(path) and (method is None or seed is None)
    found = [
        run
        for run in (finished_runs(path) if is_open else [])
        if method in (None, run.method) and seed in (None, run.seed)
    ]
    return choose(found).run if found else RunResult.load(find_run(path, method, seed))


def described(run: RunResult) -> str:
    """Return which run is used and how good it is, in one line.

    Args:
        run: The run.
    """
    parts = {"validation": run.val_accuracy, "test": run.accuracy}
    known = {part: share for part, share in parts.items() if share is not None}
    figures = ", ".join(f"{part} accuracy {100 * share:.2f} %" for part, share in known.items())
    return f"{_called(run.method)} of seed {run.seed}, {figures} ({run.path})"


def keep_best(path: Path, run: RunResult) -> None:
    """Leave a copy of a run as ``best`` in a comparison: a run directory that stands by itself.

    Args:
        path: The comparison.
        run: One of its runs.
    """
    best, unfinished = path / BEST, path / f".{BEST}"
    check_no_links(best, unfinished)
    if Run(best).is_done and (best / RESULT).read_bytes() == (run.path / RESULT).read_bytes():
        return
    with writing(best):
        shutil.rmtree(unfinished, ignore_errors=True)
        (unfinished / CHECKPOINT).mkdir(parents=True)
        for name in KEPT:
            if (run.path / name).is_file():
                shutil.copyfile(run.path / name, unfinished / name)
        shutil.rmtree(best, ignore_errors=True)
        unfinished.rename(best)
