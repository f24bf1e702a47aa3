"""Did it help, by how much, how sure, and at what cost in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..methods import METHODS, find_method
from ..runs.config import settings_affecting
from ..runs.result import BASELINE, counts_of_labels
from ..runs.verdict import Verdict, judge
from .runs import Entry, FinishedRun

ALIKE = 1.5  # times as long as another epoch may take before the machine is to be doubted
# What may differ between two runs that are compared: it is what is compared, or has no say.
FREE = settings_affecting("curriculum", "comparison", "randomness", "machine", "log")


def pairs(entry: Entry) -> list[tuple[FinishedRun, FinishedRun]]:
    """Return the baseline and the run of every seed that has both."""
    return [(run.baseline, run) for run in entry.runs if run.baseline is not None]


def verdict_of(entry: Entry) -> Verdict | None:
    """Return whether a method helped; None without a baseline to compare it with."""
    both = [(plain.result, run.result) for plain, run in pairs(entry)]
    return judge(entry.label, both) if both else None


def time_ratio(entry: Entry) -> float | None:
    """Return how many times as long as its baselines a method trained; None if unknown.

    With what was trained only for its hierarchy.
    """
    plain = sum(plain.result.seconds for plain, _ in pairs(entry))
    return sum(run.result.all_seconds for _, run in pairs(entry)) / plain if plain else None


# ------------------------------------------------------------------------------- sentence


def sentence_of(entry: Entry) -> str:
    """Return in plain words whether a method helped, how sure that is, and what it costs."""
    verdict = verdict_of(entry)
    if verdict is None:
        return _without_baseline(entry)
    return f"{verdict} {_cost(entry, verdict)}"


def _without_baseline(entry: Entry) -> str:
    seeds = f" over {len(entry.runs)} seeds" if len(entry.runs) > 1 else " with one seed"
    reached = f"reached {np.mean([run.accuracy for run in entry.runs]):.2f} %{seeds}"
    if entry.method == BASELINE:
        return f"The baseline {reached}; there is nothing that it is compared with."
    return f"{entry.label} {reached}; there is no baseline to compare it with."


def _cost(entry: Entry, verdict: Verdict) -> str:
    """Return the sentence about time and deployment."""
    ratio = time_ratio(entry)
    time = "an unknown share of" if ratio is None else f"{ratio:.2f} times"
    epochs = f"{_epoch_ratio(entry):.2f} times its epochs"
    first = _trained_first(entry.runs[0])
    sentence = f"It took {time} the baseline's training time ({epochs})" + first
    is_told = _is_deployed_alike(entry) and verdict.gain.mean >= 0  # else why use it
    return f"{sentence}; {_DEPLOYED}." if is_told else f"{sentence}."


def _epoch_ratio(entry: Entry) -> float:
    both = pairs(entry)
    return sum(run.result.all_epochs for _, run in both) / sum(p.result.epochs for p, _ in both)


_DEPLOYED = "once trained, its model costs nothing more to use"


def _trained_first(run: FinishedRun) -> str:
    """Return what has to be trained before, and whether the time of it comes on top."""
    config, smaller = run.config.settings, _trained_for_hierarchy(run)
    rule = config.get("curriculum_epochs")
    needs = find_method(run.config.method).needs if _is_ours(run) else ()
    reasons = []
    if run.result.num_clusters and not smaller and not config.get("hierarchy"):
        reasons.append("the hierarchy")
    if "class_vectors" in needs:
        reasons.append("its final layer")
    if not reasons and run.result.curriculum_epochs and rule in ("reach-90", "best-epoch"):
        reasons.append("the length of the curriculum")
    both = f", and the baseline is trained first for {' and '.join(reasons)}" if reasons else ""
    return smaller + both


def _trained_for_hierarchy(run: FinishedRun) -> str:
    """Return what was trained only for the hierarchy, if anything was."""
    model, epochs = run.config.settings.get("hierarchy_model"), run.result.hierarchy_epochs
    if epochs is not None:
        of_model = f" of a model {model}" if model else ""
        return f", with {epochs} epochs{of_model} that were only for the hierarchy"
    if run.result.num_clusters and model:
        return f", and a model {model} is trained first for the hierarchy"
    return ""


def _is_ours(run: FinishedRun) -> bool:
    return run.config.method in METHODS


def _is_deployed_alike(entry: Entry) -> bool:
    """Whether the model is used as the baseline is: known of our methods without other rules."""
    return all(_is_ours(run) and not run.result.by_rule for run in entry.runs)


# -------------------------------------------------------------------------------- remarks


def remarks_of(entries: Sequence[Entry]) -> list[str]:
    """Return what to bear in mind about the runs."""
    return [
        *_labels(entries),
        *_unpaired(entries),
        *_ties(entries),
        *_not_levelled_off(entries),
        *(remark for remark in map(_settings, entries) if remark),
        *_times(entries),
        *_searches(entries),
    ]


def _labels(entries: Sequence[Entry]) -> list[str]:
    """Return how many samples have a class, where not all do; once for each seed."""
    runs = [run for entry in entries for run in entry.runs if run.result.with_class]
    said = (f"Seed {run.seed}: {counts_of_labels(run.result.with_class)}" for run in runs)
    return list(dict.fromkeys(said))


def _unpaired(entries: Sequence[Entry]) -> list[str]:
    """Return a remark where there are baselines, but not one for every run."""
    found = [
        f"{entry.label}, seed {run.seed}"
        for entry in entries
        for run in entry.runs
        if entry.method != BASELINE and run.baseline is None
    ]
    if not found or all(entry.method != BASELINE for entry in entries):
        return []
    listed = "; ".join(found)
    return [f"Without a baseline of the same seed to compare with, and so without gain: {listed}."]


def _ties(entries: Sequence[Entry]) -> list[str]:
    is_equal = any(
        plain.accuracy == run.accuracy for entry in entries for plain, run in pairs(entry)
    )
    return ["A seed that is as accurate as its baseline counts as half gained."] if is_equal else []


def _not_levelled_off(entries: Sequence[Entry]) -> list[str]:
    found = [
        f"{entry.label}, seed {run.seed} (best at epoch {run.result.best_epoch} of "
        f"{run.config.settings.get('epochs')})"
        for entry in entries
        for run in entry.runs
        if not run.result.levelled_off
    ]
    if not found:
        return []
    listed = "; ".join(found)
    return [f"Not levelled off, so the outcome may change, and longer training may tell: {listed}."]


def _settings(entry: Entry) -> str:
    """Return a remark where a method and its baseline were trained by different settings."""
    names = {
        name
        for plain, run in pairs(entry)
        for name in plain.config.settings.keys() | run.config.settings.keys()
        if plain.config.settings.get(name) != run.config.settings.get(name)
    }
    differing = ", ".join(sorted(names - set(FREE)))
    if not differing:
        return ""
    return (
        f"{entry.label} and its baseline differ in other settings too, so the gain is not the "
        f"method's alone: {differing}."
    )


def _times(entries: Sequence[Entry]) -> list[str]:
    """Return a remark where epochs took so differently long that the machine may be why."""
    known = [(entry, time_ratio(entry)) for entry in entries]
    ratios = {entry.label: ratio / _epoch_ratio(entry) for entry, ratio in known if ratio}
    found = {label: each for label, each in ratios.items() if not 1 / ALIKE <= each <= ALIKE}
    if not found:
        return []
    listed = ", ".join(f"{each:.2f} times for {label}" for label, each in found.items())
    return [f"An epoch took longer or shorter than one of the baseline: {listed}. {_COMPARE}"]


_COMPARE = "Where the machine had other work or was another one, compare epochs, not seconds."


def _searches(entries: Sequence[Entry]) -> list[str]:
    searched = any(
        run.result.curriculum_epochs and run.config.settings.get("curriculum_epochs") == "search"
        for entry in entries
        for run in entry.runs
    )
    text = "The times are without the trainings that searched for the length of the curriculum."
    return [text] if searched else []
