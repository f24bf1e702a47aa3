"""Sentences of many classes, as their authors give them out: CLINC150, BANKING77, TREC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from ..._util.files import parse_json
from ..sources.tables import load_table
from ..sources.text import tokens
from ..split import Source, Split

Pairs = Sequence[tuple[str, str]]


def load_clinc150(folder: str | Path) -> Source:
    """Load CLINC150: 15,000 sentences of 150 intents to train on, 3,000 to validate, 4,500 to test.

    Sentences out of scope are left out.

    Args:
        folder: It, or its sub-folder clinc150, holds the authors' data_full.json.

    Raises:
        FileNotFoundError: There is none.
        ValueError: The file is broken.
    """
    path = _find(folder, "clinc150", "data_full.json")
    content: Any = parse_json(path)
    try:
        parts = {part: _pairs(content[part]) for part in ("train", "test", "val")}
    except (LookupError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} must hold lists train, val and test of [sentence, intent] ({error!r})."
        ) from error
    return _source(parts, path)


def load_banking77(folder: str | Path) -> Source:
    """Load BANKING77: 10,003 sentences of 77 intents to train on, 3,080 to test.

    Args:
        folder: It, or its sub-folder banking77, holds the authors' train.csv and test.csv.

    Raises:
        FileNotFoundError: There is none.
        ValueError: A file is broken.
    """
    path = _find(folder, "banking77", "train.csv")
    _find(path.parent, "banking77", "test.csv")  # else a share of the others would be tested on
    return load_table(path, target="category", text="text")


def load_trec(folder: str | Path) -> Source:
    """Load TREC: 5,452 questions of 50 kinds to train on, 500 to test.

    A few of the kinds do not occur among the questions to test on.

    Args:
        folder: It, or its sub-folder trec, holds the authors' train_5500.label and TREC_10.label.

    Raises:
        FileNotFoundError: There is none.
        ValueError: A file is broken.
    """
    names = {"train": "train_5500.label", "test": "TREC_10.label"}
    paths = {part: _find(folder, "trec", name) for part, name in names.items()}
    return _source({part: _questions(path) for part, path in paths.items()}, paths["test"])


def _find(folder: str | Path, name: str, file: str) -> Path:
    for place in (Path(folder) / name, Path(folder)):
        if (place / file).is_file():
            return place / file
    raise FileNotFoundError(f"{folder} holds no {file}; put that of {name} there.")


def _pairs(rows: Iterable[Any]) -> Pairs:
    found = [(sentence, intent) for sentence, intent in rows]
    if not all(isinstance(text, str) for pair in found for text in pair):
        raise TypeError("a sentence or an intent is no string")
    return found


def _questions(path: Path) -> Pairs:
    """Return the lines of a file: the kind, such as ``NUM:date``, a space, the question."""
    found = []
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        kind, _, question = line.partition(" ")
        if ":" not in kind or not question.strip():
            raise ValueError(f"{path}, line {number}: must be a kind like NUM:date and a question.")
        found.append((question.strip(), kind))
    return found


def _source(parts: dict[str, Pairs], path: Path) -> Source:
    names = tuple(sorted({intent for _, intent in parts["train"]}))
    made = {part: _split(pairs, names, path) for part, pairs in parts.items()}
    return Source("text", made["train"], made["test"], made.get("val"))


def _split(pairs: Pairs, names: tuple[str, ...], path: Path) -> Split:
    places = {name: place for place, name in enumerate(names)}
    unknown = sorted({intent for _, intent in pairs} - places.keys())
    if unknown:
        raise ValueError(f"{path}: no sentence to train on has the label {unknown[0]!r}.")
    targets = torch.tensor([places[intent] for _, intent in pairs], dtype=torch.int64)
    sentences = tuple(sentence for sentence, _ in pairs)
    return Split(tokens(sentences), targets, names, sentences=sentences)
