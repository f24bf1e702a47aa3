"""A run's model as a folder that stands by itself, or as one file."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from .. import __version__
from .._util.files import replacing, replacing_folder, write_atomically
from ..data.sources import text
from ..errors import MissingExtraError, RunError
from ..hierarchy import Hierarchy
from ..prediction import LevelPredictor
from ..runs.best import find_best, finished_runs
from ..runs.directory import EXPORT, EXPORT_VERSION, Run
from ..runs.find import seed_folders
from ..runs.identity import Factory
from ..runs.restore import Trained, load_trained
from ..runs.result import Result, RunResult
from .card import model_card
from .folder import (
    CARD,
    FOLDER,
    LEVELS,
    ONNX,
    PROGRAM,
    TOKENS,
    WEIGHTS,
    check_replaceable,
)
from .load import hierarchy_of
from .program import (
    Deployed,
    ExportError,
    Inputs,
    check_onnx,
    exported_program,
    save_onnx,
    save_program,
)

Source = str | Path | Result | RunResult
_LICENSE = re.compile(r"[\w.+-]+")


@dataclass(frozen=True)
class Export:
    """An exported model.

    Args:
        path: The folder.
        run: Whose model it is.
        missing: A sentence for each file that could not be made.
    """

    path: Path
    run: RunResult
    missing: tuple[str, ...]


def export_model(
    source: Source,
    folder: str | Path,
    *,
    method: str | None = None,
    seed: int | None = None,
    model: Factory | None = None,
    license: str | None = None,
    level_predictor: LevelPredictor | None = None,
) -> Export:
    """Write a trained model to a folder that stands by itself.

    The folder holds the weights as safetensors; ``program.pt2``, which plain PyTorch runs; the
    same as ONNX, where the extra ``onnx`` is installed; a config with class names, shapes and
    figures; the hierarchy, where there is one; and a model card. Both programs take inputs as
    the data has them, and normalise them themselves.

    Args:
        source: A `Result`, a `RunResult`, or the folder of a run or comparison.
        folder: Where to write it. A folder of an earlier export is replaced, any other refused.
        method: Of a comparison's runs. Defaults to None: the one that validates best.
        seed: Of a comparison's runs. Defaults to None: the one that validates best.
        model: What makes the model, a callable or ``package.module:callable``. Defaults to
            None: what the run names, if that is ours or was trained by this process.
        license: Of the model, for its card, such as ``"apache-2.0"``. Defaults to None: the
            card does not say.
        level_predictor: What `Classifier.calibrate` returned, so that the exported model answers
            at any level. Defaults to None: it does not.

    Returns:
        The folder, the run, and what could not be made.
    """
    if license is not None and not _LICENSE.fullmatch(license):
        raise ValueError(f"license must be an identifier such as apache-2.0. Got {license!r}.")
    folder = Path(folder)
    if folder.name in ("", ".."):
        folder = folder.resolve()  # for a name to rename it to
    run = chosen_run(source, method, seed)
    levels = None if level_predictor is None else _levels(level_predictor, hierarchy_of(run))
    check_replaceable(folder)
    trained = _Trained(run, _comparison(source), model)
    with replacing_folder(folder) as unfinished:
        missing = trained.write(unfinished)
        facts, comparison = trained.facts, trained.comparison
        card = model_card(_name(folder), facts, comparison, missing, license, level_predictor)
        write_atomically(unfinished / CARD, card)
        if levels is not None:
            write_atomically(unfinished / LEVELS, levels)
    return Export(folder, run, missing)


class _Trained:
    """A run's model, and all that an export says of it."""

    def __init__(self, run: RunResult, comparison: Result | None, model: Factory | None) -> None:
        self.run, self.comparison = run, comparison
        self.model = load_trained(run.path, model)
        self.facts = _facts(self.run)
        data = Run(self.run.path).config.data
        self.inputs = Inputs(data.kind, data.input_shape, data.dtype)
        self.facts["inputs"] = {"dtype": self.inputs.dtype, "shape": self.inputs.shape}

    @cached_property
    def deployed(self) -> Deployed:
        """The model with its preprocessing."""
        return Deployed(self.model.model, self.model.transform)

    def write(self, folder: Path) -> tuple[str, ...]:
        """Write all files but the card, and return a sentence for each that is missing."""
        export_safetensors(self.model, folder / WEIGHTS)
        files, content = Run(folder), json.dumps(self.facts, indent=1, ensure_ascii=False)
        write_atomically(files.config_file, f"{content}\n")
        hierarchy = hierarchy_of(self.run)
        if hierarchy is not None:
            hierarchy.save(files.hierarchy_file)
        if self.model.kind == "text":
            write_atomically(folder / TOKENS, _tokens_source())
        return self._write_programs(folder)

    def _write_programs(self, folder: Path) -> tuple[str, ...]:
        try:
            program = exported_program(self.deployed, self.inputs)
        except ExportError as error:
            return (f"There is no {PROGRAM} and no {ONNX}: {error}.",)
        save_program(program, folder / PROGRAM)
        path = folder / ONNX
        try:
            save_onnx(program, self.inputs, path, metadata(self.model, is_raw=True))
            check_onnx(self.deployed, self.inputs, path)
        except (MissingExtraError, ExportError) as error:
            path.unlink(missing_ok=True)
            return (f"There is no {ONNX}: {str(error).rstrip('.')}.",)
        return ()


