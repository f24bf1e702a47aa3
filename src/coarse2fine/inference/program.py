"""A model with its preprocessing, as programs that need nothing of this package."""

from __future__ import annotations

import io
import logging
import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .._util.files import replacing, write_atomically
from .._util.text import first_line
from ..data import Kind, Transform
from ..errors import require

_USUAL: dict[Kind, str] = {"image": "uint8", "text": "int64", "table": "float32"}
_DTYPES = {"uint8": torch.uint8, "int64": torch.int64, "float32": torch.float32}
_CLOSE = 1e-3  # the largest difference of two logits, as a share of the largest of all


class ExportError(RuntimeError):
    """A model cannot be turned into a program; the message says why."""


class Deployed(nn.Module):
    """A model that takes inputs as the data has them: it scales and normalises them itself.

    Args:
        model: In evaluation mode.
        transform: What its inputs go through first.
    """

    def __init__(self, model: nn.Module, transform: Transform) -> None:
        super().__init__()
        self.model, self.transform = model, transform
        self.eval()

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits (N, K)."""
        logits: Tensor = self.model(self.transform.normalise(inputs))
        return logits


class Inputs:
    """What a program takes: a batch of any size, of samples of one shape and type.

    Args:
        kind: What the inputs are; sentences may have any length.
        shape: Of one sample.
        dtype: As torch names it. Defaults to ``""``: that of all data of this kind.
    """

    def __init__(self, kind: Kind, shape: tuple[int, ...], dtype: str = "") -> None:
        self.kind, self.shape = kind, shape
        # A config may be anyone's, and name whatever torch has.
        self.dtype = dtype if dtype in _DTYPES else _USUAL.get(kind, "float32")

    def examples(self, count: int) -> Tensor:
        """Return inputs to try a program with, the same every time."""
        dtype = _DTYPES[self.dtype]
        generator = torch.Generator().manual_seed(count)
        # Tokens of 0 and 1 are known to every model, whatever its vocabulary.
        high = 256 if dtype == torch.uint8 else 2
        whole = torch.randint(high, (count, *self.shape), generator=generator)
        if dtype.is_floating_point:
            return torch.randn(whole.shape, generator=generator).to(dtype)
        return whole.to(dtype)

    def axes(self) -> dict[int, Any]:
        """Return which dimensions may have any size."""
        axes: dict[int, Any] = {0: torch.export.Dim("batch")}
        if self.kind == "text":
            axes[1] = torch.export.Dim.AUTO  # as far as the model allows it
        return axes


def exported_program(model: Deployed, inputs: Inputs) -> torch.export.ExportedProgram:
    """Return a model as a program of torch alone, once it was seen to give the same logits.

    Args:
        model: With its preprocessing.
        inputs: What it takes.

    Raises:
        ExportError: `torch.export` cannot express the model for any number of samples.
    """
    with quiet():
        try:
            program = torch.export.export(
                model, (inputs.examples(3),), dynamic_shapes=(inputs.axes(),)
            )
            _check_same(model, program.module(), inputs)
        except ExportError:
            raise
        except Exception as error:  # a model may hold anything, and torch raises as many types
            raise ExportError(f"torch.export cannot express it: {first_line(error)}") from error
    return program


def save_program(program: torch.export.ExportedProgram, path: Path) -> None:
    """Write a program to a file that `torch.export.load` reads."""
    content = io.BytesIO()  # as torch's own writer hides what is wrong with a disk
    torch.export.save(program, content)
    write_atomically(path, content.getvalue())


def save_onnx(
    program: nn.Module | torch.export.ExportedProgram,
    inputs: Inputs,
    path: Path,
    metadata: dict[str, str],
) -> None:
    """Write a program or a model to an ONNX file that takes any number of samples.

    Args:
        program: Of torch, or a model.
        inputs: What it takes.
        path: The file.
        metadata: Strings that the file holds beside it.

    Raises:
        ExportError: ONNX cannot express it.
    """
    require("onnx", "onnx")
    require("onnxscript", "onnx")
    is_model = isinstance(program, nn.Module)
    with quiet():
        try:
            found: Any = torch.onnx.export(
                program,
                (inputs.examples(3),),
                dynamo=True,
                dynamic_shapes=(inputs.axes(),) if is_model else None,
                input_names=["inputs"],
                output_names=["logits"],
                verbose=False,
            )
        except RuntimeError as error:
            raise ExportError(f"its model has no form in ONNX: {first_line(error)}") from error
    found.model.metadata_props.update(metadata)
    with replacing(path) as unfinished:
        found.save(str(unfinished))


def check_onnx(model: nn.Module, inputs: Inputs, path: Path) -> None:
    """Raise an `ExportError` where onnxruntime gives other logits than the model.

    Args:
        model: What the file was made from.
        inputs: What it takes.
        path: The ONNX file.
    """
    runtime: Any = require("onnxruntime", "onnx")
    session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])

    def logits(batch: Tensor) -> Tensor:
        return torch.from_numpy(session.run(["logits"], {"inputs": batch.numpy()})[0])

    try:
        _check_same(model, logits, inputs)
    except ExportError:
        raise
    except Exception as error:  # the runtime's exceptions have no class in common
        raise ExportError(f"onnxruntime cannot run it: {first_line(error)}") from error


@torch.no_grad()
def _check_same(model: nn.Module, other: Callable[[Tensor], Tensor], inputs: Inputs) -> None:
    """Raise an `ExportError` where a program differs from its model, for one sample or more."""
    for count in (1, 4):
        batch = inputs.examples(count)
        wanted, found = model(batch).double(), other(batch).double()
        difference = float((wanted - found).abs().max())
        # Not the other way round, so that NaN counts as a difference.
        if not difference <= _CLOSE * max(1.0, float(wanted.abs().max())):
            shown = "NaN" if math.isnan(difference) else f"{difference:.2g}"
            raise ExportError(f"its logits differ by {shown} from the model's")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the exporter's remarks about its own insides to itself."""
    disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
