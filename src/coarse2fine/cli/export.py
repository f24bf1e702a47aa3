"""`c2f export`: a run's model as a folder that stands by itself, or as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .calibration import Accuracy, Calibrate, check_calibration, level_predictor
from .process import say, show

if TYPE_CHECKING:
    from ..prediction import LevelPredictor
    from ..runs.result import RunResult

EXAMPLES = (
    "c2f export runs/photos --out photos-model",
    "c2f export runs/photos --method staged --seed 1 --license apache-2.0",
    "c2f export runs/photos --accuracy 0.95 --out photos-model",
    "c2f export runs/photos/seed-0/continuous --onnx --out photos.onnx",
)


def command(
    run: options.RunPath,
    method: options.MethodOfRun = None,
    seed: options.SeedOfRun = None,
    model: options.ModelOfRun = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER|FILE",
            help="Write this folder, or one file that ends in .safetensors or .onnx. "
            "Default: the folder export in RUN; with --onnx, model.onnx in the run.",
        ),
    ] = None,
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Write one ONNX file, of the model without preprocessing."),
    ] = False,
    license: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name the model's licence in its card, such as apache-2.0."
        ),
    ] = None,
    accuracy: Accuracy = None,
    calibrate: Calibrate = None,
    folder: options.Folder = None,
) -> None:
    """Export a run's model, by default the one that validates best.

    A folder holds the weights; programs for plain PyTorch and, if installed, ONNX, with the
    preprocessing in them; class names, hierarchy and a model card. One file holds the plain
    state dict in safetensors, or ONNX, with class names, input shape and normalisation in its
    metadata. With --accuracy the exported model answers with classes or clusters.
    """
    from ..inference.export import chosen_run, export_model
    from ..inference.folder import FOLDER
    from ..runs.best import described

    check_calibration(accuracy, calibrate)
    is_onnx = onnx or (out is not None and out.suffix == ".onnx")
    if not is_onnx and (out is None or out.suffix != ".safetensors"):
        place, levels = out or run / FOLDER, None
        if accuracy is not None:
            found = chosen_run(run, method, seed)
            levels = _level_predictor(found, model, accuracy, calibrate, folder)
        made = export_model(
            run,
            place,
            method=method,
            seed=seed,
            model=model,
            license=license,
            level_predictor=levels,
        )
        for line in (f"exported {described(made.run)}", *made.missing):
            say(line)
        show(str(place))
        return
    _check_is_for_folder(license=license, accuracy=accuracy)
    found = chosen_run(run, method, seed)
    path = out or found.path / "model.onnx"
    _export_file(found.path, model, path, is_onnx=is_onnx)
    say(f"exported {described(found)}")
    show(str(path))


def _level_predictor(
    run: RunResult, model: str | None, accuracy: float, calibrate: str | None, folder: Path | None
) -> LevelPredictor:
    """Return what the exported model is to answer with."""
    from ..inference.load import hierarchy_of
    from ..runs.restore import load_trained

    trained = load_trained(run.path, model)
    return level_predictor(trained, hierarchy_of(run), accuracy, calibrate, folder)


def _check_is_for_folder(**given: object) -> None:
    """Refuse options that mean nothing for one file."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"--{name} is for a folder; let --out name a folder.")


def _export_file(run: Path, model: str | None, path: Path, *, is_onnx: bool) -> None:
    from ..inference.export import export_onnx, export_safetensors
    from ..runs.restore import load_trained

    trained = load_trained(run, model)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    (export_onnx if is_onnx else export_safetensors)(trained, path)
