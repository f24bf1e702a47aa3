"""How each kind of model is trained, where the settings do not say otherwise.

A recipe is a `Config` of which only some settings are given, see `Config.with_recipe`.
"""

from __future__ import annotations

from dataclasses import replace

from ..runs.config import Config

_COMMON = Config(
    momentum=0.9,
    weight_decay=0.0,
    milestones=(),
    augment=False,
    normalise=False,
    val_share=0.2,
)
_ADAM = replace(_COMMON, optimiser="adam", learning_rate=1e-3)

# The paper's two recipes, and those for text and tables.
SMALL = replace(_ADAM, batch_size=512, epochs=200, patience=50)
BIG = replace(
    _COMMON,
    optimiser="sgd",
    learning_rate=0.1,
    batch_size=128,
    epochs=200,
    patience=0,
    weight_decay=5e-4,
    milestones=(3 / 7, 5 / 7),
    augment=True,
    normalise=True,
    val_share=0.1,
)
BAG = replace(_ADAM, learning_rate=3e-3, batch_size=128, epochs=40, patience=15)
TRANSFORMER = replace(_ADAM, batch_size=64, epochs=30, patience=10)
TABLE = replace(_ADAM, batch_size=64, epochs=100, patience=30, normalise=True)
RECIPES = {
    "cnn": SMALL,
    "resnet20": BIG,
    "resnet18": BIG,
    "resnet50": BIG,
    "wrn-28-10": BIG,
    "bag": BAG,
    "transformer": TRANSFORMER,
    "mlp": TABLE,
}


def recipe_for(model: str | None) -> Config:
    """Return the recipe of a model of ours; any other model gets the small one."""
    return RECIPES.get(model or "", SMALL)
