"""Contents of experiments with made-up numbers, and what figures of them hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from coarse2fine.experiments import figures
from coarse2fine.experiments.content import results_from_dict
from coarse2fine.runs.result import RunResult


def run(method: str, seed: int, accuracy: float, **changes: Any) -> dict[str, Any]:
    """One result, its accuracy in percent."""
    return {
        "method": method,
        "seed": seed,
        "accuracy": accuracy / 100,
        "val_accuracy": 0.4,
        "best_epoch": 10,
        "epochs": 20,
        "seconds": 1.0,
        "levelled_off": True,
        "curriculum_epochs": None,
        "num_clusters": [],
        "by_rule": {},
        "own_epochs": None,
        "val_samples": None,
        "hierarchy_epochs": None,
        "hierarchy_seconds": None,
        "with_class": {},
        **changes,
    }


def variant(name: str, label: str = "", **settings: Any) -> dict[str, Any]:
    method = name.split("-")[0]
    return {"name": name, "label": label or name, "method": method, "settings": settings}


def row(
    accuracies: Mapping[str, Sequence[float]] | None = None,
    label: str = "CNN, CIFAR-100, 10,000",
    *,
    variants: Sequence[dict[str, Any]] = (variant("continuous", "C2F"),),
    config: Mapping[str, Any] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A setting; the accuracies of each method are those of the seeds 0, 1, ..."""
    runs = [
        run(method, seed, accuracy)
        for method, found in (accuracies or {}).items()
        for seed, accuracy in enumerate(found)
    ]
    defaults = {"data": "cifar100", "model": "cnn", "curriculum_epochs": "reach-90", "epochs": 200}
    return {
        "key": "cifar100-cnn",
        "label": label,
        "folder": "cifar100-cnn-0",
        "config": {**defaults, **(config or {})},
        "paper": {},
        "variants": list(variants),
        "runs": runs,
        "versions": [],
        **more,
    }


def content(*rows: dict[str, Any], figure: str | None = None) -> dict[str, Any]:
    return {
        "format": "coarse2fine experiment",
        "version": 1,
        "experiment": "mine",
        "title": "Mine",
        "figure": figure,
        "scale": {"name": "full", "about": "made up"},
        "seeds": [0, 1, 2],
        "command": "c2f paper mine",
        "versions": {},
        "settings": list(rows),
    }


def stored_values(figure: str, runs: Sequence[RunResult]) -> dict[str, Any]:
    """What is stored of runs for a figure."""
    return figures.values_to_dict(figure, figures.figure_values(figure, runs))


def draw_figure(figure: str, content: dict[str, Any], width: float | None = None) -> Any:
    """The figure of a content, as it is drawn once the content is read."""
    results = results_from_dict({**content, "figure": figure})
    return figures.draw_figure(figure, results.rows, width)


def legend(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def lines(axes: Any) -> dict[str, list[tuple[float, float]]]:
    """The points of each line with a label."""
    return {
        line.get_label(): list(zip(*line.get_data(), strict=True))
        for line in axes.lines
        if not line.get_label().startswith("_")
    }
