"""What a finished run holds, checked by the checksums that its result.json has of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .._files import parse_json
from .._printable import brief
from ..errors import RunError
from .checkpoint import check_signature, checksum, digest

RESULT = "result.json"
_FILES, _DATA = "checksums", "data_checksum"


def checksums(path: Path, names: list[str], data: Any) -> dict[str, Any]:
    """Return the checksums of what a run holds, to be stored with its result.

    Args:
        path: The run directory.
        names: Of its files.
        data: What its config says of the samples, which is needed to use the model; the rest
            of it, such as where a model is imported from, may be changed by hand.
    """
    return {_FILES: {name: checksum(path / name) for name in names}, _DATA: digest(data)}


def read_result(path: Path) -> dict[str, Any]:
    """Return what a run's result.json holds, or raise a `ValueError` where it is damaged."""
    content: dict[str, Any] = parse_json(path / RESULT)
    if not isinstance(content, dict) or not isinstance(content.get(_FILES, {}), dict):
        raise ValueError("it does not hold what a run has")
    if _FILES in content:  # older runs have none
        check_signature(content, RESULT)
    return content


def unchanged(path: Path, name: str) -> Path:
    """Return one of a run's files, once it is sure to be as the run left it.

    Args:
        path: The run directory; one that is not done has nothing to be checked by.
        name: The file's name in it.

    Raises:
        RunError: It has changed.
    """
    file = path / name
    wanted = _stored(path).get(_FILES, {}).get(name)
    if wanted is not None and file.is_file() and checksum(file) != wanted:
        raise changed(path, name)
    return file


def check_data(path: Path, data: Any, name: str) -> None:
    """Raise a `RunError` where a run's config says something else of the samples than before.

    Args:
        path: The run directory.
        data: What its config says.
        name: Of the config.
    """
    if _stored(path).get(_DATA, digest(data)) != digest(data):
        raise changed(path, name)


def changed(path: Path, name: str) -> RunError:
    """Return what to say of a run's file that is not as the run left it."""
    return RunError(f"{path / name} has changed since it was written; {_anew(path)}.")


def damaged_result(path: Path, error: Exception) -> RunError:
    """Return what to say of a run whose result.json cannot be used."""
    reason = brief(str(error).rstrip("."))
    return RunError(f"{path / RESULT} is damaged: {reason}; {_anew(path)}.")


def _stored(path: Path) -> dict[str, Any]:
    if not (path / RESULT).is_file():
        return {}
    try:
        content = read_result(path)
        return {_FILES: {}, **content}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged_result(path, error) from None


def _anew(path: Path) -> str:
    return f"put back what was there, or remove {path} and have the same command train it anew"
