"""The file of an experiment's results: the one place where they are read and written as JSON."""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from .._util.files import parse_json, write_atomically, writing
from ..errors import RunError
from ..figures.classes import ClassAccuracies
from ..figures.confusion import ConfusionPair
from ..figures.counts import Confusions
from ..figures.curves import Curve
from ..figures.hierarchy import NamedHierarchy
from ..figures.levels import Levels, RunLevels
from ..hierarchy import Hierarchy
from ..runs.result import BASELINE, RunResult
from ..runs.statistics import paired
from .declaration import FULL, Variant
from .results import Results, Row
from .values import FIGURES, FigureValues

FORMAT, VERSION = "coarse2fine experiment", 1
DECIMALS = 5  # of an accuracy's share; as many as 100,000 test images can have
Json = dict[str, Any]


# ------------------------------------------------------------------------------- files


def file_of(
    name: str, scale: str, folder: Path, only: Sequence[str] = (), epochs: int | None = None
) -> Path:
    """Return where an experiment's results are kept.

    Args:
        name: Of the experiment.
        scale: Of the experiment.
        folder: That holds it.
        only: The part of it that was asked for. Defaults to none: all.
        epochs: Instead of those declared. Defaults to None.

    Examples:
        >>> file_of("methods", "full", Path()).name
        'methods.json'
        >>> file_of("methods", "small", Path(), only=["nbdt", "dp-*"], epochs=3).name
        'methods-small-3-epochs-only-dp-nbdt.json'
    """
    parts = [name.replace(":", "."), *([scale] if scale != FULL else [])]
    parts += [f"{epochs}-epochs"] if epochs is not None else []
    parts += ["only", *sorted(only)] if only else []
    stem = "-".join(re.sub(r"[^\w.+]+", "-", part).strip("-") for part in parts)
    return folder / f"{stem}.json"


def write_results(path: Path, results: Results) -> None:
    """Write results to a file, and make its folder where there is none."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results_to_dict(results), indent=1, ensure_ascii=False)
    # A row of a matrix is one line, not one for each number.
    text = re.sub(r"\[\s+[-\d.eE,\s]+\]", lambda found: "".join(found[0].split()), text)
    write_atomically(path, text + "\n")


def read_results(path: Path) -> Results:
    """Read what `write_results` wrote."""
    if not path.is_file():
        raise RunError(f"there is no {path}: run the experiment first, or choose another --scale.")
    try:
        content: Any = parse_json(path)
    except ValueError as error:
        raise RunError(f"{error}; run the experiment again.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RunError(f"{path} does not hold an experiment's results; choose another folder.")
    if content.get("version") != VERSION:
        raise RunError(
            f"{path} has version {content.get('version')!r}, here it is {VERSION}; run the "
            f"experiment again."
        )
    if content.get("figure") not in (None, *FIGURES):
        raise RunError(f"{path} asks for a figure {content['figure']!r}, which there is not.")
    with damage_named(path):
        return results_from_dict(content)


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Raise a `RunError` that names a file where what it holds is not what was written."""
    try:
        yield
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise RunError(
            f"{path} is damaged ({type(error).__name__}: {error}); run the experiment again."
        ) from error


# ----------------------------------------------------------------------------- results


