"""Everything that a run is set by, each setting declared once.

The checks, the documentation of `Config` and the options of ``c2f train`` are made from what is
declared here; their order is that of the options.
"""

# Annotations are evaluated as they are read, unlike elsewhere: `config_fields` needs them anyway,
# and to evaluate them later would cost every command some milliseconds.

import dataclasses
from dataclasses import KW_ONLY, dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

from .._util.files import Json
from ..methods import PLAIN, find_method, weighs_classes
from . import parsers, rules
from .settings import Part, config_fields, documented, setting

if TYPE_CHECKING:
    from ..methods.base import Need

GIVEN = "given"  # stands for a Python object
CANDIDATES = (5, 10, 20, 30, 40, 50)  # the paper's, for its big models
_BY_RECIPE = "by the model's recipe"
_BY_NAME = "found by its name"
_BY_BASELINE = "made from the baseline"


@documented
@dataclass(frozen=True)
class Config:
    """The settings of a comparison: what to train, on what, and how.

    Settings that are None may be filled in by the model's recipe, see `Config.with_recipe`.
    """

    data: str = setting(
        GIVEN,
        "data",
        "A set's name, a file, a folder or a hub name.",
        about="A set's name, a file, a folder or a hub name; ``'given'`` stands for data that "
        "are Python objects.",
        metavar="DATA",
    )
    _: KW_ONLY
    model: str | None = setting(
        None,
        "training",
        "cnn, resnet18, …, or package.module:callable.",
        about="A name, or ``package.module:callable``.",
        unset="by the kind of data",
    )
    methods: tuple[str, ...] = setting(
        ("continuous",),
        "comparison",
        "continuous (the default), staged, spl, dp-l, dp-li, multitask, nbdt, or "
        "package.module:Class; may be repeated.",
        rules.different_methods,
        about="What is compared with the baseline, see `coarse2fine.methods.METHODS`; or one's "
        "own as ``package.module:Class``.",
        option="--method",
        repeats=True,
    )
    method_settings: dict[str, float] | None = setting(  # noqa: RUF009, it is a field
        None,
        "curriculum",
        "What a method takes: nbdt.weight=10; repeatable.",
        rules.taken_by_methods,
        about="What methods take beside, such as ``{'nbdt.weight': 10}``.",
        metavar="NAME=X",
        option="--set",
        parse=parsers.method_settings,
        repeats=True,
    )
    metric: str = setting(
        "embedding",
        "curriculum",
        "embedding, embedding_similarity, confusion, confusion_distance or random.",
        rules.one_of_literal("coarse2fine.distances:Metric"),
        about="How far apart classes are, see `Hierarchy.from_classifier`.",
    )
    linkage: str = setting(
        "single",
        "curriculum",
        "single, average or complete.",
        rules.one_of_literal("coarse2fine.clustering:Linkage"),
        about="How far apart clusters are, see `cluster_distances`.",
    )
    hierarchy: str | None = setting(
        None,
        "curriculum",
        "Take the hierarchy from it: see c2f hierarchy.",
        about="A file or run to take the hierarchy from.",
        unset=_BY_BASELINE,
        metavar="FILE|RUN",
    )
    hierarchy_model: str | None = setting(
        None, "curriculum", "Another model, trained only to make the hierarchy.", unset=_BY_BASELINE
    )
    max_levels: int | None = setting(
        None, "curriculum", "The most levels to train on.", rules.at_least(2), unset="any number"
    )
    baseline: bool = setting(
        True,
        "comparison",
        "Whether to train it even where it is not needed.",
        about="Whether to train the baseline too, even where it is not needed.",
    )
    epochs: int | None = setting(
        None,
        "training",
        "The most epochs of each training.",
        rules.at_least(1),
        about="The most epochs that baseline and curriculum alike may take.",
        unset=_BY_RECIPE,
    )
    curriculum_epochs: int | str = setting(
        "reach-90",
        "curriculum",
        "T; or by reach-90, best-epoch or search.",
        rules.epochs_or_one_of("reach-90", "best-epoch", "search"),
        about="T, or the rule that gives it: ``'reach-90'``, ``'best-epoch'`` or ``'search'``.",
        metavar="N|RULE",
        parse=parsers.number_or_word,
    )
    stage_epochs: int | None = setting(
        None,
        "curriculum",
        "The most epochs of each coarse level, if staged.",
        rules.at_least(1),
        unset="`epochs`",
    )
    train_size: int | float | None = setting(
        None,
        "data",
        "Train on fewer, balanced: 10000, 0.05 or 5%.",
        about="How many samples to train on, or which share of them, see "
        "`coarse2fine.data.sample`.",
        unset="all",
        metavar="N|SHARE",
        parse=parsers.size,
    )
    val_share: float | None = setting(
        None,
        "data",
        "Of these, for validation.",
        rules.share,
        about="The share of these that is kept for validation.",
        unset=_BY_RECIPE,
    )
    test_share: float = setting(
        0.2,
        "data",
        "Of all, for testing, if the data has no test part.",
        rules.share,
        about="The share of all samples that is kept for testing, if the data has no test part.",
    )
    stratify: bool = setting(
        True,
        "data",
        "Validate and test on each class's share.",
        about="Whether every class keeps its share of the validation and test samples; False "
        "draws from all samples alike.",
    )
    image_size: int | None = setting(
        None, "data", "The side to bring images to.", rules.at_least(1), unset="as they are"
    )
    target: str | None = setting(None, "data", "The column of the classes.", unset=_BY_NAME)
    text: str | None = setting(None, "data", "The column of the text.", unset=_BY_NAME)
    seeds: tuple[int, ...] = setting(
        (0,),
        "randomness",
        "How many, from 0; or which, as 0,1,2 (7, for seed 7 alone).",
        rules.different_from_zero_on,
        about="One run of everything for each.",
        metavar="N|LIST",
        parse=parsers.seeds,
    )
    batch_size: int | None = setting(
        None, "training", "Of all processes together.", rules.at_least(1), unset=_BY_RECIPE
    )
    optimiser: str | None = setting(
        None,
        "training",
        "adam, adamw or sgd.",
        rules.one_of("adam", "adamw", "sgd"),
        about="``'adam'``, ``'adamw'`` or ``'sgd'``.",
        unset=_BY_RECIPE,
    )
    learning_rate: float | None = setting(
        None, "training", "At the start.", rules.more_than_zero, unset=_BY_RECIPE
    )
    momentum: float | None = setting(
        None, "training", "Of sgd.", rules.at_least(0), unset=_BY_RECIPE
    )
    class_weights: str | None = setting(
        None,
        "training",
        "Count classes in the training loss: balanced makes rare classes count as much as frequent "
        "ones.",
        rules.one_of("balanced"),
        about="How much the classes count in the training loss: ``'balanced'`` weighs each sample "
        "by n / (K n_k), for K classes of which its own has n_k of the n training samples, so "
        "that every class counts the same.",
        unset="every sample counts the same",
        metavar="balanced",
    )
    weight_decay: float | None = setting(
        None,
        "training",
        "How strongly weights are drawn to zero.",
        rules.at_least(0),
        unset=_BY_RECIPE,
    )
    milestones: tuple[float, ...] | None = setting(
        None,
        "training",
        "Shares of the epochs at which the learning rate falls: 0.4,0.7.",
        rules.shares_of_epochs,
        about="The shares of the epochs after which the learning rate is divided by 10.",
        unset=_BY_RECIPE,
        metavar="LIST",
        parse=parsers.shares,
    )
    patience: int | None = setting(
        None,
        "training",
        "Stop after so many epochs without gain; 0 for never.",
        rules.at_least(0),
        about="Stop after so many epochs without a better validation accuracy, counted from "
        "the finest level on; 0 for never.",
        unset=_BY_RECIPE,
    )
    augment: bool | None = setting(
        None,
        "training",
        "Crop and mirror images.",
        about="Whether to crop and mirror images at random.",
        unset=_BY_RECIPE,
    )
    normalise: bool | None = setting(
        None,
        "training",
        "Mean 0, deviation 1.",
        about="Whether to bring channels or columns to mean 0 and deviation 1.",
        unset=_BY_RECIPE,
    )
    accumulate: int = setting(
        1, "training", "In how many parts to compute a batch.", rules.at_least(1)
    )
    clip: float | None = setting(
        None, "training", "The largest norm of a gradient.", rules.more_than_zero, unset="any"
    )
    precision: str = setting(
        "32-true", "training", "32-true, bf16-mixed, …", about="As Lightning Fabric names it."
    )
    accelerator: str = setting(
        "auto", "machine", "cpu, cuda, …", about="As Lightning Fabric names it."
    )
    devices: int | str = setting(
        "auto",
        "machine",
        "How many.",
        about="How many, or ``'auto'``.",
        metavar="N|auto",
        parse=parsers.number_or_word,
    )
    strategy: str = setting(
        "auto", "machine", "ddp, fsdp, …", about="As Lightning Fabric names it."
    )
    track_test: bool | None = setting(
        None,
        "log",
        "Note the test accuracy after every epoch too.",
        about="Whether to note the test accuracy after every epoch too; nothing depends on it.",
        unset="no",
        option="--track-test",
    )
    workers: int = setting(
        0, "machine", "Processes that read images which do not fit in memory.", rules.at_least(0)
    )
    head: str | None = setting(
        None, "training", "The name of the model's final layer.", unset="found by itself"
    )

    def __post_init__(self) -> None:
        for name, field in config_fields(type(self)).items():
            given = getattr(self, name)
            if given is not field.default:  # so a copy with few changes costs next to nothing
                value = field.normalised(given)
                field.check(value)
                object.__setattr__(self, name, value)
        self._check_baseline()
        self._check_class_weights()

    def _check_baseline(self) -> None:
        """Raise where something is to be made from a baseline that is not trained."""
        if self.hierarchy is not None and self.hierarchy_model is not None:
            raise ValueError("give hierarchy or hierarchy_model, not both.")
        if self.baseline:
            return
        if self.is_needed("class_vectors"):
            raise ValueError("one of the methods needs a baseline, whose final layer it looks at.")
        is_given = self.hierarchy is not None or self.hierarchy_model is not None
        if not is_given and self.is_needed("hierarchy"):
            raise ValueError("without a baseline, a hierarchy or a hierarchy_model must be given.")
        if self.is_needed("length") and isinstance(self.curriculum_epochs, str):
            raise ValueError(
                f"without a baseline, curriculum_epochs must be a number, as the rule "
                f"{self.curriculum_epochs!r} looks at the baseline."
            )

    def _check_class_weights(self) -> None:
        """Raise where classes are to be weighed by a method that would not do it."""
        for method in self.methods if self.class_weights is not None else ():
            if not weighs_classes(method):
                raise ValueError(
                    f"the method {method} does not weigh classes, so class_weights= does not go "
                    f"with it; leave one of them out, or let its class use Method.weighed and "
                    f"declare weighs_classes = True."
                )

    def with_recipe(self, recipe: "Config", **changes: Any) -> "Config":
        """Return the settings with those that are None taken from a recipe.

        Args:
            recipe: Settings of which only some are given, see `coarse2fine.training.recipes`.
            **changes: Settings to replace at the same time.
        """
        settings = {**vars(self), **changes}
        recipe_of = {name: getattr(recipe, name) for name in settings if settings[name] is None}
        return dataclasses.replace(self, **{**changes, **recipe_of})

    def is_needed(self, need: "Need") -> bool:
        """Whether any of the methods needs it, see `Method.needs`."""
        return any(need in find_method(method).needs for method in self.methods)

    def to_dict(self) -> Json:
        """Return the settings as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, settings: Json) -> "Config":
        """Return the settings that `to_dict` gave."""
        if not isinstance(settings, dict):
            raise TypeError(f"the settings must be a dict. Got {short(settings)}.")
        unknown = settings.keys() - config_fields(cls).keys()
        if unknown:
            raise ValueError(f"there is no setting {short(min(unknown, key=str))}.")
        return cls(**settings)

    def __str__(self) -> str:
        set_values = {name: value for name, value in self.to_dict().items() if value is not None}
        width = max(map(len, set_values))
        return "\n".join(f"{name:<{width}}  {_shown(value)}" for name, value in set_values.items())


def settings_affecting(*parts: Part) -> tuple[str, ...]:
    """Return the names of the settings that have an effect on one of some parts.

    Examples:
        >>> settings_affecting("comparison", "machine")
        ('methods', 'baseline', 'accelerator', 'devices', 'strategy', 'workers')
    """
    fields = config_fields(Config).items()
    return tuple(name for name, field in fields if field.declared.affects in parts)


def irrelevant_settings(method: str) -> tuple[str, ...]:
    """Return the settings that a training by a method does not depend on.

    Examples:
        >>> irrelevant_settings("continuous")
        ('methods', 'baseline')
    """
    if method == PLAIN:
        return settings_affecting("comparison", "curriculum")
    return settings_affecting("comparison")


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
