"""How far one can depend on the curriculum: the same settings on images, sentences and tables.

It is not of the paper. The settings of the adaptive curriculum were chosen by validation accuracy
on `CHOSEN_ON` alone; the other sets were trained on once, afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..declaration import FULL, Experiment, Scale, Setting, Variant
from . import CONTINUOUS, PAPER_CURRICULUM, shapes
from .real import setting

CHOSEN_ON = ("shapes-cnn-4500", "cifar100-cnn-5000", "clinc150-bag")

SETTINGS: Mapping[str, Any] = {"curriculum_epochs": "adaptive"}
ADAPTIVE = Variant("adaptive", "continuous", SETTINGS)


def _with_variants(row: Setting, hierarchy_epochs: int) -> Setting:
    """Return a row with what is compared in all of them.

    Args:
        row: A setting.
        hierarchy_epochs: Of the short training that takes the place of the baseline, about a
            fifth of the epochs of a whole one.
    """
    short = {**SETTINGS, "hierarchy_epochs": hierarchy_epochs}
    one = Variant("adaptive-one", "continuous", short, "adaptive, one training")
    return replace(row, variants=(CONTINUOUS, ADAPTIVE, one), chosen_among=(ADAPTIVE.name,))


def _other(label: str, data: str, model: str) -> Setting:
    """Return a row of sentences or of a table."""
    return Setting(label, {"data": data, "model": model, **PAPER_CURRICULUM}, ())


def _by(name: str, label: str, **settings: Any) -> Variant:
    """Return the adaptive curriculum with other levels."""
    return Variant(f"adaptive-{name}", "continuous", {**SETTINGS, **settings}, label)


LEVELS_TRIED = (
    ADAPTIVE,
    _by("average", "average linkage", linkage="average"),
    _by("complete", "complete linkage", linkage="complete"),
    _by("centred", "vectors from their mean", metric="embedding_centred"),
    _by("half", "no cluster with over half of the classes", max_cluster_share=0.5),
)

SCALES = {
    FULL: Scale(
        "images by the paper's CNN and recipe, Shapes reduced; sentences and tables by the "
        "default models",
        (
            _with_variants(shapes.shapes(150, (), **shapes.SMALL), 12),
            _with_variants(setting("cifar100", 5_000, "cnn", ()), 16),
            _with_variants(setting("cifar100", 10_000, "cnn", ()), 16),
            _with_variants(setting("cifar10", 10_000, "cnn", ()), 16),
            _with_variants(_other("bag of words, CLINC150", "clinc150", "bag"), 6),
            _with_variants(_other("bag of words, BANKING77", "banking77", "bag"), 6),
            _with_variants(_other("bag of words, TREC", "trec", "bag"), 6),
            _with_variants(_other("MLP, digits", "digits", "mlp"), 12),
            _with_variants(_other("MLP, made table of 50 classes", "made-table", "mlp"), 12),
        ),
    )
}

DEPENDABLE = Experiment("How far one can depend on the curriculum", SCALES, figure="gains")
LEVELS = Experiment(
    "Which levels are worth having",
    {
        FULL: Scale(
            "the sets that settings were chosen on",
            tuple(
                replace(row, variants=LEVELS_TRIED, chosen_among=())
                for row in SCALES[FULL].settings
                if row.key in CHOSEN_ON
            ),
        )
    },
    figure="gains",
)
WORTH = Experiment("How well a level was learned, against the gain", SCALES, figure="worth")
