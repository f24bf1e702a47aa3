"""`c2f paper`: the paper's tables and figures."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..runs.parsers import seeds as parsed_seeds
from . import options
from .process import say, show

if TYPE_CHECKING:
    from ..experiments.reproduce import Reproduction
    from ..experiments.results import Results
    from ..experiments.tasks import Task

OUT = Path("runs/paper")

EXAMPLES = (
    "c2f paper shapes-metrics --scale small --seeds 3",
    "c2f paper real-size --data ~/data --only 'cifar100-cnn-*' --only continuous",
    "c2f paper methods --data ~/data --executor tcp://10.0.0.1:8786",
    "c2f paper summary --from docs/results",
)
NAMES = (
    "shapes-size, shapes-metrics, real-size, methods, staged, sensitivity, curves, confusion, "
    "hierarchy, imagenet, dependable, levels, worth, modern or mistakes; or package.module:NAME; "
    "or summary, all rows of the paper's tables, from stored results."
)


def command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"The experiment is {NAMES}")],
    scale: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Train at this scale: full, as in the paper, or a smaller one."
        ),
    ] = "full",
    seeds: Annotated[
        str | None,
        typer.Option(
            metavar="N|LIST", help="Use so many seeds, from 0 on; or these: 0,1,2. Default: 5."
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Train only this setting or method; * stands for anything. Repeat it for several.",
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Train for at most this many epochs, instead of as declared."
        ),
    ] = None,
    folder: options.Folder = None,
    executor: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Run it by processes, processes:N, or a Dask cluster at this address.",
        ),
    ] = "processes",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Keep everything in this folder. Default: runs/paper."),
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Only draw again what this folder holds."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be trained.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the results as JSON instead of a table.")
    ] = False,
) -> None:
    """Reproduce a table or figure of the paper.

    All its trainings are carried out, except those already done; then the table is shown, and
    stored with the figure and all results. If it is stopped or killed, the same command resumes
    it.
    """
    from ..experiments import SUMMARY, reproduce

    trained = {"seeds": seeds, "data": folder, "executor": executor != "processes", "dry": dry_run}
    if name == SUMMARY:
        _check_only_source(source, scale != "full", only, epochs, *trained.values())
        _summarise(source or OUT, out, as_json=as_json)
        return
    if source is not None:
        _check_only_drawn(**trained)
        results = reproduce.redraw(name, scale, source, out, only or (), epochs)
        _show(results, out or source, as_json=as_json)
        return
    wanted = reproduce.Reproduction(
        name,
        scale=scale,
        seeds=parsed_seeds(seeds) if seeds else None,
        only=only or (),
        epochs=epochs,
        folder=folder,
        out=out or OUT,
        command=shlex.join(["c2f", *sys.argv[1:]]),
    )
    say(f"{wanted.experiment.title}; scale {scale}: {wanted.about}.")
    if dry_run:
        for task in wanted.tasks:
            show(f"{task}: {'done' if task.is_done else 'to do'}")
        return
    errors = _run(wanted, executor)
    if wanted.is_kept:
        say(f"{wanted.path} is left as it is, as it has results of more runs or seeds than these.")
    _show(wanted.results, None if wanted.is_kept else wanted.out, as_json=as_json)
    reproduce.check_errors(errors, len(wanted.tasks))


def _check_only_source(source: Path | None, *others: Any) -> None:
    """Refuse a summary of no folder, or of a part."""
    if source is None or any(others):
        raise ValueError(
            "summary takes --from, the folder of the stored results, beside it only --out and "
            "--json."
        )


def _summarise(source: Path, out: Path | None, *, as_json: bool) -> None:
    """Show all rows of the paper's tables, and write table and figure."""
    from ..experiments.summary import summarise, told

    lines = summarise(source, out)
    if as_json:
        show(json.dumps([line.to_dict() for line in lines]))
        return
    show(*told(lines), f"\nTable and figure are in {out or source}.")


def _check_only_drawn(**others: Any) -> None:
    """Refuse what has no meaning where nothing is trained."""
    if any(others.values()):
        raise ValueError(
            "--from draws what is stored: --seeds, --data, --executor and --dry-run do not go "
            "with it."
        )


def _run(wanted: Reproduction, executor: str) -> dict[Task, BaseException]:
    """Carry out all trainings for a person to watch."""
    from ..experiments.progress import Board

    board = Board()
    try:
        return wanted.run(executor, board)
    except KeyboardInterrupt:
        done = sum(task.is_done for task in wanted.tasks)
        raise KeyboardInterrupt(
            f"stopped with {done} of {len(wanted.tasks)} runs done; the same command resumes"
        ) from None
    finally:
        board.close()


def _show(results: Results, folder: Path | None, *, as_json: bool) -> None:
    """Show results, and the folder that table and figure are in; None where they are in none."""
    from ..experiments.content import results_to_dict
    from ..experiments.tables import told

    if as_json:
        show(json.dumps(results_to_dict(results)))
        return
    show(results.heading, *told(results))
    if folder is not None:
        show(f"\nTable and figure are in {folder}.")
