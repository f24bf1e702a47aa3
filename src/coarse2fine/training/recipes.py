"""How each kind of model is trained, where the settings do not say otherwise."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """How a kind of model is trained, where the settings do not say otherwise.

    Args:
        optimiser: See `Config`, as for all that follow.
        learning_rate: See `Config`.
        batch_size: See `Config`.
        epochs: See `Config`.
        patience: See `Config`.
        momentum: Defaults to 0.9.
        weight_decay: Defaults to 0.0.
        milestones: Defaults to none.
        augment: Defaults to False.
        normalise: Defaults to False.
        val_share: Defaults to 0.2.
    """

    optimiser: str
    learning_rate: float
    batch_size: int
    epochs: int
    patience: int
    momentum: float = 0.9
    weight_decay: float = 0.0
    milestones: tuple[float, ...] = ()
    augment: bool = False
    normalise: bool = False
    val_share: float = 0.2


# The paper's two recipes, and those for text and tables.
SMALL = Recipe("adam", 1e-3, batch_size=512, epochs=200, patience=50)
BIG = Recipe(
    "sgd",
    0.1,
    batch_size=128,
    epochs=200,
    patience=0,
    weight_decay=5e-4,
    milestones=(3 / 7, 5 / 7),
    augment=True,
    normalise=True,
    val_share=0.1,
)
BAG = Recipe("adam", 3e-3, batch_size=128, epochs=40, patience=15)
TRANSFORMER = Recipe("adam", 1e-3, batch_size=64, epochs=30, patience=10)
TABLE = Recipe("adam", 1e-3, batch_size=64, epochs=100, patience=30, normalise=True)
RECIPES = {
    "cnn": SMALL,
    "resnet18": BIG,
    "resnet50": BIG,
    "wrn-28-10": BIG,
    "bag": BAG,
    "transformer": TRANSFORMER,
    "mlp": TABLE,
}


def recipe_for(model: str | None) -> Recipe:
    """Return the recipe of a model of ours; any other model gets the small one."""
    return RECIPES.get(model or "", SMALL)
