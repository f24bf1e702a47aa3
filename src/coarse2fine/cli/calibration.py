"""`--accuracy`: how sure a run's model must be for an answer, found by samples it has not seen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .process import say

if TYPE_CHECKING:
    from ..data import Split
    from ..hierarchy import Hierarchy
    from ..prediction import LevelPredictor
    from ..runs.restore import Trained

Accuracy = Annotated[
    float | None,
    typer.Option(
        metavar="X",
        help="Answer with the finest class or cluster that the model is sure of, so that this "
        "share of the answers is right, with a confidence of 0.9.",
    ),
]
Calibrate = Annotated[
    str | None,
    typer.Option(
        metavar="DATA",
        help="Find by this labelled data how sure that is, which the model has not seen. "
        "Default: by the test samples of the run.",
    ),
]


def check_calibration(accuracy: float | None, calibrate: str | None) -> None:
    """Refuse data to calibrate by where nothing is to be calibrated."""
    if accuracy is None and calibrate is not None:
        raise ValueError("--calibrate is for --accuracy, which says what is to be kept.")


def level_predictor(
    trained: Trained,
    hierarchy: Hierarchy | None,
    accuracy: float,
    calibrate: str | None,
    folder: Path | None,
) -> LevelPredictor:
    """Return what answers at any level, and tell what it was calibrated by.

    Args:
        trained: The model.
        hierarchy: Of its classes.
        accuracy: The share of answers to be right.
        calibrate: Labelled data; None for the test samples of the run.
        folder: Where named sets lie.
    """
    from ..prediction import LevelPredictor

    if hierarchy is None:
        raise ValueError("--accuracy needs a hierarchy, and the run has none.")
    predictor = LevelPredictor(hierarchy, accuracy)  # checked before data is read
    samples = _held_out(trained, calibrate, folder)
    predictor.fit(trained.logits(samples), samples.targets)
    say(
        f"at least {predictor.accuracy:.6g} of the answers are right with a confidence of "
        f"{predictor.confidence}: {predictor.accuracy_:.2%} of {predictor.num_samples_} samples "
        f"at the threshold {predictor.threshold_:.4g}"
    )
    return predictor


def _held_out(trained: Trained, data: str | None, folder: Path | None) -> Split:
    """Return labelled samples that the model has not seen."""
    from ..runs.config import GIVEN
    from ..runs.directory import Run
    from ..runs.restorer import Restorer
    from .evaluate import classes_of, part_of_data

    if data is not None:
        return classes_of(part_of_data(trained, data, folder=folder), trained, "labelled")
    if trained.config.data == GIVEN:
        raise ValueError("the run's data were Python objects; name labelled data by --calibrate.")
    return Restorer(folder).data(Run(trained.path)).test.with_class()
