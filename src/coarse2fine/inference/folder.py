"""The folder of an exported model: the names of its files, and how it is read again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._util.files import parse_json
from .._util.text import brief
from ..checkpoints import load_tensors
from ..errors import RunError
from ..hierarchy import Hierarchy
from ..prediction import LevelPredictor
from ..runs.directory import EXPORT, Run
from ..runs.identity import Factory
from ..runs.restore import Trained, trained_from
from ..runs.result import RunResult

WEIGHTS, PROGRAM, ONNX = "model.safetensors", "program.pt2", "model.onnx"
CARD, TOKENS = "README.md", "tokens.py"
LEVELS = "levels.json"  # how sure the model must be for an answer
FOLDER = "export"  # in the run or comparison, where no other place is given


def export_files(folder: Path) -> tuple[Path, ...]:
    """Return the files that an export may consist of, whether they are there or not."""
    run = Run(folder)  # a config and a hierarchy are called and read as those of a run
    others = (WEIGHTS, PROGRAM, ONNX, CARD, TOKENS, LEVELS)
    return (run.config_file, run.hierarchy_file, *(folder / name for name in others))


def is_export(folder: Path) -> bool:
    """Return whether a folder is one that `export_model` wrote."""
    file = Run(folder).config_file
    return file.is_file() and _format(file) == EXPORT


def load_export(folder: str | Path, model: Factory | None = None) -> Trained:
    """Return the model of an exported folder, and what is needed to use it.

    Only the weights, the config and the hierarchy are read, none of which can hold code.

    Args:
        folder: That `export_model` or ``c2f export`` wrote.
        model: What makes the model, a callable or ``package.module:callable``. Defaults to
            None: what the folder names, if that is ours.

    Raises:
        RunError: It is no such folder, or its model cannot be made again.
    """
    folder = Path(folder)
    if not is_export(folder):
        raise RunError(f"{folder} is not a folder that c2f export wrote.")
    file = folder / WEIGHTS
    if not file.is_file():
        raise RunError(f"{folder} has no {WEIGHTS}; export it again.")
    return trained_from(Run(folder), file, lambda: load_tensors(file), model)


def exported_run(folder: Path) -> RunResult:
    """Return the result of the run that an export was made from, with the export as its path.

    Args:
        folder: That `export_model` wrote.
    """
    file = Run(folder).config_file
    try:
        return RunResult.from_dict(parse_json(file)["run"], folder)
    except (ValueError, KeyError, TypeError) as error:
        raise RunError(f"{file} is damaged: {brief(error)}.") from None


def exported_levels(folder: Path, hierarchy: Hierarchy | None) -> LevelPredictor | None:
    """Return the predictor that was exported with a model; None where there is none.

    Args:
        folder: Of an export, or of a run, which has none.
        hierarchy: Of the model, whose nodes the answers are.

    Raises:
        RunError: It is damaged, or of another hierarchy.
    """
    file = folder / LEVELS
    if not is_export(folder) or not file.is_file():
        return None
    try:
        found = LevelPredictor.from_dict(parse_json(file))
        if found.hierarchy != hierarchy:
            raise ValueError("its hierarchy is not the model's")
    except (ValueError, TypeError) as error:
        raise RunError(f"{file} is damaged: {brief(str(error).rstrip('.'))}.") from None
    return found


def check_replaceable(folder: Path) -> None:
    """Raise a `FileExistsError` where a new export would overwrite anything but an old one.

    Args:
        folder: Where it is to be; it need not exist.
    """
    remedy = "choose another folder, or remove it"
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise FileExistsError(f"{folder} exists and is no folder; {remedy}.")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"{folder}: there is no folder {folder.parent}; make it first.")
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    others = sorted(present - {path.name for path in export_files(folder)})
    if present and (others or not is_export(folder)):
        what = f"holds {others[0]}, which is not of an export" if others else "is no export"
        raise FileExistsError(f"{folder} exists and {what}; {remedy}.")


def _format(file: Path) -> Any:
    try:
        content = parse_json(file)
    except ValueError as error:
        raise RunError(str(error)) from None
    return content.get("format") if isinstance(content, dict) else None
