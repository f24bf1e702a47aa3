"""An experiment's table: accuracies, gains, how sure they are, and the paper's figures."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from .._util.columns import Rows, aligned, as_text, marked
from ..runs.best import choose
from ..runs.result import BASELINE, mean_epochs
from ..runs.statistics import Paired, errors_below, paired, plus_minus
from .declaration import CHOSEN, FULL
from .figures import table_cells, table_headings
from .looks import looks
from .results import Results, Row

HEADINGS = (
    "setting",
    "method",
    "runs",
    "epochs",
    "accuracy",
    "gain",
    "95% interval",
    "wins",
    "paper",
)
COSTS = ("in all", "minutes")
Format = Callable[[Rows], str]


def told(results: Results) -> list[str | Rows]:
    """Return a table of all settings and methods, and below it what to bear in mind."""
    return [_table_rows(results), *(f"note: {note}" for note in notes(results))]


def table(results: Results, write: Format = aligned) -> str:
    """Return what `told` tells as text.

    Args:
        results: What came out.
        write: Turns rows of cells into text. Defaults to columns in plain text; `markdown` is
            the other.
    """
    return as_text(told(results), write)


def _table_rows(results: Results) -> list[list[str]]:
    rows = [list(HEADINGS)]
    for row in results.rows:
        rows += _rows(row)
    if any(row.chosen_among for row in results.rows):
        rows = _beside(rows, [COSTS, *_of_lines(results, _cost)])
    if headings := table_headings(results.figure):
        measures = partial(_measured, results.figure)
        rows = _beside(rows, [headings, *_of_lines(results, measures)])
    return rows


def markdown(rows: Rows) -> str:
    """Return rows of cells as a Markdown table.

    Examples:
        >>> print(markdown([["a", "b"], ["1", "2"]]))
        | a | b |
        |---|---|
        | 1 | 2 |
    """
    first, *others = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([first, "|" + "---|" * len(rows[0]), *others])


def notes(results: Results) -> list[str]:
    """Return what to bear in mind about the figures."""
    found = []
    for row in results.rows:
        found += _missing(row)
        short = [run for run in row.runs if not run.levelled_off]
        if short:
            found.append(
                f"{row.label}: {len(short)} of {len(row.runs)} runs have not levelled off, "
                f"so that differences may be noise."
            )
        found += _cut(row)
        found += _chosen_by_mean(row)
        found += _unlike_paper(row, results.scale)
        found += looks(row)
    return found


def _chosen_by_mean(row: Row) -> list[str]:
    """Return what all seeds together would have chosen, as ``c2f train`` does with several."""
    names = (BASELINE, *row.chosen_among)
    runs = [run for name in names for run in row.of(name)]
    if not row.chosen_among or len({run.seed for run in runs}) < 2:
        return []
    method = choose(runs).run.method
    if method == BASELINE:
        return [f"{row.label}: by the mean of all seeds the baseline is chosen."]
    label = next(variant.shown for variant in row.variants if variant.name == method)
    gain = paired(row.gains(method))
    shown = plus_minus((gain.mean, gain.error), "+")
    return [f"{row.label}: by the mean of all seeds {label} is chosen, with a gain of {shown}."]


def _cut(row: Row) -> list[str]:
    """Return where the rule for T would have taken more than a third of the epochs."""
    cap = max(1, row.config["epochs"] // 3)
    note = f"{row.label}: T is cut to {cap}, a third of the epochs, in {row.cut} runs."
    return [note] if row.cut else []


def _missing(row: Row) -> list[str]:
    wanted = len(row.seeds) * (1 + len(row.variants))
    missing = wanted - len(row.runs)
    return [f"{row.label}: {missing} of {wanted} runs are missing."] if missing else []


def _unlike_paper(row: Row, scale: str) -> list[str]:
    """Return where a gain differs from the paper's by more than chance would have it."""
    found = []
    where = "" if scale == FULL else f", whose scale is another than {scale}"
    for variant in row.variants:
        distance = unlike(row.gains(variant.name), row.paper.get(variant.name))
        if distance:
            found.append(f"{row.label}: the gain of {variant.shown} is {distance}{where}.")
    return found


