"""All rows of the paper's tables in one: what came out of each so far, beside the paper's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .._util.columns import Rows, aligned, as_text
from .._util.files import write_atomically
from ..data.load import SETS
from ..figures import against
from ..figures.style import Panel, save
from ..runs.result import BASELINE, mean_epochs
from ..runs.statistics import paired, plus_minus
from . import SUMMARY
from .content import read_all
from .declaration import Published, Setting
from .lines import NOT_RUN, Line, lines_of
from .paper.real import LABELS, WHOLE
from .reproduce import FIGURE_FORMATS
from .tables import Format, interval, markdown, shown_gain

HEADINGS = (
    "setting",
    "method",
    "seeds",
    "T",
    "baseline",
    "paper's baseline",
    "gain",
    "95% interval",
    "paper's gain",
    "remark",
)
TO_RUN = (NOT_RUN, "paper's gains", "hours", "command")
# Of two cores, for five seeds of 1,000 images of 32×32 pixels, as measured; others are as long as
# the baseline.
HOURS = {BASELINE: 0.025, "staged": 0.07}
SIDES = {"shapes": 64, "tiny-imagenet": 64}  # of images that are not 32 pixels wide


def told(lines: Sequence[Line], quote: str = "") -> list[str | Rows]:
    """Return a table of what has been run, how reduced settings differ, and one of the rest.

    Args:
        lines: See `lines_of`.
        quote: What commands are put between. Defaults to nothing.
    """
    rows = [list(HEADINGS), *_cells([line for line in lines if line.row])]
    rest = [[*cells, f"{quote}{command}{quote}"] for *cells, command in _missing(lines)]
    blocks: list[list[Any]] = [[rows], notes(lines), [[list(TO_RUN), *rest]] if rest else []]
    return [part for block in blocks if block for part in ("", *block)][1:]


def table(lines: Sequence[Line], write: Format = aligned) -> str:
    """Return what `told` tells as text.

    Args:
        lines: See `lines_of`.
        write: Turns rows of cells into text, see `tables.table`. Defaults to plain text.
    """
    return as_text(told(lines, "" if write is aligned else "`"), write)


def notes(lines: Sequence[Line]) -> list[str]:
    """Return how reduced settings differ."""
    reduced = (line for line in lines if line.row and line.is_reduced)
    return sorted(
        {
            f"note: {line.setting.label}: measured on {line.row.label}, {line.about}."
            for line in reduced
            if line.row
        }
    )


def _missing(lines: Sequence[Line]) -> Iterator[list[str]]:
    """Yield a row for each setting that is not whole: what trains it, and for how long."""
    settings = {line.setting.label: line.setting for line in lines if line.is_missing}
    for label, setting in settings.items():
        whole = [line for line in lines if line.setting is setting]
        own = [line for line in whole if line.is_missing]
        name = setting.settings["data"]
        parts = [f" --only {line.variant.name}" for line in own if len(own) < len(whole)]
        folder = " --data DIR" if SETS[str(name)].has_folder else ""
        command = f"c2f paper {own[0].experiment} --only {setting.key}{''.join(parts)}{folder}"
        gains = (f"{it.variant.shown} {_published(it.paper, it.variant.name, '+')}" for it in own)
        yield [label, ", ".join(gains), f"{_hours(setting, own):.1f}", command]


def _hours(setting: Setting, lines: Sequence[Line]) -> float:
    """Return about how many hours two cores take for what is missing, and for its baseline."""
    data, size = str(setting.settings["data"]), setting.settings.get("train_size")
    images = (WHOLE[data] if size is None else int(size)) * (SIDES.get(data, 32) / 32) ** 2
    names = [BASELINE, *(line.variant.name for line in lines)]
    return images / 1000 * sum(HOURS.get(name, HOURS[BASELINE]) for name in names)


def _cells(lines: Sequence[Line]) -> Iterator[list[str]]:
    before = ""
    for line in lines:
        label = line.setting.label
        yield ["" if label == before else label, line.variant.shown, *_measured(line)]
        before = label


def _measured(line: Line) -> list[str]:
    plain = [_shown(line.baseline), _published(line.paper, BASELINE)]
    gain = line.gain
    both = ["", ""] if gain is None else [shown_gain(gain), interval(gain)]
    paper = _published(line.paper, line.variant.name, "+")
    return [str(len(line.runs)), _length(line), *plain, *both, paper, line.remark]


def _length(line: Line) -> str:
    """Return T and the epochs of the training, on average, where the method has a T."""
    found = [run.curriculum_epochs for run in line.runs if run.curriculum_epochs is not None]
    return f"{sum(found) / len(found):.0f} of {mean_epochs(line.runs)}" if found else ""


def _shown(values: Sequence[float]) -> str:
    found = paired(values) if values else None
    return plus_minus((found.mean, found.error)) if found else ""


def _published(paper: Published, name: str, sign: str = "") -> str:
    return plus_minus(paper[name], sign) if name in paper else ""


# -------------------------------------------------------------------------------- figure


def draw(lines: Sequence[Line], width: float | None = None) -> Any:
    """Return a matplotlib figure of our gains against the paper's, reduced rows left out.

    Args:
        lines: See `lines_of`.
        width: In inches. Defaults to None: as wide as it likes.
    """
    pairs = [pair for line in lines for pair in _pairs(line)]
    return against.draw([Panel("", {}, pairs)], width)


def _pairs(line: Line) -> Iterator[against.Pair]:
    mean, error = line.paper.get(line.variant.name, (0.0, None))
    if line.gain and line.gain.runs > 1 and error is not None and not line.is_reduced:
        data = str(line.setting.settings["data"])
        name = LABELS.get(data, data.capitalize())
        yield against.Pair(name, line.variant.shown, line.gain, (mean, error))


def summarise(folder: Path, out: Path | None = None) -> list[Line]:
    """Write the table and the figure of all rows, and return the lines.

    Args:
        folder: That holds the results of experiments.
        out: Where to write to. Defaults to None: the same folder.
    """
    lines = lines_of(read_all(folder))
    path = (out or folder) / f"{SUMMARY}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, f"{table(lines, markdown)}\n")
    for kind in FIGURE_FORMATS:
        save(draw(lines), path.with_suffix(f".{kind}"))
    return lines
