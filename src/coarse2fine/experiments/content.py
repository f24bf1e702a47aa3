"""The file of an experiment's results: the one place where they are read and written as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._util.files import Json, parse_json, write_atomically, writing
from ..errors import RunError
from ..runs.result import RunResult
from ..runs.statistics import paired
from .declaration import CHOSEN, FULL, Variant
from .figures import FIGURES, values_from_dict, values_to_dict
from .pooling import pooled
from .results import Results, Row

FORMAT, VERSION = "coarse2fine experiment", 1


# ------------------------------------------------------------------------------- files


def file_of(
    name: str,
    scale: str,
    folder: Path,
    only: Sequence[str] = (),
    epochs: int | None = None,
    seeds: Sequence[int] = (),
) -> Path:
    """Return where an experiment's results are kept.

    Args:
        name: Of the experiment.
        scale: Of the experiment.
        folder: That holds it.
        only: The part of it that was asked for. Defaults to none: all.
        epochs: Instead of those declared. Defaults to None.
        seeds: Those that were asked for; they are named unless they are the first ones. Defaults
            to none.

    Examples:
        >>> file_of("methods", "full", Path()).name
        'methods.json'
        >>> file_of("methods", "small", Path(), only=["nbdt", "dp-*"], epochs=3).name
        'methods-small-3-epochs-only-dp-nbdt.json'
        >>> file_of("methods", "full", Path(), seeds=[3, 4]).name
        'methods-seeds-3-4.json'
    """
    parts = [name.replace(":", "."), *([scale] if scale != FULL else [])]
    parts += [f"{epochs}-epochs"] if epochs is not None else []
    parts += ["only", *sorted(only)] if only else []
    if tuple(seeds) != tuple(range(len(seeds))):
        parts += ["seeds", *map(str, seeds)]
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


def read_all(folder: Path) -> list[Results]:
    """Read the results of every experiment that a folder has; other files are left aside."""
    if not folder.is_dir():
        raise RunError(f"there is no folder {folder}; name one that holds results.")
    parts: dict[tuple[str, str, str], list[Results]] = {}
    for path in sorted(folder.glob("*.json"), key=lambda path: path.stem):
        if _has_results(path):
            results = read_results(path)
            parts.setdefault((results.experiment, results.scale, results.about), []).append(results)
    return [pooled(found) for found in parts.values()]


def _has_results(path: Path) -> bool:
    """Whether a file has an experiment's results, or did before it was damaged."""
    try:
        content: Any = parse_json(path)
    except ValueError:
        return True  # reading it says what is wrong
    return isinstance(content, dict) and content.get("format") == FORMAT


def gather_results(
    name: str,
    scale: str,
    folder: Path,
    only: Sequence[str] = (),
    epochs: int | None = None,
) -> Results:
    """Read all that a folder has of an experiment, which may have been run in parts.

    Args:
        name: Of the experiment.
        scale: Of the experiment.
        folder: Where its results are.
        only: The part of it that was asked for. Defaults to none: all that the folder has.
        epochs: See `file_of`. Defaults to None.
    """
    first = file_of(name, scale, folder, only, epochs)
    parts = sorted(folder.glob(f"{first.stem}-seeds-*.json"))
    if not only and epochs is None:
        parts += sorted(folder.glob(f"{first.stem}-only-*.json"))
    found = [path for path in (first, *parts) if path.is_file()] or [first]
    return pooled([read_results(path) for path in found])


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
        "settings": [_row_to_dict(row, results.figure) for row in results.rows],
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
        rows=tuple(_row_from_dict(row, content) for row in content["settings"]),
    )


def _row_to_dict(row: Row, figure: str | None) -> Json:
    return {
        "key": row.key,
        "label": row.label,
        "folder": row.folder,
        "config": dict(row.config),
        "paper": {name: list(figures) for name, figures in row.paper.items()},
        "variants": [_variant_to_dict(variant) for variant in row.variants],
        "runs": [run.to_dict() for run in row.runs],
        "versions": [dict(versions) for versions in row.versions],
        **({"chosen_among": list(row.chosen_among)} if row.chosen_among else {}),
        **({"cut": row.cut} if row.cut else {}),
        # For those who read the file: here they are computed from the runs.
        "gains": {
            name: paired(gains).to_dict()
            for name in (*(variant.name for variant in row.variants), CHOSEN)
            if (gains := row.gains(name))
        },
        **values_to_dict(figure, row.values),
    }


def _row_from_dict(row: Json, content: Json) -> Row:
    return Row(
        key=row["key"],
        label=row["label"],
        folder=row["folder"],
        config=row["config"],
        paper={name: (mean, error) for name, (mean, error) in row["paper"].items()},
        variants=tuple(_variant_from_dict(variant) for variant in row["variants"]),
        runs=tuple(RunResult.from_dict(run, Path()) for run in row["runs"]),  # anywhere by now
        versions=tuple(row.get("versions", [])),
        chosen_among=tuple(row.get("chosen_among", [])),
        cut=row.get("cut", 0),
        seeds=tuple(content["seeds"]),
        values=values_from_dict(content["figure"], row),
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
