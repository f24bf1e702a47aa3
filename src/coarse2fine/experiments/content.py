"""What came out of an experiment, as plain values: all that its tables and figures need."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .._files import parse_json, write_atomically
from .._writing import writing
from ..errors import RunError
from ..training.result import BASELINE, RunResult
from ..training.run import RESULT
from .declaration import FULL, Setting
from .figures import FIGURES, find_figure
from .statistics import paired
from .tasks import expand

FORMAT, VERSION = "coarse2fine experiment", 1
Content = dict[str, Any]


def collect(
    setting: Setting, seeds: tuple[int, ...], store: Path, figure: str | None = None
) -> Content:
    """Return the results of a setting's trainings that are done.

    Args:
        setting: A row of an experiment.
        seeds: Those that are wanted.
        store: The directory that holds all runs.
        figure: What is to be drawn of them. Defaults to None.
    """
    tasks = expand((setting,), seeds, store)
    runs = [RunResult.load(task.path) for task in tasks if task.is_done]
    config = setting.config(None, seeds).to_dict()
    row = {
        "key": setting.key,
        "label": setting.label,
        "folder": setting.folder,
        "config": {name: value for name, value in config.items() if value is not None},
        "paper": {name: list(figures) for name, figures in setting.paper.items()},
        "variants": [
            {
                "name": variant.name,
                "label": variant.shown,
                "method": variant.trains_by,
                "settings": dict(variant.settings),
            }
            for variant in setting.variants
        ],
        "runs": [run.to_dict() for run in runs],
        "versions": _distinct(parse_json(run.path / RESULT)["versions"] for run in runs),
    }
    row["gains"] = {
        variant.name: paired(found).to_dict()
        for variant in setting.variants
        if (found := gains(row, variant.name))
    }
    if figure is not None:
        row |= find_figure(figure).needed(runs)
    return row


def _distinct(values: Iterable[Content]) -> list[Content]:
    found: list[Content] = []
    for value in values:
        if value not in found:
            found.append(value)
    return found


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


def store_content(path: Path, content: Content) -> None:
    """Write results to a file, and make its folder where there is none."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False)
    # A row of a matrix is one line, not one for each number.
    text = re.sub(r"\[\s+[-\d.eE,\s]+\]", lambda found: "".join(found[0].split()), text)
    write_atomically(path, text + "\n")


def read_content(path: Path) -> Content:
    """Read what `store_content` wrote."""
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
    return content


def accuracies(row: Content, name: str, rule: str | None = None) -> dict[int, float]:
    """Return the test accuracies of a variant in percent, by seed.

    Args:
        row: Of the content.
        name: Of the variant, or ``"baseline"``.
        rule: One of its rules of inference. Defaults to None: the one that counts.
    """
    runs = [run for run in row["runs"] if run["method"] == name]
    return {
        int(run["seed"]): 100 * float(run["accuracy"] if rule is None else run["by_rule"][rule])
        for run in runs
    }


def gains(row: Content, name: str, rule: str | None = None) -> list[float]:
    """Return how much better a variant is than the baseline of the same seed, in percent."""
    plain = accuracies(row, BASELINE)
    found = accuracies(row, name, rule)
    return [accuracy - plain[seed] for seed, accuracy in found.items() if seed in plain]


def rules(row: Content, name: str) -> Iterable[str]:
    """Return the further rules of inference that a variant was tested with."""
    first: dict[str, float] = next(
        (run["by_rule"] for run in row["runs"] if run["method"] == name), {}
    )
    return list(first)[1:]
