"""Whether a method helped: what its test accuracies beside the baseline's tell, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from .result import BASELINE, RunResult
from .statistics import Paired, paired, plus_minus

EARLY = 0.1  # the share of its epochs within which a baseline's best epoch is called early


@dataclass(frozen=True)
class Verdict:
    """What the gains of a method tell.

    Args:
        word: ``"helped"`` or ``"hurt"`` only where that is beyond chance; else ``"unclear"``,
            ``"one seed"`` or ``"two seeds"``.
        sentence: Says the same with the figures, and what speaks against it.
        gain: Over the baseline of the same seed.
    """

    word: str
    sentence: str
    gain: Paired

    @property
    def direction(self) -> int:
        """1 where it helped, -1 where it hurt, 0 where that cannot be told."""
        return {"helped": 1, "hurt": -1}.get(self.word, 0)

    def __str__(self) -> str:
        return self.sentence


def judge(label: str, pairs: Sequence[tuple[RunResult, RunResult]]) -> Verdict:
    """Return what test accuracies tell about a method.

    Args:
        label: What the method is called.
        pairs: The baseline and the run of each seed that has both, at least one.
    """
    before = 100 * np.array([plain.accuracy for plain, _ in pairs])
    after = 100 * np.array([run.accuracy for _, run in pairs])
    gain = paired((after - before).tolist())
    change = " → ".join(plus_minus((float(each.mean()), None)) for each in (before, after)) + " %"
    than = f"{_amount(gain.mean)} the baseline ({change})"
    early = early_baseline(plain for plain, _ in pairs)
    return Verdict(_word(gain, early), _sentence(label, gain, than, early), gain)


def verdicts(runs: Sequence[RunResult]) -> dict[str, Verdict]:
    """Return what the runs of a comparison tell about each method that has a baseline.

    Args:
        runs: Of one or more methods and seeds.
    """
    plain = {run.seed: run for run in runs if run.method == BASELINE}
    found: dict[str, list[tuple[RunResult, RunResult]]] = {}
    for run in runs:
        if run.method != BASELINE and run.seed in plain:
            found.setdefault(run.method, []).append((plain[run.seed], run))
    return {method: judge(method, pairs) for method, pairs in found.items()}


def early_baseline(baselines: Iterable[RunResult]) -> str:
    """Return a sentence on a baseline that was best at its start, or ``""``.

    Such a baseline has hardly been trained, so that little is told by being better or worse.

    Args:
        baselines: Of one or more seeds.
    """
    for run in baselines:
        if run.epochs > 1 and run.best_epoch <= max(1, EARLY * run.epochs):
            return (
                f"The baseline of seed {run.seed} was best at epoch {run.best_epoch} of "
                f"{run.epochs}, so it overfits early; a smaller learning rate may change the "
                f"outcome."
            )
    return ""


def _word(gain: Paired, early: str) -> str:
    if gain.runs <= 2:
        return "one seed" if gain.runs == 1 else "two seeds"
    if not gain.is_clear or early:
        return "unclear"
    return "helped" if gain.mean > 0 else "hurt"


def _sentence(label: str, gain: Paired, than: str, early: str) -> str:
    over, interval = f"Over {gain.runs} seeds {label} is", gain.interval
    if gain.runs == 1:
        told = f"there it is {than}; train more seeds to be sure."
        return f"Whether {label} helped cannot be told from one seed: {told}"
    if gain.runs == 2:
        told = f"there it is on average {than}; train three or more to be sure."
        return f"Whether {label} helped cannot be told from two seeds: {told}"
    if not gain.has_width:
        return f"{over} {than}, the same in each, so no interval tells how sure that is."
    if not gain.is_clear:
        told = f"the {interval} includes 0, and more seeds would narrow it."
        return f"{over} on average {than}. Whether it helps is unclear: {told}"
    if early:
        told = f"{early[0].lower()}{early[1:]}"
        return f"{over} on average {than}, {interval}. Whether it helps is unclear: {told}"
    word = _word(gain, early)
    return f"{label} {word}: over {gain.runs} seeds it is on average {than}, {interval}."


def _amount(points: float) -> str:
    if not round(points, 2):
        return "as accurate as"
    amount = plus_minus((abs(points), None))
    return f"{amount} points {'more' if points > 0 else 'less'} accurate than"
