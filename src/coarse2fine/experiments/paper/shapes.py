"""The paper's experiments on Shapes, which is drawn on the spot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..declaration import FULL, Experiment, Published, Scale, Setting, Variant
from . import AS_PAPER, CONTINUOUS, STAGED_CURRICULUM

CLASSES = 30

SMALL: Mapping[str, Any] = {"image_size": 32, "batch_size": 64, "epochs": 90, "patience": 20}
ABOUT_SMALL = (
    "reduced: images of 32×32 pixels instead of 64×64, fewer of them, batches of 64 instead of "
    "512, at most 90 epochs, early stopping after 20 without a better validation accuracy "
    "instead of 50"
)


def _by_metric(metric: str, label: str) -> Variant:
    return Variant(f"continuous-{metric}", "continuous", {"metric": metric}, label)


DISTANCE = Variant("continuous", label="EmbeddingDist")
SIMILARITY = _by_metric("embedding_similarity", "EmbeddingSim")
MEASURES = (
    _by_metric("confusion_distance", "ConfusionDist"),
    DISTANCE,
    _by_metric("confusion", "Confusion"),
    SIMILARITY,
    _by_metric("random", "Random"),
)
PUBLISHED: Published = {
    "baseline": (39.36, 0.52),
    "continuous-confusion_distance": (13.49, 1.03),
    "continuous": (15.70, 1.34),
    "continuous-confusion": (0.04, 1.71),
    "continuous-embedding_similarity": (-4.46, 1.84),
    "continuous-random": (-0.32, 1.85),
}


def shapes(
    per_class: int,
    variants: tuple[Variant, ...],
    paper: Published | None = None,
    **settings: Any,
) -> Setting:
    """Return a row on Shapes with so many images of each class.

    Args:
        per_class: To train and validate on.
        variants: What is compared.
        paper: The paper's figures. Defaults to None.
        **settings: Others of `Config`.
    """
    size = per_class * CLASSES
    whole = {"data": "shapes", "model": "cnn", "train_size": size, **AS_PAPER, **settings}
    return Setting(f"Shapes, {per_class:,} a class", whole, variants, paper or {})


def _sizes(per_class: Iterable[int], **settings: Any) -> tuple[Setting, ...]:
    return tuple(shapes(size, (CONTINUOUS, STAGED_CURRICULUM), **settings) for size in per_class)


SIZE = Experiment(
    title="Accuracy against the number of training images on Shapes",
    scales={
        FULL: Scale(
            "as in the paper, whose sizes are only in a figure", _sizes((50, 100, 200, 500, 1000))
        ),
        "small": Scale(ABOUT_SMALL, _sizes((40, 75, 150), **SMALL)),
    },
    figure="sizes",
)

METRICS = Experiment(
    title="The five distances on Shapes",
    scales={
        FULL: Scale("as in the paper", (shapes(500, MEASURES, PUBLISHED),)),
        "small": Scale(ABOUT_SMALL, (shapes(150, MEASURES, PUBLISHED, **SMALL),)),
    },
    figure="gains",
)
