"""`c2f export`: a run's model as one file to deploy."""

from __future__ import annotations

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import __version__
from .._util.files import replacing
from ..errors import RunError, require
from . import options
from .process import show

if TYPE_CHECKING:
    from ..runs.restore import Trained

EXAMPLES = (
    "c2f export runs/photos --out photos.safetensors",
    "c2f export runs/photos --method staged --seed 1",
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
            metavar="FILE",
            help="Write this file. Default: model.safetensors or model.onnx in the run.",
        ),
    ] = None,
    onnx: Annotated[bool, typer.Option("--onnx", help="Export ONNX, for any batch size.")] = False,
) -> None:
    """Export a run's model as one file.

    It is the plain state dict in safetensors, or ONNX. Class names, input shape, and the mean and
    deviation by which inputs are normalised, pixels from 0 to 1, are in the file's metadata.
    """
    from ..runs.find import find_run
    from ..runs.restore import load_trained

    trained = load_trained(find_run(run, method, seed), model)
    path = out or trained.path / ("model.onnx" if onnx else "model.safetensors")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {path.parent}; make it first.")
    (export_onnx if onnx else export_safetensors)(trained, path)
    show(str(path))


def export_safetensors(trained: Trained, path: Path) -> None:
    """Write a model's state dict, with `metadata`, to a safetensors file."""
    from safetensors.torch import save_file

    # Copies, as tied weights share memory, which safetensors does not allow.
    state = {name: x.clone().contiguous() for name, x in trained.model.state_dict().items()}
    content = {"format": "pt", **metadata(trained)}
    with replacing(path) as unfinished:
        save_file(state, unfinished, content)


def export_onnx(trained: Trained, path: Path) -> None:
    """Write a model, with `metadata`, to an ONNX file that takes any number of samples."""
    import torch

    require("onnx", "onnx")
    require("onnxscript", "onnx")
    is_text = trained.kind == "text"
    dtype = torch.int64 if is_text else torch.float32
    axes: dict[int, Any] = {0: torch.export.Dim("batch")}
    if is_text:
        axes[1] = torch.export.Dim.AUTO  # sentences of any length, where the model allows it
    with _quiet():
        try:
            program: Any = torch.onnx.export(
                trained.model,
                (torch.ones(2, *trained.input_shape, dtype=dtype),),
                dynamo=True,
                dynamic_shapes=(axes,),
                input_names=["inputs"],
                output_names=["logits"],
                verbose=False,
            )
        except RuntimeError as error:
            reason = str(error).strip().partition("\n")[0]
            raise RunError(f"{trained.path}: its model has no form in ONNX: {reason}") from error
    program.model.metadata_props.update(metadata(trained))
    with replacing(path) as unfinished:
        program.save(str(unfinished))


def metadata(trained: Trained) -> dict[str, str]:
    """Return what is needed to use a model, each a string, of JSON where it is no name."""
    transform = {"mean": trained.transform.mean, "std": trained.transform.std}
    return {
        "coarse2fine": __version__,
        "model": str(trained.config.model),
        "kind": trained.kind,
        "class_names": json.dumps(trained.class_names, ensure_ascii=False),
        "input_shape": json.dumps(trained.input_shape),
        "transform": json.dumps(transform),
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the exporter's remarks about its own insides to itself."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
