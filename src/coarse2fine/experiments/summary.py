"""All rows of the paper's tables in one: what came out of each so far, beside the paper's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._util.files import Json, write_atomically
from ..data.load import SETS
from ..figures import against
from ..figures.style import Panel, save
from ..runs.config import settings_affecting
from ..runs.result import BASELINE, RunResult, aligned, mean_epochs
from ..runs.statistics import Paired, paired, plus_minus
from ..runs.writer import versions
from . import SUMMARY, find_experiment
from .content import read_all
from .declaration import FULL, Published, Setting, Variant
from .paper.real import LABELS
from .reproduce import FIGURE_FORMATS
from .results import Results, Row
from .tables import Format, interval, markdown, unlike

TABLES = ("staged", "shapes-metrics")  # between them, their settings are the rows
HEADINGS = (
    "setting",
    "method",
    "seeds",
    "T",
    "baseline",
    "the paper's",
    "gain",
    "95% interval",
    "the paper's",
    "remark",
)
REDUCED, NOT_RUN = "reduced, not comparable", "not yet run"


@dataclass(frozen=True)
class Line:
    """A method in a setting of the paper.

    Args:
        experiment: That has the setting.
        setting: As the paper has it.
        variant: The method.
        row: What came out of it so far. Defaults to None: nothing.
        is_reduced: Whether that came out of a smaller setting. Defaults to False.
        about: How the smaller setting differs. Defaults to ``""``.
    """

    experiment: str
    setting: Setting
    variant: Variant
    row: Row | None = None
    is_reduced: bool = False
    about: str = ""

    @property
    def runs(self) -> tuple[RunResult, ...]:
        """The runs of the method that have a baseline of their seed."""
        if self.row is None:
            return ()
        seeds = self.row.accuracies(BASELINE)
        return tuple(run for run in self.row.of(self.variant.name) if run.seed in seeds)

    @property
    def gain(self) -> Paired | None:
        """How much better the method is than the baseline, in percentage points."""
        return paired(self.row.gains(self.variant.name)) if self.row and self.runs else None

    @property
    def baseline(self) -> list[float]:
        """The baseline's accuracies in percent."""
        return list(self.row.accuracies(BASELINE).values()) if self.row else []

    @property
    def paper(self) -> Published:
        """The paper's figures for the setting."""
        return self.setting.paper

    @property
    def remark(self) -> str:
        """What to know about the line."""
        if self.row is None or self.is_reduced:
            return REDUCED if self.row else NOT_RUN
        gain = unlike(self.row.gains(self.variant.name), self.paper.get(self.variant.name))
        plain = unlike(self.baseline, self.paper.get(BASELINE))
        found = [("gain", gain), ("baseline", plain), ("by", ", ".join(self.older_versions))]
        return "; ".join(f"{what} {text}" for what, text in found if text)

    @property
    def older_versions(self) -> list[str]:
        """The versions of this package that made the runs, where they are not this one."""
        made = [it["coarse2fine"] for it in self.row.versions] if self.row else []
        return sorted(set(made) - {versions()["coarse2fine"]})

    @property
    def command(self) -> str:
        """What trains the setting as the paper has it."""
        data = str(self.setting.settings["data"])
        folder = " --data DIR" if SETS[data].has_folder else ""
        return f"c2f paper {self.experiment} --only {self.setting.key}{folder}"

    def to_dict(self) -> Json:
        """Return the line as plain values."""
        return {
            "setting": self.setting.label,
            "method": self.variant.name,
            "gain": self.gain.to_dict() if self.gain else None,
            "baseline": self.baseline,
            "paper": {name: self.paper.get(name) for name in (BASELINE, self.variant.name)},
            "reduced": self.is_reduced,
            "remark": self.remark,
            "command": self.command,
        }


# --------------------------------------------------------------------------------- lines


def lines_of(found: Sequence[Results]) -> list[Line]:
    """Return a line for each row of the paper's tables.

    What came out of it is taken from any experiment that trained by the same settings, of
    several from the one with the most runs; else from a smaller scale of the row's own.

    Args:
        found: All results there are.
    """
    return [
        _line(name, setting, variant, found)
        for name in TABLES
        for setting in find_experiment(name).scale(FULL).settings
        for variant in setting.variants
    ]


def _line(name: str, setting: Setting, variant: Variant, found: Sequence[Results]) -> Line:
    own_first = sorted(found, key=lambda results: results.experiment != name)
    lines = [
        Line(name, setting, variant, row, not is_same(setting, row), results.about)
        for results in own_first
        for row in results.rows
        if _has_variant(row, variant)
        and (is_same(setting, row) or (results.experiment == name and _is_smaller(setting, row)))
    ]
    return max(
        (line for line in lines if line.runs),
        key=lambda line: (not line.is_reduced, len(line.runs)),
        default=Line(name, setting, variant),
    )


def is_same(setting: Setting, row: Row) -> bool:
    """Whether a row was trained by a setting; what an older version does not say is as it was.

    Args:
        setting: As declared.
        row: As stored.
    """
    others = settings_affecting("comparison", "randomness", "machine", "log")
    declared = json.loads(json.dumps(setting.config(None, (0,)).to_dict()))
    stored = json.loads(json.dumps(dict(row.config)))
    names = (declared.keys() & stored.keys()) - set(others)
    has_size = setting.settings.get("train_size") == row.config.get("train_size")
    return has_size and all(declared[name] == stored[name] for name in names)


def _is_smaller(setting: Setting, row: Row) -> bool:
    """Whether a row, trained by other settings, has the paper's figures beside it too."""
    return bool(row.paper) and dict(row.paper) == dict(setting.paper)


def _has_variant(row: Row, variant: Variant) -> bool:
    return any(
        (own.name, own.trains_by, dict(own.settings))
        == (variant.name, variant.trains_by, dict(variant.settings))
        for own in row.variants
    )


# --------------------------------------------------------------------------------- table


def table(lines: Sequence[Line], write: Format = aligned) -> str:
    """Return a table of all lines, and what trains those that are missing.

    Args:
        lines: See `lines_of`.
        write: Turns rows of cells into text, see `tables.table`. Defaults to plain text.
    """
    rows = [list(HEADINGS), *_cells(lines)]
    return "\n".join([write(rows), *(f"note: {note}" for note in notes(lines))])


def notes(lines: Sequence[Line]) -> list[str]:
    """Return how reduced settings differ, and the commands of all that is not yet run."""
    reduced = {
        f"{line.setting.label}: {line.row.label}, {line.about}"
        for line in lines
        if line.row and line.is_reduced
    }
    missing = dict.fromkeys(line.command for line in lines if line.row is None or line.is_reduced)
    return [*sorted(reduced), *(f"{NOT_RUN}: {command}" for command in missing)]


def _cells(lines: Sequence[Line]) -> Iterator[list[str]]:
    before = ""
    for line in lines:
        label = line.setting.label
        yield ["" if label == before else label, line.variant.shown, *_measured(line)]
        before = label


def _measured(line: Line) -> list[str]:
    plain = [_shown(line.baseline), _published(line.paper, BASELINE)]
    gain = line.gain
    both = ["", ""] if gain is None else [plus_minus((gain.mean, gain.error), "+"), interval(gain)]
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
