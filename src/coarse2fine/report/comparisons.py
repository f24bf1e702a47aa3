"""The comparisons of a report, one by one: which run to use of each, and whether it helped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..runs.best import choose
from ..runs.config import GIVEN
from ..runs.result import RunResult
from ..runs.verdict import Verdict
from .runs import Entry, tails
from .summary import verdict_of


@dataclass(frozen=True)
class Comparison:
    """What came out of a comparison; accuracies are in percent.

    Args:
        name: The end of its path that tells it from the others.
        data: That it was trained on.
        best: The method that validates best.
        seed: Of its run that validates best.
        val_accuracy: Of that run; None without validation samples.
        accuracy: Of that run, on the test samples.
        choice: In words, which run to use and why.
        method: Whose gain follows: the best one, or the first where that is the baseline;
            None where there is nothing to compare.
        gain: Over the baseline of the same seed, and its standard error, in percentage points.
        interval: The 95% interval of the gain; None for a single seed, too.
        verdict: Whether that method helped, in a word.
        sentences: The same of every method.
    """

    name: str
    data: str
    best: str
    seed: int
    val_accuracy: float | None
    accuracy: float
    choice: str
    method: str | None
    gain: tuple[float, float] | None
    interval: tuple[float, float] | None
    verdict: str
    sentences: list[str]


def comparisons_of(entries: Sequence[Entry]) -> dict[Path, Comparison]:
    """Return what came out of each comparison, by its path, in the order of the entries."""
    groups: dict[Path, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(entry.runs[0].comparison, []).append(entry)
    names = tails(groups)
    return {path: _comparison(names[path], own) for path, own in groups.items()}


def _comparison(name: str, entries: Sequence[Entry]) -> Comparison:
    choice = choose([run.result for entry in entries for run in entry.runs])
    judged = {entry.label: (entry, found) for entry in entries if (found := verdict_of(entry))}
    compared = _compared(choice.run, judged)
    verdict = compared[1] if compared else None
    gain = verdict.gain if verdict else None
    settings = entries[0].runs[0].config.settings
    return Comparison(
        name=name,
        data=data_name(str(settings.get("data", GIVEN))),
        best=choice.run.method,
        seed=choice.run.seed,
        val_accuracy=None if choice.run.val_accuracy is None else 100 * choice.run.val_accuracy,
        accuracy=100 * choice.run.accuracy,
        choice=str(choice),
        method=compared[0].method if compared else None,
        gain=(gain.mean, gain.error) if gain else None,
        interval=(gain.low, gain.high) if gain and gain.runs > 1 else None,
        verdict=verdict.word if verdict else NO_BASELINE,
        sentences=[str(found) for _, found in judged.values()],
    )


NO_BASELINE = "no baseline"
Judged = tuple[Entry, Verdict]


def _compared(best: RunResult, judged: dict[str, Judged]) -> Judged | None:
    """Return the method whose gain stands for the comparison."""
    found = list(judged.values())
    own = [each for each in found if best in _results(each[0])]
    return next(iter(own or found), None)


def _results(entry: Entry) -> list[RunResult]:
    return [run.result for run in entry.runs]


# ----------------------------------------------------------------------------------- names


def title_of(entries: Sequence[Entry]) -> str:
    """Return the data and models of a report."""
    configs = [run.config.settings for entry in entries for run in entry.runs]
    data = dict.fromkeys(data_name(str(config.get("data", GIVEN))) for config in configs)
    models = dict.fromkeys(_model_name(str(config.get("model"))) for config in configs)
    return f"{', '.join(data)} · {', '.join(models)}"


def data_name(data: str) -> str:
    """Return what data are called: not the whole path, nor ``train`` for a file of that name.

    Args:
        data: As the settings have it.

    Examples:
        >>> data_name("sets/flowers/train.csv"), data_name("cifar100"), data_name("given")
        ('flowers', 'cifar100', 'own data')
    """
    if data == GIVEN:
        return "own data"
    path = Path(data)
    return path.parent.name or data if path.stem == "train" else path.name or data


def _model_name(model: str) -> str:
    return model.partition("#")[0].rpartition(":")[2]
