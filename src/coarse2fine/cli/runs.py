"""`c2f runs`: what a folder of runs holds."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .process import say, show

if TYPE_CHECKING:
    from ..runs.listing import Listed

EXAMPLES = ("c2f runs", "c2f runs runs/paper", "c2f runs --json > runs.jsonl")
HEADINGS = (
    "run",
    "data",
    "model",
    "methods",
    "seeds",
    "best",
    "validation",
    "test",
    "gain",
    "verdict",
    "epochs",
    "time",
    "state",
)


def command(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder that the runs are in.")
    ] = Path("runs"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a line of JSON for each instead of a table.")
    ] = False,
) -> None:
    """List the comparisons and runs in a folder.

    Each has a line: what was trained, how many of its seeds are done, the method that validates
    best, its accuracies, the gain over the baseline, whether the method helped, what it took, and
    whether it is finished. Only settings and results are read, not the models.
    """
    from ..runs.listing import list_runs

    found = list_runs(folder)
    if as_json:
        for each in found:
            show(json.dumps(each.to_dict()))
        return
    shown = [each for each in found if each.state != "foreign"]
    if shown:
        show([HEADINGS, *(cells(each, folder) for each in shown)])
    else:
        say(f"{folder} holds no run")
    for each in found:
        if each.reason:
            show(f"{each.path}: {each.reason}")


def cells(listed: Listed, folder: Path) -> list[str]:
    """Return a line of the table.

    Args:
        listed: What it is of.
        folder: That was listed; names are relative to it.
    """
    from .._util.text import brief

    name = str(listed.path if listed.path == folder else listed.path.relative_to(folder))
    seeds = f"{len(listed.done)}/{len(listed.planned)}"
    trained = [*map(brief, (listed.data, listed.model, ", ".join(listed.methods))), seeds]
    return [name, *trained, *_outcome(listed), listed.state]


def _outcome(listed: Listed) -> list[str]:
    """Return what came out of a comparison, and what it took, as far as it is done."""
    from .._util.text import duration
    from ..runs.result import mean_epochs
    from ..runs.statistics import plus_minus

    if listed.result is None:
        return [""] * 7
    best = listed.result.best.method
    validation = listed.validation(best)
    test = listed.result.accuracies(best)
    return [
        best,
        "" if math.isnan(validation) else plus_minus((100 * validation, None)),
        plus_minus((100 * sum(test) / len(test), None)),
        *_gain(listed, best),
        mean_epochs(listed.result.of(best)),
        duration(min(listed.seconds, sys.float_info.max)),  # whatever a file may claim
    ]


def _gain(listed: Listed, best: str) -> list[str]:
    """Return the gain and the verdict; the method is named where it could be another."""
    from .._util.columns import marked
    from ..runs.statistics import plus_minus

    if listed.judged is None:
        return ["", ""]
    method, verdict = listed.judged
    gain = plus_minus((verdict.gain.mean, verdict.gain.error), "+")
    is_one_of_several = method != best and len(listed.methods) > 2
    named = f"{gain} ({method})" if is_one_of_several else gain
    return [marked(named, verdict.direction), marked(verdict.word, verdict.direction)]