def results_to_dict(results: Results) -> Json:
    """Return results as plain values."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "experiment": results.experiment,
        "title": results.title,
        "figure": results.figure,
        "scale": {"name": results.scale, "about": results.about},
        "seeds": list(results.seeds),
        "command": results.command,
        "versions": dict(results.versions),
        "settings": [_row_to_dict(row) for row in results.rows],
    }


def results_from_dict(content: Json) -> Results:
    """Return the results that `results_to_dict` made plain values of."""
    return Results(
        experiment=content["experiment"],
        title=content["title"],
        figure=content["figure"],
        scale=content["scale"]["name"],
        about=content["scale"]["about"],
        seeds=tuple(content["seeds"]),
        command=content["command"],
        versions=content["versions"],
        rows=tuple(_row_from_dict(row) for row in content["settings"]),
    )


def _row_to_dict(row: Row) -> Json:
    return {
        "key": row.key,
        "label": row.label,
        "folder": row.folder,
        "config": dict(row.config),
        "paper": {name: list(figures) for name, figures in row.paper.items()},
        "variants": [_variant_to_dict(variant) for variant in row.variants],
        "runs": [run.to_dict() for run in row.runs],
        "versions": [dict(versions) for versions in row.versions],
        # For those who read the file: here they are computed from the runs.
        "gains": {
            variant.name: paired(gains).to_dict()
            for variant in row.variants
            if (gains := row.gains(variant.name))
        },
        **values_to_dict(row.values),
    }


def _row_from_dict(row: Json) -> Row:
    return Row(
        key=row["key"],
        label=row["label"],
        folder=row["folder"],
        config=row["config"],
        paper={name: (mean, error) for name, (mean, error) in row["paper"].items()},
        variants=tuple(_variant_from_dict(variant) for variant in row["variants"]),
        runs=tuple(_run_from_dict(run) for run in row["runs"]),
        versions=tuple(row.get("versions", [])),
        values=values_from_dict(row),
    )


def _variant_to_dict(variant: Variant) -> Json:
    return {
        "name": variant.name,
        "label": variant.shown,
        "method": variant.trains_by,
        "settings": dict(variant.settings),
    }


def _variant_from_dict(variant: Json) -> Variant:
    return Variant(variant["name"], variant["method"], variant["settings"], variant["label"])


def _run_from_dict(run: Json) -> RunResult:
    """Return a result, whose run may be anywhere by now."""
    return RunResult(**{**run, "num_clusters": tuple(run["num_clusters"])}, path=Path())


# --------------------------------------------------------------------- values of figures


def values_to_dict(values: FigureValues) -> Json:
    """Return what a figure needs as plain values, without what it does not need."""
    found = ((name, getattr(values, name)) for name in _FORMS)
    return {name: _FORMS[name][0](value) for name, value in found if value is not None}


def values_from_dict(row: Mapping[str, Any]) -> FigureValues:
    """Return what a row of plain values holds for a figure."""
    return FigureValues(
        **{name: read(row[name]) for name, (_, read) in _FORMS.items() if name in row}
    )


def _curves_to_list(curves: Sequence[Curve]) -> list[Json]:
    return [
        {
            "method": curve.method,
            "seed": curve.seed,
            "test_accuracy" if curve.is_test else "val_accuracy": [
                None if math.isnan(x) else round(x / 100, DECIMALS) for x in curve.accuracy
            ],
            "level": curve.level,
        }
        for curve in curves
    ]


def _curve_from_dict(curve: Json) -> Curve:
    is_test = "test_accuracy" in curve
    shares = curve["test_accuracy" if is_test else "val_accuracy"]
    accuracy = [math.nan if share is None else 100 * share for share in shares]
    return Curve(curve["method"], curve["seed"], accuracy, curve["level"], is_test)


def _curves_from_list(curves: list[Json]) -> list[Curve]:
    return [_curve_from_dict(curve) for curve in curves]


def _levels_from_dict(levels: Json) -> Levels:
    return Levels(**{**levels, "runs": [RunLevels(**run) for run in levels["runs"]]})


def _classes_to_dict(classes: ClassAccuracies) -> Json:
    pairs = ((BASELINE, classes.before), (classes.method, classes.after))
    return {
        "method": classes.method,
        "class_names": list(classes.class_names or ()),
        "accuracies": {
            name: [None if math.isnan(x) else x for x in accuracies.tolist()]
            for name, accuracies in pairs
        },
    }


def _classes_from_dict(classes: Json) -> ClassAccuracies:
    method = classes["method"]
    both = (classes["accuracies"][name] for name in (BASELINE, method))
    before, after = (np.array(accuracies, dtype=float) for accuracies in both)
    return ClassAccuracies(method, classes["class_names"], before, after)


def _confusion_to_dict(pair: ConfusionPair) -> Json:
    both = ((BASELINE, pair.before), (pair.method, pair.after))
    return {
        "method": pair.method,
        "class_names": pair.class_names and list(pair.class_names),
        "order": pair.order.tolist(),
        "edges": [list(level) for level in pair.edges],
        "counts": {name: counts.matrix.tolist() for name, counts in both if counts is not None},
    }


def _confusion_from_dict(pair: Json) -> ConfusionPair:
    method, names, edges = pair["method"], pair["class_names"], pair["edges"]
    before, after = (Confusions.from_matrix(pair["counts"][it]) for it in (BASELINE, method))
    return ConfusionPair(method, names, np.array(pair["order"]), edges, before, after)


def _hierarchies_to_dict(found: Sequence[NamedHierarchy]) -> Json:
    return {it.method: {"seed": it.seed, **it.hierarchy.to_dict()} for it in found}


def _hierarchies_from_dict(found: Json) -> list[NamedHierarchy]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The hierarchy of .* has no level above")
        return [
            NamedHierarchy(Hierarchy.from_dict(it), method, it.get("seed"))
            for method, it in found.items()
        ]


# How the fields of `FigureValues` are written and read.
_FORMS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "samples": (int, int),
    "curves": (_curves_to_list, _curves_from_list),
    "levels": (asdict, _levels_from_dict),
    "classes": (_classes_to_dict, _classes_from_dict),
    "confusion": (_confusion_to_dict, _confusion_from_dict),
    "hierarchies": (_hierarchies_to_dict, _hierarchies_from_dict),
}