def unlike(values: Sequence[float], paper: tuple[float, float | None] | None) -> str:
    """Return how far a mean is from the paper's; nothing if chance may have it so.

    That is by more than two standard errors, both means' errors taken together.

    Args:
        values: Of the runs, in percent; at least two, to be held against the paper.
        paper: The paper's mean and its standard error, where it has them.

    Examples:
        >>> unlike([1.0, 2.0, 3.0], (4.0, 0.5)), unlike([1.0, 2.0, 3.0], (4.0, 1.0))
        ("2.6 standard errors below the paper's", '')
    """
    mean, error = paper or (0.0, None)
    if error is None or len(values) < 2:
        return ""
    distance = errors_below(paired(values), (mean, error))
    side = "below" if distance > 0 else "above"
    return f"{abs(distance):.1f} standard errors {side} the paper's" if abs(distance) > 2 else ""


def _rows(row: Row) -> list[list[str]]:
    plain = list(row.accuracies(BASELINE).values())
    cells = _accuracy(plain, mean_epochs(row.of(BASELINE)))
    rows = [[row.label, BASELINE, *cells, "", "", "", _published(row, BASELINE)]]
    for variant in row.variants:
        name, label = variant.name, variant.shown
        rows.append(["", label, *_compared(row, name), _published(row, name)])
        rows += [
            ["", f"{label}, {rule}", *_compared(row, name, rule), ""]
            for rule in row.further_rules(name)
        ]
    if row.chosen_among:
        rows.append(["", CHOSEN, *_compared(row, CHOSEN), ""])
    return rows


def _beside(rows: list[list[str]], more: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[*cells, *others] for cells, others in zip(rows, more, strict=True)]


def _of_lines(
    results: Results, cells: Callable[[Row, str, bool], Sequence[str]]
) -> list[Sequence[str]]:
    """Return further cells of each line below the headings.

    Args:
        results: What came out.
        cells: Returns those of a row, of the name of a method, by a further rule or not.
    """
    lines: list[Sequence[str]] = []
    for row in results.rows:
        names = [BASELINE, *(variant.name for variant in row.variants)]
        for name in [*names, *([CHOSEN] if row.chosen_among else [])]:
            further = row.further_rules(name) if name in names[1:] else []
            lines += [cells(row, name, False), *(cells(row, name, True) for _ in further)]
    return lines


def _measured(figure: str | None, row: Row, name: str, by_further_rule: bool) -> Sequence[str]:
    """Return what a figure adds to a line; it looks at the first rule of inference alone."""
    return table_cells(figure, row.values, "" if by_further_rule else name)


def _cost(row: Row, name: str, _: bool) -> tuple[str, ...]:
    """Return what a line of the table took, all that it needs included."""
    if not row.of(name):
        return "", ""
    epochs, seconds = row.cost(name)
    return f"{epochs:.0f}", f"{seconds / 60:.1f}"


def _compared(row: Row, name: str, rule: str | None = None) -> list[str]:
    cells = _accuracy(list(row.accuracies(name, rule).values()), mean_epochs(row.of(name)))
    differences = row.gains(name, rule)
    if not differences:
        return [*cells, "", "", ""]
    found = paired(differences)
    return [*cells, shown_gain(found), interval(found), _wins(found)]


def _accuracy(values: list[float], epochs: str) -> list[str]:
    if not values:
        return ["0", "", ""]
    found = paired(values)
    return [str(found.runs), epochs, plus_minus((found.mean, found.error))]


def shown_gain(found: Paired) -> str:
    """Return a gain with its standard error, marked as better or worse where that is clear."""
    return marked(plus_minus((found.mean, found.error), "+"), found.direction)


def interval(found: Paired) -> str:
    """Return the 95% interval of a gain; nothing for a single run."""
    return "" if math.isnan(found.low) else f"{found.low:+.2f} to {found.high:+.2f}"


def _wins(found: Paired) -> str:
    return f"{found.wins:g} of {found.runs}"


def _published(row: Row, name: str) -> str:
    if name not in row.paper:
        return ""
    return plus_minus(row.paper[name], "" if name == BASELINE else "+")
