"""`c2f train`: the whole method on any data.

The options are called as the settings they set, see `coarse2fine.Config`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from . import options, values
from .process import show

EXAMPLES = (
    "c2f train photos/ --image-size 64 --seeds 3",
    "c2f train cifar100 --data ~/data --train-size 10000 --method continuous --method staged",
    "c2f train intents.csv --text sentence --target intent --out runs/intents",
)
_MEANINGS: dict[str, Callable[[Any], Any]] = {
    "curriculum_epochs": values.number_or_word,
    "devices": values.number_or_word,
    "milestones": values.shares,
    "method_settings": values.method_settings,
    "seeds": values.seeds,
    "train_size": values.size,
}
_LIST = "How many, from 0; or which, as 0,1,2 (7, for seed 7 alone)."


def command(
    data: options.DataName,
    folder: options.Folder = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="cnn, resnet18, …, or package.module:callable."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            metavar="NAME",
            help="continuous (the default), staged, spl, dp-l, dp-li, multitask, nbdt, or "
            "package.module:Class; may be repeated.",
        ),
    ] = None,
    method_settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=X", help="What a method takes: nbdt.weight=10; repeatable."
        ),
    ] = None,
    metric: Annotated[str | None, options.METRIC] = None,
    linkage: Annotated[str | None, options.LINKAGE] = None,
    hierarchy: Annotated[
        str | None,
        typer.Option(metavar="FILE|RUN", help="Take the hierarchy from it: see c2f hierarchy."),
    ] = None,
    hierarchy_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Another model, trained only to make the hierarchy."),
    ] = None,
    max_levels: Annotated[
        int | None, typer.Option(metavar="N", help="The most levels to train on.")
    ] = None,
    baseline: Annotated[
        bool | None,
        typer.Option(
            "--baseline/--no-baseline", help="Whether to train it even where it is not needed."
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(metavar="N", help="The most epochs of each training.")
    ] = None,
    curriculum_epochs: Annotated[
        str | None,
        typer.Option(metavar="N|RULE", help="T; or by reach-90, best-epoch or search."),
    ] = None,
    stage_epochs: Annotated[
        int | None,
        typer.Option(metavar="N", help="The most epochs of each coarse level, if staged."),
    ] = None,
    train_size: Annotated[
        str | None,
        typer.Option(metavar="N|SHARE", help="Train on fewer, balanced: 10000, 0.05 or 5%."),
    ] = None,
    val_share: Annotated[
        float | None, typer.Option(metavar="X", help="Of these, for validation.")
    ] = None,
    test_share: Annotated[
        float | None,
        typer.Option(metavar="X", help="Of all, for testing, if the data has no test part."),
    ] = None,
    image_size: Annotated[
        int | None, typer.Option(metavar="N", help="The side to bring images to.")
    ] = None,
    target: options.Target = None,
    text: options.Text = None,
    seeds: Annotated[str | None, typer.Option(metavar="N|LIST", help=_LIST)] = None,
    batch_size: Annotated[
        int | None, typer.Option(metavar="N", help="Of all processes together.")
    ] = None,
    optimiser: Annotated[
        str | None, typer.Option(metavar="NAME", help="adam, adamw or sgd.")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(metavar="X", help="At the start.")] = None,
    momentum: Annotated[float | None, typer.Option(metavar="X", help="Of sgd.")] = None,
    weight_decay: Annotated[
        float | None, typer.Option(metavar="X", help="How strongly weights are drawn to zero.")
    ] = None,
    milestones: Annotated[
        str | None,
        typer.Option(
            metavar="LIST", help="Shares of the epochs at which the learning rate falls: 0.4,0.7."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(metavar="N", help="Stop after so many epochs without gain; 0 for never."),
    ] = None,
    augment: Annotated[
        bool | None, typer.Option("--augment/--no-augment", help="Crop and mirror images.")
    ] = None,
    normalise: Annotated[
        bool | None, typer.Option("--normalise/--no-normalise", help="Mean 0, deviation 1.")
    ] = None,
    accumulate: Annotated[
        int | None, typer.Option(metavar="N", help="In how many parts to compute a batch.")
    ] = None,
    clip: Annotated[
        float | None, typer.Option(metavar="X", help="The largest norm of a gradient.")
    ] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="NAME", help="32-true, bf16-mixed, …")
    ] = None,
    accelerator: Annotated[str | None, typer.Option(metavar="NAME", help="cpu, cuda, …")] = None,
    devices: Annotated[str | None, typer.Option(metavar="N|auto", help="How many.")] = None,
    strategy: Annotated[str | None, typer.Option(metavar="NAME", help="ddp, fsdp, …")] = None,
    track_test: Annotated[
        bool | None,
        typer.Option("--track-test", help="Note the test accuracy after every epoch too."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes that read images which do not fit in memory."),
    ] = None,
    peer_seconds: Annotated[
        float,
        typer.Option(metavar="X", help="How long processes wait for one that does not answer."),
    ] = 600.0,
    head: options.Head = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where it is kept. Default: by the settings, in runs."),
    ] = None,
    tensorboard: Annotated[
        bool, typer.Option("--tensorboard", help="Write for TensorBoard too.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write lines of JSON instead of text.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the settings, all filled in.")
    ] = False,
) -> None:
    """Train with and without a curriculum.

    The baseline is trained first; it gives the hierarchy and the length of the curriculum. The
    curriculum then trains from the same fresh weights, on the same samples, and the two are
    compared. What is not set is chosen to suit the model. Stopped or killed, the same command
    goes on where it was.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    own = {name: given.pop(name) for name in ("as_json", "dry_run", "peer_seconds", "tensorboard")}
    for name, meaning in _MEANINGS.items():
        if name in given:
            given[name] = meaning(given[name])
    _check(given)
    if own.pop("dry_run"):
        _show_settings(as_json=as_json, **given)
        return
    from .comparison import compare, report

    report(compare(**own, **given), as_json=as_json)


def _check(given: dict[str, Any]) -> None:
    """Refuse bad settings at once, rather than after the data has been read."""
    from ..training.config import Config

    others = ("folder", "out")
    Config(**{name: value for name, value in given.items() if name not in others})


def _show_settings(
    *, as_json: bool, folder: Path | None = None, out: Path | None = None, **settings: Any
) -> None:
    from ..data.load import load_data
    from ..training.config import Config
    from ..training.fit import default_name, given_hierarchy, resolve

    config = Config(**settings)
    source = load_data(
        config.data,
        folder=folder,
        image_size=config.image_size,
        target=config.target,
        text=config.text,
    )
    config = resolve(config, source)
    hierarchy = given_hierarchy(config.hierarchy, config, source)
    path = out or Path("runs") / default_name(config, source, hierarchy)
    if as_json:
        show(json.dumps({"event": "config", "path": str(path), "config": config.to_dict()}))
    else:
        show(f"{config}\n\nin {path}")
