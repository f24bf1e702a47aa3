"""Everything that a run is set by."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from ..methods import PLAIN, find_method
from .config_checks import check_config

if TYPE_CHECKING:
    from ..methods.base import Need
    from .recipes import Recipe

GIVEN = "given"  # stands for a Python object
CANDIDATES = (5, 10, 20, 30, 40, 50)  # the paper's, for its big models


@dataclass(frozen=True)
class Config:
    """The settings of a comparison: what to train, on what, and how.

    Settings that are None are filled in by the model's recipe, see `Config.with_recipe`.

    Args:
        data: A set's name, a file, a folder or a hub name. Defaults to ``"given"``, which
            stands for data that are Python objects.
        train_size: See `coarse2fine.data.sample`, as for the next two. Defaults to None.
        val_share: Defaults to None.
        test_share: Defaults to 0.2.
        image_size: The side to which images are brought. Defaults to None: as they are.
        target: The column of the classes, in a table. Defaults to None: found by its name.
        text: The column of the text, in a table. Defaults to None: found by its name.
        model: A name, or ``package.module:callable``. Defaults to None: by the kind of data.
        head: The name of the model's final layer. Defaults to None: found by itself.
        methods: What is compared with the baseline, see `coarse2fine.methods.METHODS`; or
            one's own as ``package.module:Class``. Defaults to ``("continuous",)``.
        method_settings: What methods take beside, such as ``{"nbdt.weight": 10}``. Defaults
            to None.
        baseline: Whether to train the baseline too, even where it is not needed. Defaults
            to True.
        metric: How far apart classes are, see `Hierarchy.from_classifier`. Defaults to
            ``"embedding"``.
        linkage: See `cluster_distances`. Defaults to ``"single"``.
        hierarchy: A file or run to take the hierarchy from. Defaults to None: the baseline.
        hierarchy_model: Another, smaller model that is trained only to make the hierarchy.
            Defaults to None: the baseline.
        max_levels: The most levels that the hierarchy may have. Defaults to None.
        curriculum_epochs: T, or the rule that gives it: ``"reach-90"``, ``"best-epoch"`` or
            ``"search"``. Defaults to ``"reach-90"``.
        stage_epochs: The most epochs for each coarse level of the staged method. Defaults
            to None: `epochs`.
        epochs: The most epochs that baseline and curriculum alike may take.
        patience: Stop after so many epochs without a better validation accuracy, counted
            from the finest level on; 0 for never.
        batch_size: Of all processes together.
        optimiser: ``"adam"``, ``"adamw"`` or ``"sgd"``.
        learning_rate: At the start.
        momentum: Of SGD.
        weight_decay: Defaults to None.
        milestones: The shares of the epochs after which the learning rate is divided by 10.
        augment: Whether to crop and mirror images at random.
        normalise: Whether to bring channels or columns to mean 0 and deviation 1.
        accumulate: In how many parts a batch is computed. Defaults to 1.
        clip: The largest norm of a gradient. Defaults to None: any.
        precision: As Lightning Fabric names it. Defaults to ``"32-true"``.
        accelerator: As Lightning Fabric names it. Defaults to ``"auto"``.
        devices: How many, or ``"auto"``. Defaults to ``"auto"``.
        strategy: As Lightning Fabric names it. Defaults to ``"auto"``.
        track_test: Whether to note the test accuracy after every epoch too; nothing depends
            on it. Defaults to None: no.
        workers: How many processes read images that do not fit in memory. Defaults to 0.
        seeds: One run of everything for each. Defaults to ``(0,)``.
    """

    data: str = GIVEN
    train_size: int | float | None = None
    val_share: float | None = None
    test_share: float = 0.2
    image_size: int | None = None
    target: str | None = None
    text: str | None = None
    model: str | None = None
    head: str | None = None
    methods: tuple[str, ...] = ("continuous",)
    method_settings: dict[str, float] | None = None
    baseline: bool = True
    metric: str = "embedding"
    linkage: str = "single"
    hierarchy: str | None = None
    hierarchy_model: str | None = None
    max_levels: int | None = None
    curriculum_epochs: int | str = "reach-90"
    stage_epochs: int | None = None
    epochs: int | None = None
    patience: int | None = None
    batch_size: int | None = None
    optimiser: str | None = None
    learning_rate: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    milestones: tuple[float, ...] | None = None
    augment: bool | None = None
    normalise: bool | None = None
    accumulate: int = 1
    clip: float | None = None
    precision: str = "32-true"
    accelerator: str = "auto"
    devices: int | str = "auto"
    strategy: str = "auto"
    track_test: bool | None = None
    workers: int = 0
    seeds: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        for name in ("methods", "seeds", "milestones"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _as_tuple(value))
        if self.method_settings == {}:
            object.__setattr__(self, "method_settings", None)
        check_config(self)

    def with_recipe(self, recipe: Recipe) -> Config:
        """Return the settings with those that are None taken from a recipe."""
        given = dataclasses.asdict(recipe)
        filled = {name: value for name, value in given.items() if getattr(self, name) is None}
        return dataclasses.replace(self, **filled)

    def is_needed(self, need: Need) -> bool:
        """Whether any of the methods needs it, see `Method.needs`."""
        return any(need in find_method(method).needs for method in self.methods)

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> Config:
        """Return the settings that `to_dict` gave."""
        if not isinstance(settings, dict):
            raise TypeError(f"the settings must be a dict. Got {short(settings)}.")
        unknown = settings.keys() - {field.name for field in dataclasses.fields(cls)}
        if unknown:
            raise ValueError(f"there is no setting {short(min(unknown, key=str))}.")
        return cls(**settings)

    def __str__(self) -> str:
        set_values = {name: value for name, value in self.to_dict().items() if value is not None}
        width = max(map(len, set_values))
        return "\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in set_values.items())


CURRICULUM_SETTINGS = (
    "metric",
    "linkage",
    "hierarchy",
    "hierarchy_model",
    "max_levels",
    "curriculum_epochs",
    "stage_epochs",
    "method_settings",
)


def without_say(method: str) -> tuple[str, ...]:
    """Return the settings that a training by a method does not depend on.

    Examples:
        >>> without_say("continuous")
        ('methods', 'baseline')
    """
    whole = ("methods", "baseline")
    return (*whole, *CURRICULUM_SETTINGS) if method == PLAIN else whole


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple | range) else (value,)


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
