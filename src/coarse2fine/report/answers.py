"""How fine the model can answer: a sentence, a table, and what the figure shows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .._util.arrays import Array
from ..errors import MissingExtraError
from ..figures.answers import Answers, answers_of, names_of
from ..figures.promises import CONFIDENCE, Promise
from ..hierarchy import Hierarchy
from ..runs.restorer import Restorer
from .runs import FinishedRun

USUAL = 95  # percent; what the sentence is about where so much can be promised
SHOWN = (80, 90, USUAL, 97, 99)  # percent; in the table, beside the first and last promise
_CONFIDENCE = round(100 * CONFIDENCE)


@dataclass(frozen=True, eq=False)
class PromiseRow:
    """What answers are like when an accuracy is promised; all shares are in percent.

    Args:
        promised: The share of answers to be right.
        right: The share of answers that is right, of the test samples.
        shares: Of the answers that are as fine as each of `AnswerLevels.columns`.
        depth: How many levels below the root answers are on average.
    """

    promised: int
    right: float
    shares: Array
    depth: float


@dataclass(frozen=True, eq=False)
class AnswerLevels:
    """How fine a run can answer.

    Args:
        sentence: The same in words, or why it cannot be told.
        columns: What answers may be, the finest first.
        rows: For some promises; none where it cannot be told.
        confidence: With which promises are kept, in percent.
        lacking: Which promises need more validation samples; None if none does.
        measured: Every promise; None where it cannot be told.
    """

    sentence: str
    columns: list[str]
    rows: list[PromiseRow]
    confidence: int
    lacking: str | None
    measured: Answers | None


def answer_levels(run: FinishedRun, hierarchy: Hierarchy, restorer: Restorer) -> AnswerLevels:
    """Return how fine a run's model can answer.

    Args:
        run: Whose model is asked.
        hierarchy: Whose classes and clusters are the answers.
        restorer: Makes the model and reads the data.
    """
    try:
        values = answers_of([run.result], hierarchy, restorer)
    # A RunError is a RuntimeError, as are torch's, such as that there is too little memory.
    except (OSError, ValueError, TypeError, RuntimeError, MissingExtraError) as error:
        reason = str(error).rstrip(".")
        sentence = f"This cannot be told of {run.folder}: {reason}."
        return AnswerLevels(sentence, [], [], _CONFIDENCE, None, None)
    promises = values.means(run.result.method)
    usual = next((each for each in promises if each.promised == USUAL), promises[-1])
    wanted = {promises[0].promised, *SHOWN, promises[-1].promised}
    return AnswerLevels(
        sentence=_sentence(usual, values),
        columns=names_of(values.num_clusters)[::-1],
        rows=[_row(each) for each in promises if each.promised in wanted],
        confidence=_CONFIDENCE,
        lacking=values.lacking,
        measured=values,
    )


def _row(promise: Promise) -> PromiseRow:
    return PromiseRow(promise.promised, promise.right, promise.shares[::-1], promise.depth)


def _sentence(promise: Promise, values: Answers) -> str:
    names, shares = names_of(values.num_clusters)[::-1], promise.shares[::-1].tolist()
    first, *others = [(name, share) for name, share in zip(names, shares, strict=True) if share]
    parts = [f"{_percent(first[1])} of them are {first[0]}"]
    parts += [f"{_percent(share)} {name}" for name, share in others]
    return (
        f"So that {promise.promised} % of its answers are right, {_listed(parts)}. On the test "
        f"samples {promise.right:.1f} % of these answers were right; of the likeliest classes "
        f"{values.runs[0].accuracy:.1f} % were."
    )


def _percent(share: float) -> str:
    """Return a share as text; none that is left or missing is rounded away.

    Examples:
        >>> _percent(100.0), _percent(0.2), _percent(21.7), _percent(99.8)
        ('100 %', 'under 1 %', '22 %', 'over 99 %')
    """
    if share < 0.5:
        return "under 1 %"
    return "over 99 %" if 99.5 <= share < 100 else f"{share:.0f} %"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
