"""The rows of the paper's tables, a line for each method, and what came out of each so far."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from .._util.files import Json
from ..runs.config import settings_affecting
from ..runs.result import BASELINE, RunResult
from ..runs.statistics import Paired, paired
from ..runs.writer import versions
from . import find_experiment
from .declaration import FULL, Published, Setting, Variant
from .results import Results, Row
from .tables import unlike

TABLES = ("staged", "shapes-metrics")  # between them, their settings are the rows
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
        if self.row is None:
            return NOT_RUN
        found = [REDUCED] if self.is_reduced else self._unlike_paper(self.row)
        runs = (*self.row.of(BASELINE), *self.runs)
        short = sum(not run.levelled_off for run in runs)
        found += [f"{short} of {len(runs)} runs have not levelled off"] if short else []
        return "; ".join([*found, *(f"by {version}" for version in self.older_versions)])

    def _unlike_paper(self, row: Row) -> list[str]:
        gain = unlike(row.gains(self.variant.name), self.paper.get(self.variant.name))
        found = (("gain", gain), ("baseline", unlike(self.baseline, self.paper.get(BASELINE))))
        return [f"{what} {distance}" for what, distance in found if distance]

    @property
    def older_versions(self) -> list[str]:
        """The versions of this package that made the runs, where they are not this one."""
        made = [it["coarse2fine"] for it in self.row.versions] if self.row else []
        return sorted(set(made) - {versions()["coarse2fine"]})

    @property
    def is_missing(self) -> bool:
        """Whether it has not been run as the paper has it."""
        return self.row is None or self.is_reduced

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
        }


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
