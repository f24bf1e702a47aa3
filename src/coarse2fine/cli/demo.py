"""`c2f demo`: the paper's effect in a few minutes, without any data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

EXAMPLES = ("c2f demo", "c2f demo --seeds 10 --out runs/demo-10", "c2f demo --json > demo.jsonl")

DATA = "shapes:15000"
SETTINGS: dict[str, Any] = {
    "image_size": 26,
    "train_size": 3000,
    "batch_size": 48,
    "epochs": 44,
    "patience": 10,
    # What the rows of so small a network's final layer have in common hides how they differ: by
    # plain cosines some seeds would put most of the classes into one cluster, and gain nothing.
    "metric": "embedding_centred",
    # A coarse level teaches the colours at once and the shapes only after a pause, which on so few
    # images may be longer than the default waits.
    "method_settings": {"continuous.patience": 8},
}
SEEDS = "5"  # gains differ from seed to seed by so much that fewer may leave it unclear
REDUCED = (
    "Shapes, reduced: images of 26×26 pixels instead of 64×64, 100 of each class to train and "
    "validate on instead of about 1,300, and 3,000 to test on instead of 10,000."
)


def command(
    seeds: Annotated[
        str,
        typer.Option(
            metavar="N|LIST", help="Repeat it with so many seeds, from 0 on; or with these: 0,1,2."
        ),
    ] = SEEDS,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep everything in this folder. Default: one in runs, by the settings.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write lines of JSON instead of text.")
    ] = False,
) -> None:
    """Show the effect on generated images.

    It trains with and without a curriculum on a reduced version of the paper's Shapes: fewer and
    smaller images, made on the spot. It takes a few minutes, and ends with the hierarchy, the
    accuracies and gains, and where the run lies.
    """
    from ..runs.parsers import seeds as parsed_seeds
    from ..training.fit import fit
    from .comparison import report, watching
    from .process import say, show

    say(REDUCED)
    with watching(out, as_json=as_json) as watcher:
        result = fit(DATA, out=out, watcher=watcher, seeds=parsed_seeds(seeds), **SETTINGS)
    if not as_json:
        first = next(run for run in result.runs if run.num_clusters)
        show(f"the hierarchy of seed {first.seed}, made from its baseline:\n{first.hierarchy()}\n")
    report(result, as_json=as_json)
