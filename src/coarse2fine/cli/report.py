"""`c2f report`: one HTML page that shows what the curriculum did."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from . import options
from .process import say, show

NAME = "report.html"
EXAMPLES = (
    "c2f report runs/intents --open",
    "c2f report runs/photos --method staged --out photos.html",
    "c2f report runs/short runs/long --out compared.html",
)


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN…", help="The folders of runs, or of comparisons of several."),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Save the page as this. Default: {NAME} in the run's folder; of several, here.",
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Show the classes and mistakes of this method in detail."
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Order the classes by the hierarchy of this seed."),
    ] = None,
    examples: Annotated[
        int, typer.Option(metavar="N", help="Show this many images of each class; 0 shows none.")
    ] = 4,
    no_answers: Annotated[
        bool,
        typer.Option(
            "--no-answers",
            help="Leave out how fine the model can answer, for which it is run again.",
        ),
    ] = False,
    folder: options.Folder = None,
    model: options.ModelOfRun = None,
    is_opened: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
) -> None:
    """Show what came out, as one HTML page.

    The page needs no network. It tells whether it helped and how sure that is, and shows the
    hierarchy, the learning curves, the confusion matrix, every class and its mistakes, how fine
    the model can answer, and how to repeat it.
    """
    from ..report import write_report

    path = out or (runs[0] / NAME if len(runs) == 1 else Path(NAME))
    if examples or not no_answers:  # to read a large set again takes a while
        say("reading the runs and their data …")
    content = write_report(
        runs,
        path,
        method=method,
        seed=seed,
        examples=examples,
        answers=not no_answers,
        folder=folder,
        model=model,
    )
    show(f"{content['choice']}\n{content['sentence']}")
    say(f"saved as {path}")
    if is_opened and not webbrowser.open(path.resolve().as_uri()):
        say(f"no browser could be opened; open {path} in one yourself")
