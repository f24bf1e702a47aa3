"""The files of a hierarchy: JSON, or safetensors, which is smaller and faster for many classes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .._util.arrays import Array
from .._util.files import check_is_file, parse_json, write_atomically
from .._util.text import brief
from .levels import FORMAT

ARRAYS = ".safetensors"
# The names of a level are two arrays: all of them in one piece, and how long each of them is.
_TEXT, _LENGTHS = "text", "lengths"


def is_arrays(path: Path) -> bool:
    """Return whether a file of this name is safetensors."""
    return path.suffix.lower() == ARRAYS


def holds_hierarchy(path: Path) -> bool:
    """Return whether a file is safetensors that claim to be a hierarchy, valid or not."""
    if not (is_arrays(path) and path.is_file()):
        return False
    try:
        return bool(_open(path)[0].get("format") == FORMAT)
    except ValueError:  # left to whoever reads it as something else
        return False


def write_content(path: Path, content: Mapping[str, Any]) -> None:
    """Write a hierarchy in the format that the file's name says.

    Args:
        path: Safetensors where it ends in ``.safetensors``, else JSON. An existing file is
            replaced whole or not at all.
        content: As `Hierarchy.to_dict` has it, with levels that are arrays.
    """
    if is_arrays(path):
        write_atomically(path, _to_safetensors(content))
        return
    plain = {**content, "levels": [level.tolist() for level in content["levels"]]}
    write_atomically(path, json.dumps(plain, ensure_ascii=False) + "\n")


def read_content(path: Path) -> Any:
    """Return what a hierarchy's file holds, of which only the format is checked.

    Args:
        path: Safetensors where it ends in ``.safetensors``, else JSON.
    """
    if not is_arrays(path):
        return parse_json(path)
    metadata, arrays = _open(path)
    try:
        return _from_safetensors(metadata, arrays)
    except ValueError as error:
        raise ValueError(f"{path}: {brief(error)}") from None


def _open(path: Path) -> tuple[dict[str, str], dict[str, Array]]:
    from safetensors import safe_open  # not needed for JSON

    check_is_file(path)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            # Not of another file, which may hold gigabytes.
            names = file.keys() if metadata.get("format") == FORMAT else ()
            return metadata, {name: file.get_tensor(name) for name in names}
    except FileNotFoundError:
        raise
    except Exception as error:  # types that numpy lacks lead it to raise whatever
        raise ValueError(f"{path}: not readable as safetensors: {brief(error)}") from None


def _to_safetensors(content: Mapping[str, Any]) -> bytes:
    from safetensors.numpy import save

    arrays = {f"levels.{at}": _smallest(level) for at, level in enumerate(content["levels"])}
    if content["class_names"] is not None:
        arrays |= _names_to_arrays("class_names", content["class_names"])
    for at, names in enumerate(content["cluster_names"] or ()):
        arrays |= _names_to_arrays(f"cluster_names.{at}", names)
    if others := content.get("other_names"):
        arrays |= _names_to_arrays("other_names", list(others))
        arrays |= _names_to_arrays("other_names.meant", list(others.values()))
    about = ("format", "version", "num_classes", "approximate")
    return save(arrays, {key: str(content[key]) for key in about if key in content})


def _from_safetensors(metadata: Mapping[str, str], arrays: dict[str, Array]) -> dict[str, Any]:
    if metadata.get("format") != FORMAT:
        raise ValueError(f'not a hierarchy: its metadata must have "format": "{FORMAT}".')
    content: dict[str, Any] = {"format": FORMAT, "class_names": None, "cluster_names": None}
    content |= {key: _whole(metadata.get(key)) for key in ("version", "num_classes")}
    if "approximate" in metadata:
        content["approximate"] = metadata["approximate"] == "True" or metadata["approximate"]
    levels: list[Array] = []
    while f"levels.{len(levels)}" in arrays:
        levels.append(arrays.pop(f"levels.{len(levels)}"))
    content["levels"] = levels
    if f"class_names.{_TEXT}" in arrays:
        content["class_names"] = _names_from_arrays("class_names", arrays)
    if f"cluster_names.0.{_TEXT}" in arrays:
        every = [f"cluster_names.{at}" for at in range(len(levels))]
        content["cluster_names"] = [_names_from_arrays(each, arrays) for each in every]
    if f"other_names.{_TEXT}" in arrays:
        both = (_names_from_arrays(f"other_names{part}", arrays) for part in ("", ".meant"))
        content["other_names"] = _pairs(*both)
    if arrays:
        raise ValueError(f"the array {brief(min(arrays))!r} is no part of a hierarchy.")
    return content


def _pairs(others: list[str], meant: list[str]) -> dict[str, str]:
    if len(others) != len(meant):
        raise ValueError(f"of {len(others)} other names, {len(meant)} say what they mean.")
    return dict(zip(others, meant, strict=True))


def _whole(text: str | None) -> Any:
    """Return the number that a text is, or the text, for the checks to refuse."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 20 else text


def _smallest(numbers: Array) -> Array:
    """Return the numbers, none of them negative, in the type that takes the fewest bytes."""
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


def _names_to_arrays(what: str, names: Sequence[str]) -> dict[str, Array]:
    # Names of files that are not UTF-8 have surrogates, which UTF-8 has no place for.
    text = np.frombuffer("".join(names).encode("utf-8", "surrogatepass"), np.uint8)
    # In characters, not bytes, so that no name can begin within one.
    lengths = _smallest(np.fromiter(map(len, names), np.int64, len(names)))
    return {f"{what}.{_TEXT}": text, f"{what}.{_LENGTHS}": lengths}


def _names_from_arrays(what: str, arrays: dict[str, Array]) -> list[str]:
    """Return the names that two arrays hold, which are taken out."""
    text, lengths = (arrays.pop(f"{what}.{part}", np.empty(0)) for part in (_TEXT, _LENGTHS))
    if text.dtype != np.uint8 or lengths.dtype.kind != "u" or (text.ndim, lengths.ndim) != (1, 1):
        raise ValueError(
            f"{what} must be the arrays {_TEXT!r}, of uint8, and {_LENGTHS!r}, unsigned. Got "
            f"{text.dtype} of shape {text.shape} and {lengths.dtype} of shape {lengths.shape}."
        )
    try:
        whole = text.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} must be text in UTF-8: {error}.") from None
    # Each by itself first, as a sum may overflow.
    is_short = not (lengths > len(whole)).any()
    ends = lengths.astype(np.int64).cumsum() if is_short else np.full(1, -1)
    if ends[-1:].sum() != len(whole):
        raise ValueError(f"the lengths of {what} must add up to the {len(whole)} of its text.")
    return [whole[start:end] for start, end in pairwise([0, *ends.tolist()])]
