"""`c2f train`: the whole method on any data.

The options are called as the settings they set, see `coarse2fine.Config`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..runs.config import Config
from . import options
from .process import show

EXAMPLES = (
    "c2f train photos/ --image-size 64 --seeds 3",
    "c2f train cifar100 --data ~/data --train-size 10000 --method continuous --method staged",
    "c2f train intents.csv --text sentence --target intent --out runs/intents",
)


@options.with_settings
def command(
    data: options.DataName,
    folder: options.Folder = None,
    *,
    peer_seconds: Annotated[
        float,
        typer.Option(
            metavar="X", help="Wait this many seconds for a process that does not answer."
        ),
    ] = 600.0,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep everything in this folder. Default: one in runs, by the settings.",
        ),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write the curves for TensorBoard too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write lines of JSON instead of text.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the settings, all filled in.")
    ] = False,
    **settings: Any,
) -> None:
    """Train with and without a curriculum.

    The baseline is trained first, and the hierarchy is made from it unless you give one. The
    curriculum then trains from the same fresh weights, on the same samples, and the two are
    compared. Settings that you leave out are chosen to suit the model. If it is stopped or killed,
    the same command resumes it.
    """
    meant = options.parsed(settings)
    if dry_run:
        _show_settings(Config(data, **meant), folder, out, as_json=as_json)
        return
    from ..training.fit import fit
    from .comparison import report, watching

    with watching(out, as_json=as_json, tensorboard=tensorboard) as watcher:
        result = fit(
            data, folder=folder, peer_seconds=peer_seconds, out=out, watcher=watcher, **meant
        )
    report(result, as_json=as_json)


def _show_settings(config: Config, folder: Path | None, out: Path | None, *, as_json: bool) -> None:
    from ..training.fit import RUNS, check_length, default_name, given_hierarchy, loaded, resolve

    source = loaded(config, config.data, folder=folder, hierarchy=config.hierarchy)
    config = resolve(config, source)
    hierarchy = given_hierarchy(config.hierarchy, config, source)
    check_length(config, hierarchy)
    path = out or RUNS / default_name(config, source, hierarchy)
    if as_json:
        show(json.dumps({"event": "config", "path": str(path), "config": config.to_dict()}))
    else:
        show(f"{config}\n\nin {path}")
