"""The structs in a MATLAB file of version 5, as ImageNet's development kit has one.

scipy's reader in C trusts what a file says of itself: one wrong byte can end the process
by a segmentation fault, which no caller can turn into a sentence.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator

import numpy as np

from .archives import MOST_BYTES

_HEADER = 128
_MATRIX, _COMPRESSED = 14, 15
_STRUCT, _CHARACTERS = 2, 4  # classes of matrices
_KINDS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_ENCODINGS = {1: "latin-1", 2: "latin-1", 4: "utf-16", 16: "utf-8", 17: "utf-16"}


Value = str | int | float | None


def read_structs(data: bytes, fields: Collection[str]) -> list[dict[str, Value]]:
    """Return the structs of the first array of such, as dicts of numbers and strings.

    Args:
        data: What the file holds.
        fields: Which of the structs' fields to read.

    Raises:
        ValueError: It is another kind of file, or broken.
    """
    order = {b"IM": "<", b"MI": ">"}.get(data[126:_HEADER])
    if order is None:
        raise ValueError("it is no MATLAB file of version 5")
    for kind, content in _elements(data[_HEADER:], order):
        if kind == _COMPRESSED:
            content = zlib.decompressobj().decompress(content, MOST_BYTES)
            kind, content = next(_elements(content, order), (0, b""))
        parts = list(_elements(content, order)) if kind == _MATRIX else []
        if _class_of(parts, order) == _STRUCT:
            return _structs(parts, fields, order)
    raise ValueError("it holds no structs")


def _elements(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the type and content of each part, none of which reaches beyond the whole."""
    at = 0
    while at + 8 <= len(data):
        kind, size = (int(word) for word in np.frombuffer(data, f"{order}u4", 2, at))
        start = at + 8
        if kind >> 16:  # a small part, whose content stands where the size would
            kind, size, start = kind & 0xFFFF, kind >> 16, at + 4
        if start + size > len(data) or (start == at + 4 and size > 4):
            raise ValueError("it is cut off")
        yield kind, data[start : start + size]
        padding = 0 if kind == _COMPRESSED else -size % 8
        at = at + 8 if start == at + 4 else start + size + padding


def _class_of(parts: list[tuple[int, bytes]], order: str) -> int:
    flags = parts[0][1] if parts else b""
    return int(np.frombuffer(flags[:4], f"{order}u4")[0]) & 0xFF if len(flags) >= 4 else 0


def _structs(
    parts: list[tuple[int, bytes]], fields: Collection[str], order: str
) -> list[dict[str, Value]]:
    if len(parts) < 5 or len(parts[3][1]) != 4:
        raise ValueError("its structs have no fields")
    length = int(np.frombuffer(parts[3][1], f"{order}i4")[0])
    text = parts[4][1]
    if length < 1 or len(text) < length:
        raise ValueError("its structs have no fields")
    names = [text[at : at + length].split(b"\0")[0].decode() for at in range(0, len(text), length)]
    values = [content for _, content in parts[5:]]
    return [
        {
            name: _value(content, order)
            for name, content in zip(names, values[at : at + len(names)], strict=True)
            if name in fields
        }
        for at in range(0, len(values), len(names))
    ]


def _value(content: bytes, order: str) -> Value:
    """Return a string, or the only number of a matrix, None where there is neither."""
    parts = list(_elements(content, order))
    if len(parts) < 4:
        return None
    kind, data = parts[3]
    if _class_of(parts, order) == _CHARACTERS and kind in _ENCODINGS:
        encoding = _ENCODINGS[kind]
        ending = {"<": "-le", ">": "-be"}[order] if encoding == "utf-16" else ""
        return data.decode(encoding + ending)
    numbers = np.frombuffer(data, order + _KINDS[kind]) if kind in _KINDS else np.empty(0)
    return numbers[0].item() if len(numbers) == 1 else None
