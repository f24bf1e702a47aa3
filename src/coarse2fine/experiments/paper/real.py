"""The paper's tables on CIFAR, Tiny-ImageNet and ImageNet, and its looks inside on CIFAR-100.

These are T, learning curves, confusion and hierarchies.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...runs.config import CANDIDATES
from ..declaration import FULL, Experiment, Published, Scale, Setting, Variant
from . import AS_PAPER, CONTINUOUS, STAGED_CURRICULUM, shapes
from .published import CNN_SIZES, COMPARISON, LARGE_SIZES, STAGED_GAINS, PublishedRow

LABELS = {
    "cifar10": "CIFAR-10",
    "cifar100-coarse": "CIFAR-100 Coarse",
    "cifar100": "CIFAR-100",
    "tiny-imagenet": "Tiny-ImageNet",
    "imagenet": "ImageNet",
}
MODELS = {
    "cnn": "CNN",
    "resnet20": "ResNet-20",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "wrn-28-10": "WRN-28-10",
}
WHOLE = {"cifar10": 50_000, "cifar100-coarse": 50_000, "cifar100": 50_000, "tiny-imagenet": 100_000}
ABOUT_SMALL = (
    "the CNN alone, early stopping after 20 epochs without a better validation accuracy instead "
    "of 50"
)


def compared(data: str) -> tuple[Variant, ...]:
    """Return what the paper compares its curriculum with, and the curriculum."""
    weight = 10.0 if data == "tiny-imagenet" else 1.0
    return (
        Variant("spl", label="SPL"),
        Variant("dp-l", label="DP-L"),
        Variant("dp-li", label="DP-LI"),
        Variant("multitask", label="Multitask"),
        Variant("nbdt", settings={"method_settings": {"nbdt.weight": weight}}, label="NBDT"),
        CONTINUOUS,
    )


def setting(
    data: str,
    size: int | float | None,
    model: str,
    variants: tuple[Variant, ...],
    paper: Published | None = None,
    **settings: Any,
) -> Setting:
    """Return a row for a data set, as the paper trains on it.

    Args:
        data: One of the data sets' names.
        size: How many images to train on; all of them are written as None.
        model: One of the models' names.
        variants: What is compared.
        paper: The paper's figures. Defaults to None.
        **settings: Others of `Config`.
    """
    count = WHOLE.get(data) if size is None else size
    shown = f"{count:.0%}" if isinstance(count, float) else f"{count:,}"
    if model != "cnn":  # the large models' T is searched for, then all images are trained on
        settings = {"curriculum_epochs": "search", "val_share": 0.1, **settings}
    whole = {"data": data, "model": model, "train_size": size, **AS_PAPER, **settings}
    label = f"{MODELS[model]}, {LABELS[data]}, {shown}"
    return Setting(label, whole, variants, paper or {})


def _rows(
    rows: tuple[PublishedRow, ...], variants: tuple[Variant, ...], **more: Any
) -> tuple[Setting, ...]:
    return tuple(
        setting(row.data, row.size, row.model, variants, row.figures, **more) for row in rows
    )


def _only_compared(row: Setting) -> Setting:
    """Leave out what the paper has no figure for: its authors' large models."""
    variants = compared(str(row.settings["data"]))
    if row.settings["model"] != "cnn":
        variants = tuple(variant for variant in variants if variant.name in row.paper)
    return replace(row, variants=variants)


def _comparison() -> tuple[Setting, ...]:
    return tuple(_only_compared(row) for row in _rows(COMPARISON, ()))


def _small_comparison() -> tuple[Setting, ...]:
    sizes = (10_000, 5_000)
    rows = tuple(row for row in STAGED_GAINS if row.data == "cifar100" and row.size in sizes)
    return _rows(rows, (*compared("cifar100"), STAGED_CURRICULUM))


SIZE = Experiment(
    title="Accuracy and gain over data sets, sizes and models",
    scales={
        FULL: Scale("as in the paper", _rows((*CNN_SIZES, *LARGE_SIZES), (CONTINUOUS,))),
        "small": Scale(ABOUT_SMALL, _rows(CNN_SIZES, (CONTINUOUS,), patience=20)),
    },
)

METHODS = Experiment(
    title="The curriculum beside other methods",
    scales={
        FULL: Scale("as in the paper", _comparison()),
        "small": Scale(
            "the CNN on 10,000 and 5,000 images of CIFAR-100, for which the paper has figures "
            "of its own curricula alone",
            _small_comparison(),
        ),
    },
    figure="gains",
)

STAGED = Experiment(
    title="The staged and the continuous curriculum",
    scales={
        FULL: Scale("as in the paper", _rows(STAGED_GAINS, (STAGED_CURRICULUM, CONTINUOUS))),
        "small": Scale(
            ABOUT_SMALL, _rows(STAGED_GAINS, (STAGED_CURRICULUM, CONTINUOUS), patience=20)
        ),
    },
)

IMAGENET = Experiment(
    title="ResNet-18 on parts of ImageNet",
    scales={
        FULL: Scale(
            "as in the paper, which shows a figure without numbers; images of 64×64 pixels, as "
            "the paper does not say how large they were",
            tuple(
                setting("imagenet", share, "resnet18", (CONTINUOUS,), image_size=64)
                for share in (0.01, 0.05, 0.1)
            ),
        ),
        "small": Scale(
            "1% of the images alone, of 32×32 pixels, for 60 epochs",
            (setting("imagenet", 0.01, "resnet18", (CONTINUOUS,), image_size=32, epochs=60),),
        ),
    },
    figure="sizes",
)


# ------------------------------------------------------------------------- looks inside

LENGTHS = CANDIDATES  # those of the paper's figure are not given
FEWER = "10,000 images instead of 50,000"
ABOUT_SMALL_CIFAR = f"{FEWER}, early stopping after 20 epochs without a better validation accuracy"
BOTH = (CONTINUOUS, STAGED_CURRICULUM)
SHAPES = (shapes.DISTANCE, shapes.SIMILARITY)


def _length(epochs: int) -> Variant:
    name = f"continuous-T{epochs:02d}"
    return Variant(name, "continuous", {"curriculum_epochs": epochs}, f"T = {epochs}")


def _cifar100(size: int | None, *variants: Variant, **settings: Any) -> tuple[Setting, ...]:
    return (setting("cifar100", size, "cnn", variants, **settings),)


SMALL_CIFAR = (
    setting("cifar10", 10_000, "cnn", (CONTINUOUS,)),
    *_cifar100(10_000, CONTINUOUS),
)

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
        FULL: Scale("as in the paper", _cifar100(None, *BOTH, track_test=True)),
        "small": Scale(ABOUT_SMALL_CIFAR, _cifar100(10_000, *BOTH, track_test=True, patience=20)),
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
        "small": Scale(f"CIFAR-10 and CIFAR-100, {FEWER}", SMALL_CIFAR),
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
                shapes.shapes(500, SHAPES),
            ),
        ),
        "small": Scale(
            f"CIFAR-10 and CIFAR-100, {FEWER}; and Shapes, {shapes.ABOUT_SMALL}",
            (*SMALL_CIFAR, shapes.shapes(150, SHAPES, **shapes.SMALL)),
        ),
    },
    figure="hierarchy",
    num_seeds=1,
)
