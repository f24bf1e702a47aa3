"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataName = Annotated[
    str, typer.Argument(metavar="DATA", help="A set's name, a file, a folder or a hub name.")
]
Folder = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="Where a named set lies, or COARSE2FINE_DATA."),
]
Head = Annotated[
    str | None, typer.Option(metavar="NAME", help="The name of the model's final layer.")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run, or a comparison of several.")]
ModelOfRun = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="What makes its model, if not one of ours: package.module:callable; it is imported.",
    ),
]
MethodOfRun = Annotated[
    str | None, typer.Option(metavar="NAME", help="Of a comparison: baseline, staged, …")
]
SeedOfRun = Annotated[int | None, typer.Option(metavar="N", help="Of a comparison.")]
Target = Annotated[str | None, typer.Option(metavar="NAME", help="The column of the classes.")]
Text = Annotated[str | None, typer.Option(metavar="NAME", help="The column of the text.")]

# For options that have a default in one command and none in another.
LINKAGE = typer.Option(metavar="NAME", help="single, average or complete.")
METRIC = typer.Option(
    metavar="NAME",
    help="embedding, embedding_similarity, confusion, confusion_distance or random.",
)
