"""Finished run directories made of any predictions, without training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coarse2fine import Config, Hierarchy, RunResult
from coarse2fine.runs.directory import HIERARCHY, RESULT
from coarse2fine.runs.writer import RunWriter, provenance

WITH_LEVELS = ("continuous", "staged", "multitask")


def make_run(
    path: Path,
    *,
    method: str = "continuous",
    seed: int = 0,
    hierarchy: Hierarchy | None = None,
    predictions: Any,
    targets: Any,
    class_names: tuple[str, ...] | None = None,
    epochs: int = 4,
    own_epochs: int | None = None,
    hierarchy_epochs: int | None = None,
    hierarchy_seconds: float | None = None,
    seconds: float = 10.0,
    levelled_off: bool = True,
    val_accuracy: float | None = None,
    best_epoch: int | None = None,
    curve: list[float | None] | None = None,
    track_test: bool = False,
    kind: str = "table",
    fingerprint: str = "made",
    by_rule: dict[str, float] | None = None,
    command: str = "c2f train made.csv",
    is_done: bool = True,
    **settings: Any,
) -> RunResult | None:
    """Write a run as a training would have left it, and return its result.

    Args:
        path: The run directory; a comparison holds them as seed-N/METHOD.
        method: ``"baseline"``, or the name of a method.
        seed: Of the run.
        hierarchy: What it was trained with; its files are written only where there is one.
        predictions: The predicted classes of the test samples; they give the accuracy.
        targets: Their true classes.
        class_names: Defaults to the hierarchy's, else to "class 0", "class 1", …
        epochs: How many lines the metrics have; the levels rise evenly over them.
        own_epochs: After how many of them a baseline had stopped by itself.
        hierarchy_epochs: How many more a training had that was only for the hierarchy.
        hierarchy_seconds: How long that took.
        seconds: How long all of them took.
        levelled_off: Whether the best epoch was not among the last.
        val_accuracy: On validation samples, as a share; defaults to that there are none.
        best_epoch: Defaults to one in the middle, or the last where it has not levelled off.
        curve: The accuracy of each epoch, as a share; defaults to a rise up to the result.
        track_test: Whether the curve is that of the test samples.
        kind: Of the inputs; ``"image"`` has the report look for images.
        fingerprint: Of the data, which must fit for these images to be shown.
        by_rule: Accuracies by rules of inference.
        command: That began it.
        is_done: Whether it has a result; without, None is returned.
        **settings: Of `Config`, such as data, model or learning_rate.
    """
    predictions, targets = np.asarray(predictions), np.asarray(targets)
    names = class_names or (hierarchy and hierarchy.class_names)
    if names is None:
        count = hierarchy.num_classes if hierarchy else int(targets.max()) + 1
        names = tuple(f"class {index}" for index in range(count))
    run = RunWriter(path)
    config = Config(**{"model": "cnn", "epochs": epochs, **settings, "seeds": (seed,)})
    data = {
        "kind": kind,
        "class_names": names,
        "columns": (),
        "input_shape": (3,),
        "samples": [len(targets), 0, len(targets)],
        "fingerprint": fingerprint,
        "transform": {"mean": (), "std": (), "padding": 0, "flip": False},
    }
    trained_by = "plain" if method == "baseline" else method
    run.begin({**provenance(config), "command": command, "method": trained_by, "data": data})
    if hierarchy is not None:
        hierarchy.save(path / HIERARCHY)
    accuracy = float((predictions == targets).mean())
    depth = len(hierarchy.levels) if hierarchy else 1
    for epoch in range(epochs):
        share = accuracy * (epoch + 1) / epochs if curve is None else curve[epoch]
        noted = {"test_accuracy" if track_test else "accuracy": share}
        level = min(depth - 1, epoch * depth // epochs)
        run.log({"stage": 0, "epoch": epoch + 1, "level": level, "loss": 1.0, **noted})
    if not is_done:
        return None
    result = RunResult(
        method=method,
        seed=seed,
        accuracy=accuracy,
        val_accuracy=val_accuracy,
        best_epoch=best_epoch or (max(epochs // 2, 1) if levelled_off else epochs),
        epochs=epochs,
        seconds=seconds,
        levelled_off=levelled_off,
        curriculum_epochs=max(epochs // 2, 1) if method == "continuous" else None,
        num_clusters=hierarchy.num_clusters if hierarchy else (),
        path=path,
        by_rule=by_rule or {},
        own_epochs=own_epochs,
        hierarchy_epochs=hierarchy_epochs,
        hierarchy_seconds=hierarchy_seconds,
    )
    (path / "checkpoint").mkdir(exist_ok=True)
    tensors = {"test.predictions": predictions, "test.targets": targets}
    stored = {name: torch.as_tensor(value, dtype=torch.int64) for name, value in tensors.items()}
    run.finish({"weight": torch.zeros(1)}, {}, stored, result.to_dict())
    return result


def older(path: Path) -> Path:
    """Have a run be as those were whose results had no checksums, and return its folder."""
    content = json.loads((path / RESULT).read_text())
    (path / RESULT).write_text(json.dumps({"result": content["result"]}))
    return path


def make_comparison(
    path: Path,
    hierarchy: Hierarchy,
    *,
    methods: dict[str, float],
    seeds: tuple[int, ...] = (0, 1, 2),
    samples: int = 10,
    **options: Any,
) -> Path:
    """Write a run of every method and seed, whose mistakes mostly stay in the same cluster.

    Args:
        path: Of the comparison.
        hierarchy: Of the methods that train with one.
        methods: How many of the test samples each gets right, about, as a share.
        seeds: Of the runs.
        samples: How many test samples each class has.
        **options: See `make_run`.
    """
    targets = np.repeat(np.arange(hierarchy.num_classes), samples)
    for seed in seeds:
        for number, (method, share) in enumerate(methods.items()):
            rng = np.random.default_rng((seed, number))
            make_run(
                path / f"seed-{seed}" / method,
                method=method,
                seed=seed,
                hierarchy=hierarchy if method in WITH_LEVELS else None,
                predictions=likely(targets, hierarchy, share, rng),
                targets=targets,
                class_names=hierarchy.class_names,
                **options,
            )
    return path


def likely(targets: Any, hierarchy: Hierarchy, share: float, rng: np.random.Generator) -> Any:
    """Predictions of which a share is right; half of the others are near by in the hierarchy."""
    order = np.argsort(hierarchy.levels[0], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    near = order[(place[targets] + rng.integers(1, 3, len(targets))) % len(order)]
    far = rng.integers(0, len(order), len(targets))
    wrong = np.where(rng.random(len(targets)) < 0.5, near, far)
    return np.where(rng.random(len(targets)) < share, targets, wrong)
