"""The tables of any_level.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from any_level_training import FINE, PSEUDO, WAYS

from coarse2fine.experiments.tables import markdown
from coarse2fine.runs.statistics import paired, plus_minus, standard_error

Record = Mapping[str, Any]
Kind = tuple[str, str, int]  # set, model and percentage of fine labels

HEADINGS = ("samples", "way", "runs", "steps", "validation")
MEASURES = ("accuracy", "gain", "95% interval", "at the groups", "gain there")


def report(content: Record) -> str:
    """Return the table of a file of results, and what its rows were made of.

    Args:
        content: As any_level.py writes it.
    """
    runs = content["runs"]
    rows = [[*HEADINGS, *MEASURES]]
    for kind in kinds(runs):
        rows += cells_of(kind, of_kind(runs, kind))
    return "\n".join([markdown(rows), "", *notes(runs, content["settings"]["sets"])])


def cells_of(kind: Kind, mine: Sequence[Record]) -> list[list[str]]:
    """Return the rows of the table for one set and share of fine labels."""
    rows = []
    for way in (way for way in WAYS if any(run["way"] == way for run in mine)):
        own = [run for run in mine if run["way"] == way]
        steps = sum(run["steps_in_all"] for run in own) / len(own)
        cells = [shown(kind) if not rows else "", way, str(len(own)), f"{steps:,.0f}"]
        means = [mean_of([100 * run["val"] for run in own])]
        for measure in ("classes", "groups"):
            means.append(mean_of(list(by_seed(mine, way, measure).values())))
            means += gained(gains_of(mine, way, measure))
        rows.append([*cells, *means[:-1]])  # without the interval at the groups
    return rows


def mean_of(values: Sequence[float]) -> str:
    """Return a mean and its standard error."""
    return plus_minus((sum(values) / len(values), standard_error(values)))


def gained(gains: Sequence[float]) -> tuple[str, str]:
    """Return a mean gain with its standard error, and its interval."""
    if not gains:
        return "", ""
    found = paired(gains)
    interval = f"{found.low:+.2f} to {found.high:+.2f}" if found.runs > 1 else ""
    return plus_minus((found.mean, found.error), "+"), interval


def gains_of(mine: Sequence[Record], way: str, measure: str) -> list[float]:
    """Return the gains over fine labels alone, of the seeds that have both."""
    plain, values = by_seed(mine, FINE, measure), by_seed(mine, way, measure)
    return [values[seed] - plain[seed] for seed in values if seed in plain and way != FINE]


def by_seed(mine: Sequence[Record], way: str, measure: str) -> dict[int, float]:
    """Return what a way reached on the test samples, in percent, by its seeds."""
    return {run["seed"]: 100 * run["test"][measure] for run in mine if run["way"] == way}


def notes(runs: Sequence[Record], sets: Mapping[str, Record]) -> list[str]:
    """Return how many samples there were of each kind, and what else to bear in mind."""
    found = []
    for kind in kinds(runs):
        mine = of_kind(runs, kind)
        counts = mine[0]["samples"]
        found.append(
            f"note: {shown(kind)}: {counts['fine']:,} samples with fine and {counts['coarse']:,} "
            f"with coarse labels to train on, {counts['val']:,} with fine labels to validate on, "
            f"{counts['test']:,} to test on."
        )
        right = [100 * run["guessed_right"] for run in mine if run["way"] == PSEUDO]
        if right:
            share = f"{sum(right) / len(right):.1f}"
            found.append(f"note: {shown(kind)}: {share}% of the pseudo-labels are right.")
        cut = sum(run["steps"] >= sets[kind[0]]["recipe"]["steps"] for run in mine)
        if cut:
            found.append(f"note: {shown(kind)}: {cut} of {len(mine)} trainings were cut short.")
    return found


def kinds(runs: Sequence[Record]) -> list[Kind]:
    """Return the sets and shares of fine labels, sorted."""
    return sorted({(run["set"], run["model"], run["percent"]) for run in runs})


def of_kind(runs: Sequence[Record], kind: Kind) -> list[Record]:
    """Return the runs of a set and share of fine labels."""
    return [run for run in runs if (run["set"], run["model"], run["percent"]) == kind]


def shown(kind: Kind) -> str:
    """Return what the table calls a set and share of fine labels."""
    return f"{kind[0]}, {kind[1]}, {kind[2]}% fine"
