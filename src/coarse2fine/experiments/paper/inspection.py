"""The paper's looks inside: T, learning curves, confusion and hierarchies, on CIFAR-100."""

from __future__ import annotations

from typing import Any

from ...runs.config import CANDIDATES
from ..declaration import FULL, Experiment, Scale, Setting, Variant
from .curricula import CONTINUOUS
from .real import setting
from .shapes import ABOUT_SMALL, DISTANCE, SIMILARITY, SMALL, shapes

LENGTHS = CANDIDATES  # those of the paper's figure are not given
FEWER = "10,000 images instead of 50,000"
ABOUT_SMALL_CIFAR = f"{FEWER}, early stopping after 20 epochs without a better validation accuracy"


def _length(epochs: int) -> Variant:
    name = f"continuous-T{epochs:02d}"
    return Variant(name, "continuous", {"curriculum_epochs": epochs}, f"T = {epochs}")


def _cifar100(size: int | None, *variants: Variant, **settings: Any) -> tuple[Setting, ...]:
    return (setting("cifar100", size, "cnn", variants, **settings),)


SENSITIVITY = Experiment(
    title="Accuracy against the curriculum's length T on CIFAR-100",
    scales={
        FULL: Scale("as in the paper", _cifar100(None, CONTINUOUS, *map(_length, LENGTHS))),
        "small": Scale(
            ABOUT_SMALL_CIFAR,
            _cifar100(10_000, CONTINUOUS, *map(_length, LENGTHS), track_test=True, patience=20),
        ),
    },
    figure="lengths",
)

CURVES = Experiment(
    title="Test accuracy after every epoch on CIFAR-100",
    scales={
        FULL: Scale("as in the paper", _cifar100(None, CONTINUOUS, track_test=True)),
        "small": Scale(
            ABOUT_SMALL_CIFAR, _cifar100(10_000, CONTINUOUS, track_test=True, patience=20)
        ),
    },
    figure="curves",
)

CONFUSION = Experiment(
    title="Confusion, classes in the order of the hierarchy",
    scales={
        FULL: Scale(
            "as in the paper, and CIFAR-100 too",
            (setting("cifar10", None, "cnn", (CONTINUOUS,)), *_cifar100(None, CONTINUOUS)),
        ),
        "small": Scale(f"CIFAR-100, {FEWER}", _cifar100(10_000, CONTINUOUS)),
    },
    figure="confusion",
)

HIERARCHY = Experiment(
    title="The hierarchies",
    scales={
        FULL: Scale(
            "as in the paper",
            (
                setting("cifar10", None, "cnn", (CONTINUOUS,)),
                *_cifar100(None, CONTINUOUS),
                shapes(500, (DISTANCE, SIMILARITY)),
            ),
        ),
        "small": Scale(
            f"CIFAR-100, {FEWER}; and Shapes, {ABOUT_SMALL}",
            (*_cifar100(10_000, CONTINUOUS), shapes(150, (DISTANCE, SIMILARITY), **SMALL)),
        ),
    },
    figure="hierarchy",
    num_seeds=1,
)