def chosen_run(source: Source, method: str | None = None, seed: int | None = None) -> RunResult:
    """Return the run that is meant, by default the one that validates best.

    Args:
        source: A result, or the folder of a run or comparison.
        method: Of a comparison's runs. Defaults to None: the best.
        seed: Of a comparison's runs. Defaults to None: the best.
    """
    if isinstance(source, Result | RunResult):
        source = source.path
    return find_best(Path(source), method, seed)


def export_safetensors(trained: Trained, path: Path) -> None:
    """Write a model's state dict, with `metadata`, to a safetensors file.

    Args:
        trained: The model.
        path: The file.
    """
    # Copies, as tied weights share memory, which safetensors does not allow.
    state = {name: x.clone().contiguous() for name, x in trained.model.state_dict().items()}
    content = {"format": "pt", **metadata(trained)}
    with replacing(path) as unfinished:
        save_file(state, unfinished, content)


def export_onnx(trained: Trained, path: Path) -> None:
    """Write a model without its preprocessing, with `metadata`, to an ONNX file.

    Args:
        trained: The model.
        path: The file.
    """
    inputs = Inputs(
        trained.kind, trained.input_shape, "int64" if trained.kind == "text" else "float32"
    )
    try:
        save_onnx(trained.model, inputs, path, metadata(trained))
    except ExportError as error:
        raise RunError(f"{trained.path}: {error}") from error


def metadata(trained: Trained, *, is_raw: bool = False) -> dict[str, str]:
    """Return what is needed to use a model, each a string, of JSON where it is no name.

    Args:
        trained: The model.
        is_raw: Whether it normalises its inputs itself. Defaults to False.
    """
    transform = {"mean": trained.transform.mean, "std": trained.transform.std}
    return {
        "coarse2fine": __version__,
        "model": str(trained.config.model),
        "kind": trained.kind,
        "class_names": json.dumps(trained.class_names, ensure_ascii=False),
        "input_shape": json.dumps(trained.input_shape),
        **({} if is_raw else {"transform": json.dumps(transform)}),
    }


def _name(folder: Path) -> str:
    """Return what to call a model: as its folder, or as the run that it lies in."""
    return folder.resolve().parent.name if folder.name == FOLDER else folder.name


def _levels(predictor: LevelPredictor, hierarchy: Hierarchy | None) -> str:
    """Return a predictor as text."""
    if predictor.hierarchy != hierarchy:
        raise ValueError("level_predictor must have the hierarchy of the run, and has another.")
    return f"{json.dumps(predictor.to_dict(), indent=1, ensure_ascii=False)}\n"


def _comparison(source: Source) -> Result | None:
    """Return the comparison that a run was chosen from, if it was."""
    if isinstance(source, Result):
        return source
    path = source.path if isinstance(source, RunResult) else Path(source)
    return Result.load(path) if seed_folders(path) and finished_runs(path) else None


def _facts(run: RunResult) -> dict[str, Any]:
    """Return the config of an export; a run's reader reads it too."""
    config = Run(run.path).config
    data: Mapping[str, Any] = vars(config.data)
    return {
        "format": EXPORT,
        "version": EXPORT_VERSION,
        "library_name": "coarse2fine",
        "coarse2fine": __version__,
        "model": str(config.settings["model"]),
        "data": dict(data),
        "method": run.method,
        "run": run.to_dict(),
        "command": config.command and _command(config.command),
        "versions": dict(config.versions),
        "config": dict(config.settings),
    }


def _command(command: str) -> str:
    """Return a command without where its program lies, which is nobody else's business."""
    program, *arguments = shlex.split(command)
    name = Path(program).name
    return shlex.join(["c2f" if name == "__main__.py" else name, *arguments])


def _tokens_source() -> str:
    """Return the module that turns sentences into tokens; it needs numpy and torch alone."""
    return f"# From coarse2fine {__version__}, under Apache-2.0.\n{inspect.getsource(text)}"
