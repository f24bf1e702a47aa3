"""An experiment from its name to its results, table and figure."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from .._util.files import write_atomically
from ..data.load import VARIABLE
from ..errors import RunError, require
from ..executors import check_executor
from ..figures.style import save
from ..runs.writer import RunWriter, versions
from . import find_experiment
from .content import (
    damage_named,
    file_of,
    gather_results,
    read_results,
    results_from_dict,
    results_to_dict,
    write_results,
)
from .declaration import FULL, chosen
from .figures import draw_figure
from .results import Results, collect
from .runner import Observer, Runner
from .tables import markdown, table
from .tasks import Task, expand, longer_baselines

FIGURE_FORMATS = ("svg", "png")


class Reproduction:
    """An experiment at a scale, to be carried out in a directory.

    What is done is kept there and shared with other experiments.

    Args:
        name: See `find_experiment`.
        scale: Which of its scales. Defaults to ``"full"``.
        seeds: Defaults to None: as declared, from 0.
        only: Keys of settings and names of variants, see `chosen`. Defaults to none: all.
        epochs: The most epochs, instead of what is declared. Defaults to None.
        folder: Where named data sets lie. Defaults to None: the environment's.
        out: The directory. Defaults to ``"runs/paper"``.
        command: What was called, to be stored with the results. Defaults to ``""``.

    Attributes:
        path: The file of its results.
        is_kept: Whether that file has been left alone, as it has results of more runs or seeds.
    """

    def __init__(
        self,
        name: str,
        *,
        scale: str = FULL,
        seeds: Sequence[int] | None = None,
        only: Sequence[str] = (),
        epochs: int | None = None,
        folder: str | Path | None = None,
        out: str | Path = "runs/paper",
        command: str = "",
    ) -> None:
        self.name, self.scale, self.command = name, scale, command
        self.experiment = find_experiment(name)
        self.about = self.experiment.scale(scale).about
        if epochs is not None:
            self.about += f"; at most {epochs} epochs"
        self.settings = chosen(self.experiment.scale(scale), tuple(only), epochs)
        self.seeds = tuple(range(self.experiment.num_seeds)) if seeds is None else tuple(seeds)
        self.out = Path(out).resolve()  # workers may have another current directory
        found = folder or os.environ.get(VARIABLE)
        self.folder = Path(found).resolve() if found else None
        self.path = file_of(name, scale, self.out, only, epochs, self.seeds)
        self.is_kept = False
        self._check()

    def _check(self) -> None:
        """Refuse what cannot be done, rather now than after hours."""
        for setting in self.settings:
            for variant in (None, *setting.variants):
                setting.config(variant, self.seeds)
        if self.experiment.figure:
            require("matplotlib", "report")

    @property
    def tasks(self) -> list[Task]:
        """All its trainings."""
        return expand(self.settings, self.seeds, self.out, self.folder)

    @property
    def _longer_baselines(self) -> list[Task]:
        return longer_baselines(self.settings, self.seeds, self.out, self.folder)

    def run(
        self, executor: str = "processes", observer: Observer | None = None
    ) -> dict[Task, BaseException]:
        """Carry out what is not done, store the results, and return what could not be done.

        Args:
            executor: See `workers`. Defaults to ``"processes"``.
            observer: Told how it goes. Defaults to None.
        """
        check_executor(executor)
        for task in self.tasks:
            if task.is_done:
                task.check()  # rather now than after hours
                # Its worker may have been killed before it could.
                RunWriter(task.path).tidy(keep_last=task.variant is None)
        try:
            errors = Runner(executor, observer).run(self.tasks)
            return errors | Runner(executor, observer).run(self._longer_baselines)
        finally:
            self.store()

    def table(self) -> str:
        """Return the table of all that is done, as plain text."""
        return table(self.results)

    def store(self) -> None:
        """Store the results of all that is done, with the table and the figure.

        A file that has results of more runs, or of more seeds, is left alone.
        """
        results = self.results
        both = zip(_stored_extent(self.path), results.extent, strict=True)
        self.is_kept = any(stored > own for stored, own in both)
        if not self.is_kept:
            write_results(self.path, results)
            draw(results, self.path)

    @property
    def results(self) -> Results:
        """What came out of all that is done."""
        # Accuracies are rounded in the file: drawn again, the figure must be the same.
        return results_from_dict(json.loads(json.dumps(results_to_dict(self._results()))))

    def _results(self) -> Results:
        figure = self.experiment.figure
        return Results(
            experiment=self.name,
            title=self.experiment.title,
            figure=figure,
            scale=self.scale,
            about=self.about,
            seeds=self.seeds,
            command=self.command,
            versions=versions(),
            rows=tuple(
                collect(row, self.seeds, self.out, figure, self.folder) for row in self.settings
            ),
        )


def _stored_extent(path: Path) -> tuple[int, int]:
    """Return of how many runs and seeds a file has results; of none where it cannot be read."""
    try:
        return read_results(path).extent
    except RunError:  # there is no such file, or one that only a new one can mend
        return 0, 0


def redraw(
    name: str,
    scale: str,
    folder: Path,
    out: Path | None = None,
    only: Sequence[str] = (),
    epochs: int | None = None,
) -> Results:
    """Draw the table and the figure of stored results again, and return the results.

    Args:
        name: Of the experiment.
        scale: Of the experiment.
        folder: Where its results lie.
        out: Where to draw to. Defaults to None: beside the results.
        only: As the results were made with. Defaults to none: all that the folder has, which may
            have been run setting by setting.
        epochs: As the results were made with. Defaults to None.
    """
    path = file_of(name, scale, folder, only, epochs)
    results = gather_results(name, scale, folder, only, epochs)
    with damage_named(path):
        draw(results, (out or folder) / path.name)
    return results


def draw(results: Results, path: Path) -> None:
    """Write the table as Markdown and the figure, where there is one, beside a file of results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    page = f"{results.heading}.\n\n{table(results, markdown)}\n"
    # Markdown may hold HTML.
    write_atomically(path.with_suffix(".md"), escape(page, quote=False))
    if results.figure is not None and any(row.runs for row in results.rows):
        figure = draw_figure(results.figure, results.rows)
        for kind in FIGURE_FORMATS:
            save(figure, path.with_suffix(f".{kind}"))


def check_errors(errors: dict[Task, BaseException], total: int) -> None:
    """Raise a `RunError` where trainings failed."""
    if errors:
        task, error = next(iter(errors.items()))
        raise RunError(
            f"{len(errors)} of {total} runs could not be done; the first is {task}: {error}"
        ) from error
