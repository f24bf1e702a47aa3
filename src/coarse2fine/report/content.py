"""Everything that a report shows, as plain values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import MissingExtraError, RunError
from ..training.config import GIVEN
from ..training.result import BASELINE
from .clusters import (
    Layout,
    changed_mistakes,
    cluster_values,
    confusion_values,
    plain_values,
)
from .examples import example_sheet
from .levels import Yardstick, level_values, severity_values
from .runs import Entry, FinishedRun, gather
from .sources import Source
from .summary import gain_of, pairs, remarks_of, sentence_of, table_row, verdict_of

PREFERRED = "continuous"
Content = dict[str, Any]


def report_content(
    sources: Iterable[Source],
    *,
    method: str | None = None,
    seed: int | None = None,
    examples: int = 4,
    folder: str | os.PathLike[str] | None = None,
) -> Content:
    """Return what a report shows: only text, numbers, lists, dicts and None.

    Classes are in the order of the shown hierarchy, and counted by their position in it; rates
    are in percent.

    Args:
        sources: See `gather`.
        method: Whose details are shown: the label or the name of a method. Defaults to None:
            the first with a hierarchy, ``"continuous"`` preferred.
        seed: Whose hierarchy orders the classes. Defaults to None: the first.
        examples: How many images of each class, where the data have images. Defaults to 4.
        folder: Where a named data set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.

    Raises:
        RunError: As `gather`; and where there is no such method or seed.
    """
    if isinstance(examples, bool) or not isinstance(examples, int) or examples < 0:
        raise ValueError(f"examples must be a whole number from 0 on. Got {examples!r}.")
    entries, left_out = gather(sources)
    shown = _shown(entries, method)
    shared = [run for _, run in pairs(shown)] or list(shown.runs)
    before = [plain for plain, _ in pairs(shown)]
    owner = shown if _has_hierarchy(shown) else _default(entries)
    chosen = _chosen(shown, shared, seed)
    yardstick = Yardstick(owner, chosen.seed)
    layout = Layout(yardstick.shown)
    sheet, reasons = _examples(chosen, layout, examples, folder)
    remarks = [*left_out, *remarks_of(entries), *_borrowed(shown, owner, yardstick.seed)]
    return {
        "title": _title(entries),
        "verdict": verdict_of(gain_of(shown)),
        "sentence": sentence_of(shown),
        "table": [table_row(entry, yardstick, is_shown=entry is shown) for entry in entries],
        "remarks": [*remarks, *yardstick.remarks(), *reasons],
        "shown": {
            "label": shown.label,
            "baseline": _label_of(entries, before[0]) if before else None,
            "seed": chosen.seed,
            "seeds": [run.seed for run in shared],
        },
        **_details(layout, before, shared),
        "level_accuracy": level_values(yardstick, entries),
        "severity": severity_values(yardstick, before, shared),
        "curves": [_curve(entry, run) for entry in entries for run in entry.runs],
        "examples": sheet,
        "repeat": _repeat(entries),
    }


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


def _label_of(entries: Sequence[Entry], run: FinishedRun) -> str:
    return next(entry.label for entry in entries if run in entry.runs)


def _details(
    layout: Layout, before: Sequence[FinishedRun], after: Sequence[FinishedRun]
) -> Content:
    """Return classes, clusters, mistakes and confusions, over the seeds that both have."""
    first, last = layout.counted(before) if before else None, layout.counted(after)
    names = layout.hierarchy.class_names or ()
    return {
        "classes": {
            "names": [names[index] for index in layout.order.tolist()],
            "index": layout.order.tolist(),
            "samples": last.samples.tolist(),
            "before": None if first is None else plain_values(first.accuracies),
            "after": plain_values(last.accuracies),
        },
        "levels": layout.levels(),
        "clusters": cluster_values(layout, first, last),
        "mistakes": changed_mistakes(first, last),
        "confusion": confusion_values(layout, first, last),
    }


def _curve(entry: Entry, run: FinishedRun) -> Content:
    curve = run.curve()
    return {
        "label": entry.label,
        "seed": run.seed,
        "accuracy": plain_values(curve.accuracy),
        "level": curve.level,
        "is_test": curve.is_test,
    }


def _examples(
    run: FinishedRun, layout: Layout, count: int, folder: str | os.PathLike[str] | None
) -> tuple[Content | None, list[str]]:
    """Return the sheet of images, or a remark why there is none."""
    try:
        return example_sheet(run, layout, count, folder), []
    except (OSError, ValueError, TypeError, MissingExtraError, RunError) as error:
        return None, [f"There are no example images: {str(error).rstrip('.')}."]


# ------------------------------------------------------------------------- how to repeat it


def _title(entries: Sequence[Entry]) -> str:
    configs = [run.content["config"] for entry in entries for run in entry.runs]
    data = dict.fromkeys(_data_name(str(config.get("data", GIVEN))) for config in configs)
    models = dict.fromkeys(_model_name(str(config.get("model"))) for config in configs)
    return f"{', '.join(data)} · {', '.join(models)}"


def _data_name(data: str) -> str:
    """Return what data are called: not the whole path, nor ``train`` for a file of that name.

    Examples:
        >>> _data_name("sets/flowers/train.csv"), _data_name("cifar100"), _data_name("given")
        ('flowers', 'cifar100', 'own data')
    """
    if data == GIVEN:
        return "own data"
    path = Path(data)
    return path.parent.name or data if path.stem == "train" else path.name or data


def _model_name(model: str) -> str:
    return model.partition("#")[0].rpartition(":")[2]


def _repeat(entries: Sequence[Entry]) -> Content:
    """Return all that is needed to train the same again."""
    runs = [run for entry in entries for run in entry.runs]
    names = dict.fromkeys(name for run in runs for name in run.content["config"])
    differing = [n for n in names if n != "seeds" and len(_values(runs, _setting(n))) > 1]
    shared = {n: _setting(n)(runs[0]) for n in names if n != "seeds" and n not in differing}
    return {
        "commands": [command for command in _values(runs, _command) if command],
        "config": {name: value for name, value in shared.items() if value is not None},
        "differences": [
            {"label": entry.label, "settings": _own_settings(entry, differing)}
            for entry in entries
            if differing
        ],
        "seeds": sorted({run.seed for run in runs}),
        "versions": [found for found in _values(runs, _versions) if found],
        "runs": [_run_row(entry, run) for entry in entries for run in entry.runs],
    }


def _command(run: FinishedRun) -> str:
    """Return what began a run, ``c2f`` without the folder it was installed in."""
    return re.sub(r"^('[^']*/c2f'|\S*/c2f)(?=\s|$)", "c2f", str(run.content.get("command", "")))


def _versions(run: FinishedRun) -> Any:
    return run.content.get("versions")


def _setting(name: str) -> Callable[[FinishedRun], Any]:
    return lambda run: run.content["config"].get(name)


def _values(runs: Iterable[FinishedRun], get: Callable[[FinishedRun], Any]) -> list[Any]:
    """Return the different values that runs have of something, in the order of the runs."""
    found: list[Any] = []
    for value in map(get, runs):
        if value not in found:
            found.append(value)
    return found


def _own_settings(entry: Entry, names: Iterable[str]) -> Content:
    """Return a method's settings; where its seeds differ, all of their values."""
    values = {name: _values(entry.runs, _setting(name)) for name in names}
    return {name: own[0] if len(own) == 1 else own for name, own in values.items()}


def _run_row(entry: Entry, run: FinishedRun) -> Content:
    result = run.result
    return {
        "label": entry.label,
        "seed": run.seed,
        "folder": run.folder,
        "accuracy": run.accuracy,
        "epochs": result.epochs,
        "best_epoch": result.best_epoch,
        "curriculum_epochs": result.curriculum_epochs,
        "num_clusters": list(result.num_clusters),
        "seconds": result.seconds,
    }
