"""Predictions as lines of a table, of CSV or of JSON, each written as it comes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

from .._util.text import brief
from ..inference.classifier import Classifier, Prediction

_WIDEST = 32  # characters of a column of names in a table


@dataclass(frozen=True)
class Format:
    """How predictions are written.

    Args:
        header: The first line; empty for none.
        lines: Gives the lines of predictions.
    """

    header: str
    lines: Callable[[Sequence[Prediction]], str]


def choose_format(classifier: Classifier, top: int, *, as_csv: bool, as_json: bool) -> Format:
    """Return how predictions are written.

    Args:
        classifier: What predicts.
        top: How many classes each prediction names.
        as_csv: Whether as CSV.
        as_json: Whether as lines of JSON.
    """
    if as_json:
        return Format("", _json_lines)
    guesses = min(top, len(classifier.class_names)) - 1
    levels = 0 if classifier.hierarchy is None else len(classifier.hierarchy.levels) - 1
    if as_csv:
        last = [] if classifier.level_predictor is None else ["answer"]
        return Format(",".join([*_csv_header(guesses, levels), *last]), _csv_lines(classifier))
    return _table(classifier, guesses, levels)


# --------------------------------------------------------------------------- csv and json


def _csv_header(guesses: int, levels: int) -> list[str]:
    further = [[f"class_{rank}", f"probability_{rank}"] for rank in range(2, guesses + 2)]
    clusters = [f"level_{level}" for level in range(levels)]
    return [
        "input",
        "class",
        "probability",
        *(name for pair in further for name in pair),
        *clusters,
    ]


def _csv_lines(classifier: Classifier) -> Callable[[Sequence[Prediction]], str]:
    """Return what makes lines of predictions, whose names are put into quotes only once."""
    names = dict(zip(classifier.class_names, _csv_cells(classifier.class_names), strict=True))
    answers: dict[str | None, str] = {None: ""}
    for name, cell in zip(classifier.node_names, _csv_cells(classifier.node_names), strict=True):
        answers[name] = f",{cell}"
    clusters = set(classifier.clusters)
    ends = {own: "".join(f",{cell}" for cell in _csv_cells(own)) for own in clusters}

    def line(prediction: Prediction, given: str) -> str:
        further = [f",{names[name]},{share:.6g}" for name, share in prediction.guesses]
        first = f"{given},{names[prediction.class_name]},{prediction.probability:.6g}"
        last = f"{ends[prediction.clusters]}{answers[prediction.answer]}"
        return f"{first}{''.join(further)}{last}"

    def lines(predictions: Sequence[Prediction]) -> str:
        given = _csv_cells([prediction.input for prediction in predictions])
        return "\n".join(map(line, predictions, given))

    return lines


def _csv_cells(texts: Iterable[str]) -> list[str]:
    """Return texts as CSV has them, in quotes where they need them."""
    rows: list[str] = []
    file = SimpleNamespace(write=rows.append)
    # The second cell, as one that is empty would be in quotes if it were the only one.
    csv.writer(file, lineterminator="\n").writerows((text, "") for text in texts)
    return [row.removesuffix(",\n") for row in rows]


def _json_lines(predictions: Sequence[Prediction]) -> str:
    return "\n".join(json.dumps(prediction.to_dict()) for prediction in predictions)


# ---------------------------------------------------------------------------------- table


def _table(classifier: Classifier, guesses: int, levels: int) -> Format:
    """Return lines whose widths are those of the names, so that no line waits for the next."""
    widest = _width(classifier.class_names)
    longest = _width(["answer", *classifier.node_names])
    hierarchy = classifier.hierarchy
    counts = () if hierarchy is None else hierarchy.num_clusters[:levels]
    titles = [f"of {count} clusters" for count in counts]
    named = zip(*classifier.clusters, strict=True)
    widths = [_width([title, *names]) for title, names in zip(titles, named, strict=True)]

    def line(prediction: Prediction) -> str:
        first = (prediction.class_name, prediction.probability)
        cells = [
            f"{_cut(name, widest)}  {share:6.1%}" for name, share in (first, *prediction.guesses)
        ]
        clusters = [_cut(name, w) for name, w in zip(prediction.clusters, widths, strict=True)]
        answer = [] if prediction.answer is None else [_cut(prediction.answer, longest)]
        return "  ".join([*answer, *cells, *clusters, brief(prediction.input)])

    answer = [] if classifier.level_predictor is None else [_cut("answer", longest)]
    heads = ["class", *["next"] * guesses]
    cells = [f"{_cut(head, widest)}  {'':6}" for head in heads]
    clusters = [_cut(title, width) for title, width in zip(titles, widths, strict=True)]
    return Format(
        "  ".join([*answer, *cells, *clusters, "input"]), lambda found: "\n".join(map(line, found))
    )


def _width(names: Sequence[str]) -> int:
    return max(5, min(_WIDEST, max(map(len, names), default=0)))


def _cut(name: str, width: int) -> str:
    return f"{name:<{width}}" if len(name) <= width else f"{name[: width - 1]}…"
