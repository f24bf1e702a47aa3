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
ADAPTIVE = "adaptive"  # levels last as long as they teach, so that T is not known ahead
FEATURES, NAMES = "features", "names"
BY_ENCODER = (FEATURES, NAMES)  # what a hierarchy is made of by an encoder
OWN = "own"  # stands for the hierarchy that the data brings
HIERARCHY_WORDS = (*BY_ENCODER, OWN)  # no files
CANDIDATES = (5, 10, 20, 30, 40, 50)  # the paper's, for its big models
_BY_RECIPE = "by the model's recipe"
_BY_NAME = "found by its name"
_BY_BASELINE = "made from the baseline"
WITHOUT_HIERARCHY = (
    "without a baseline, a hierarchy or a hierarchy_model must be given, or hierarchy_epochs."
)


@documented
@dataclass(frozen=True)
class Config:
    """The settings of a comparison: what to train, on what, and how.

    Settings that are None may be filled in by the model's recipe, see `Config.with_recipe`.
    """

    data: str = setting(
        GIVEN,
        "data",
        "The data is a set's name (shapes, cifar100, …), a file (csv, jsonl, parquet), a folder "
        "with a folder of images for each class, a set of an installed package, or a name of the "
        "Hugging Face hub.",
        about="A set's name, a file, a folder or a hub name; ``'given'`` stands for data that "
        "are Python objects.",
        metavar="DATA",
    )
    _: KW_ONLY
    model: str | None = setting(
        None,
        "training",
        "Train this model: cnn, resnet20, resnet18, resnet50, wrn-28-10, bag, transformer, mlp, "
        "one of an installed package, or your own as package.module:callable.",
        about="A name, or ``package.module:callable``.",
        unset="by the kind of data",
    )
    methods: tuple[str, ...] = setting(
        ("continuous",),
        "comparison",
        "Compare this method with the baseline: continuous (the default), staged, spl, dp-l, "
        "dp-li, multitask, nbdt, hxe, soft-labels, hace, one of an installed package, or your own "
        "as package.module:Class. Repeat it for several.",
        rules.different_methods,
        about="What is compared with the baseline, see `coarse2fine.methods.METHODS`; what "
        "installed packages bring; or one's own as ``package.module:Class``.",
        option="--method",
        repeats=True,
    )
    method_settings: dict[str, float] | None = setting(  # noqa: RUF009, it is a field
        None,
        "curriculum",
        "Give a method a setting of its own, as nbdt.weight=10. Repeat it for several.",
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
        "Compare classes by this metric: embedding, embedding_similarity, embedding_centred, "
        "confusion, confusion_distance or random.",
        rules.one_of_literal("coarse2fine.distances:Metric"),
        about="How far apart classes are, see `Hierarchy.from_classifier`.",
    )
    linkage: str = setting(
        "single",
        "curriculum",
        "Compare clusters by this linkage: single, average or complete.",
        rules.one_of_literal("coarse2fine.clustering:Linkage"),
        about="How far apart clusters are, see `cluster_distances`.",
    )
    hierarchy: str | None = setting(
        None,
        "curriculum",
        "Take the hierarchy from this file or run instead of making it from the baseline; own "
        "takes the data's own, which cifar100 has. Or make it by --encoder: features compares the "
        "means of the classes' training samples, names the names of the classes. What can be read "
        "is listed by c2f hierarchy --help.",
        about="A file or run to take the hierarchy from; ``'own'``, the one that the data brings, "
        "such as the 20 groups of CIFAR-100; or what `encoder` makes it from: ``'features'``, the "
        "means of each class's training samples, or ``'names'``, the names of the classes. A file "
        "of that name is ``./features``.",
        unset=_BY_BASELINE,
        metavar="FILE|RUN|WORD",
    )
    encoder: str | None = setting(
        None,
        "curriculum",
        "Compare classes by this encoder of yours, package.module:callable: a function from a "
        "batch of inputs, a list of sentences for text, or from the list of names, to one vector "
        "each.",
        about="What the hierarchies ``'features'`` and ``'names'`` are made by, as "
        "``package.module:callable``.",
        unset="none",
        metavar="NAME",
    )
    hierarchy_model: str | None = setting(
        None,
        "curriculum",
        "Train this other model first, only to make the hierarchy from it.",
        unset=_BY_BASELINE,
    )
    hierarchy_epochs: int | None = setting(
        None,
        "curriculum",
        "Make the hierarchy from a short training of this many epochs instead of the baseline, "
        "of the same model or of --hierarchy-model.",
        rules.at_least(1),
        about="Make the hierarchy from a plain training of so many epochs, without early stopping, "
        "of the same model or of `hierarchy_model`.",
        unset="from a whole training",
    )
    max_levels: int | None = setting(
        None,
        "curriculum",
        "Train on at most this many levels, the classes themselves included.",
        rules.at_least(2),
        unset="any number",
    )
    max_cluster_share: float | None = setting(
        None,
        "curriculum",
        "Leave out coarse levels whose largest cluster has more than this share of the classes, "
        "as guessing nearly solves them; the finest of them stays.",
        rules.positive_share,
        unset="all levels stay",
    )
    baseline: bool = setting(
        True, "comparison", "Train the baseline too, even where nothing is made from it."
    )
    epochs: int | None = setting(
        None,
        "training",
        "Train the baseline and each method for at most this many epochs.",
        rules.at_least(1),
        unset=_BY_RECIPE,
    )
    curriculum_epochs: int | str = setting(
        ADAPTIVE,
        "curriculum",
        "Leave a level when its validation accuracy no longer improves (adaptive); or go from the "
        "coarsest level to the classes in this many epochs (T), or in as many as a rule of the "
        "paper says: reach-90, best-epoch or search.",
        rules.epochs_or_one_of(ADAPTIVE, "reach-90", "best-epoch", "search"),
        about="``'adaptive'`` leaves a level when its validation accuracy no longer improves; or "
        "T, or the paper's rule that gives it: ``'reach-90'``, ``'best-epoch'`` or ``'search'``.",
        metavar="N|RULE",
        parse=parsers.number_or_word,
    )
    stage_epochs: int | None = setting(
        None,
        "curriculum",
        "Let the method staged train for at most this many epochs at each coarse level.",
        rules.at_least(1),
        unset="`epochs`",
    )
    train_size: int | float | None = setting(
        None,
        "data",
        "Train on only so many samples, the same number of each class: 10000, 0.05 or 5%.",
        about="How many samples to train on, or which share of them, see "
        "`coarse2fine.data.sample`.",
        unset="all",
        metavar="N|SHARE",
        parse=parsers.size,
    )
    val_share: float | None = setting(
        None,
        "data",
        "Keep this share of the samples to train on for validation.",
        rules.share,
        unset=_BY_RECIPE,
    )
    test_share: float = setting(
        0.2,
        "data",
        "Keep this share of all samples for testing, if the data has no test part.",
        rules.share,
    )
    stratify: bool = setting(
        True,
        "data",
        "Let every class keep its share of the validation and test samples.",
        about="Whether every class keeps its share of the validation and test samples; False "
        "draws from all samples alike.",
    )
    image_size: int | None = setting(
        None,
        "data",
        "Bring all images to this width and height in pixels.",
        rules.at_least(1),
        unset="as they are",
    )
    target: str | tuple[str, ...] | None = setting(
        None,
        "data",
        "Read the classes from this column of a table. Repeat it for columns of several depths, "
        "the coarsest first; or give folders for nested folders of images.",
        rules.different_columns,
        about="The column of the classes in a table; or columns of labels from the coarsest to "
        "the finest, which may be empty where they are not known; or ``'folders'``, for nested "
        "folders of images, of which the innermost are the classes. Several columns, and folders, "
        "make the hierarchy too.",
        unset=_BY_NAME,
        parse=parsers.one_or_several,
        repeats=True,
    )
    text: str | None = setting(
        None, "data", "Read the text from this column of a table.", unset=_BY_NAME
    )
    seeds: tuple[int, ...] = setting(
        (0,),
        "randomness",
        "Repeat everything with so many seeds, from 0 on; or with these, as 0,1,2. A comma makes a "
        "list of one: 7, is seed 7 alone.",
        rules.different_from_zero_on,
        about="One run of everything for each.",
        metavar="N|LIST",
        parse=parsers.seeds,
    )
    batch_size: int | None = setting(
        None,
        "training",
        "Train on this many samples at a time, over all processes together.",
        rules.at_least(1),
        unset=_BY_RECIPE,
    )
    optimiser: str | None = setting(
        None,
        "training",
        "Use this optimiser: adam, adamw or sgd.",
        rules.one_of("adam", "adamw", "sgd"),
        unset=_BY_RECIPE,
    )
    learning_rate: float | None = setting(
        None, "training", "Begin with this learning rate.", rules.more_than_zero, unset=_BY_RECIPE
    )
    momentum: float | None = setting(
        None, "training", "Use this momentum for sgd.", rules.at_least(0), unset=_BY_RECIPE
    )
    class_weights: str | None = setting(
        None,
        "training",
        "Weigh the classes in the training loss: balanced makes all of them count the same.",
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
        "Draw the weights to zero this strongly.",
        rules.at_least(0),
        unset=_BY_RECIPE,
    )
    milestones: tuple[float, ...] | None = setting(
        None,
        "training",
        "Divide the learning rate by 10 after these shares of the epochs, such as 0.4,0.7.",
        rules.shares_of_epochs,
        unset=_BY_RECIPE,
        metavar="LIST",
        parse=parsers.shares,
    )
    patience: int | None = setting(
        None,
        "training",
        "Stop after this many epochs without a better validation accuracy; 0 never stops.",
        rules.at_least(0),
        about="Stop after so many epochs without a better validation accuracy, counted from "
        "the finest level on; 0 for never.",
        unset=_BY_RECIPE,
    )
    augment: bool | None = setting(
        None, "training", "Crop and mirror images at random while training.", unset=_BY_RECIPE
    )
    normalise: bool | None = setting(
        None, "training", "Bring channels or columns to mean 0 and deviation 1.", unset=_BY_RECIPE
    )
    accumulate: int = setting(
        1, "training", "Compute each batch in this many parts, to save memory.", rules.at_least(1)
    )
    clip: float | None = setting(
        None,
        "training",
        "Scale gradients down to this norm where theirs is larger.",
        rules.more_than_zero,
        unset="any",
    )
    precision: str = setting(
        "32-true",
        "training",
        "Compute in this precision, as Lightning Fabric names it: 32-true, bf16-mixed, ….",
        about="As Lightning Fabric names it.",
    )
    accelerator: str = setting(
        "auto",
        "machine",
        "Train on this kind of device, as Lightning Fabric names it: cpu, cuda, ….",
        about="As Lightning Fabric names it.",
    )
    devices: int | str = setting(
        "auto",
        "machine",
        "Train on this many devices.",
        about="How many, or ``'auto'``.",
        metavar="N|auto",
        parse=parsers.number_or_word,
    )
    strategy: str = setting(
        "auto",
        "machine",
        "Divide the work among devices like this, as Lightning Fabric names it: ddp, fsdp, ….",
        about="As Lightning Fabric names it.",
    )
    track_test: bool | None = setting(
        None,
        "log",
        "Note the test accuracy after every epoch too; nothing depends on it.",
        unset="no",
        option="--track-test",
    )
    workers: int = setting(
        0,
        "machine",
        "Read images that do not fit in memory by this many processes.",
        rules.at_least(0),
    )
    head: str | None = setting(
        None,
        "training",
        "Take the layer of this name as the model's final layer.",
        unset="found by itself",
    )

    def __post_init__(self) -> None:
        for name, field in config_fields(type(self)).items():
            given = getattr(self, name)
            if given is not field.default:  # so a copy with few changes costs next to nothing
                value = field.normalised(given)
                field.check(value)
                object.__setattr__(self, name, value)
        self._check_encoder()
        self._check_baseline()
        self._check_class_weights()

    def _check_encoder(self) -> None:
        """Raise where an encoder is missing, or has nothing to do."""
        word = self.hierarchy if self.hierarchy in BY_ENCODER else None
        if word is None and self.encoder is not None:
            raise ValueError("encoder= has no use unless hierarchy= is features or names.")
        if word is not None and self.encoder is None:
            raise ValueError(
                f"hierarchy {word!r} needs encoder=, a function of yours that gives vectors; a "
                f"file or run of that name is ./{word}."
            )
        if word is not None and self.metric.startswith("confusion"):
            raise ValueError(
                f"metric {self.metric!r} is of a trained model's mistakes, so it does not go with "
                f"the hierarchy {word!r}; give embedding."
            )

    def _check_baseline(self) -> None:
        """Raise where something is to be made from a baseline that is not trained."""
        for trained in ("hierarchy_model", "hierarchy_epochs"):
            if self.hierarchy is not None and getattr(self, trained) is not None:
                raise ValueError(f"give hierarchy or {trained}, not both.")
        if not self.baseline and self.why_baseline is not None:
            raise ValueError(self.why_baseline)

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

    @property
    def why_baseline(self) -> str | None:
        """Why the methods cannot do without a baseline, as a sentence; None if they can."""
        if self.is_needed("class_vectors"):
            return "one of the methods needs a baseline, whose final layer it looks at."
        sources = (self.hierarchy, self.hierarchy_model, self.hierarchy_epochs)
        is_made = sources == (None, None, None) and not self.has_tree_of_labels
        if is_made and self.is_needed("hierarchy"):
            return WITHOUT_HIERARCHY
        rules_by_baseline = isinstance(self.curriculum_epochs, str) and not self.is_adaptive
        if self.is_needed("length") and rules_by_baseline:
            return (
                f"without a baseline, curriculum_epochs must be a number or {ADAPTIVE!r}, as the "
                f"rule {self.curriculum_epochs!r} looks at the baseline."
            )
        return None

    @property
    def has_tree_of_labels(self) -> bool:
        """Whether the labels make a tree by themselves: those of several columns, or folders."""
        from ..data.load import FOLDERS  # not earlier, as it imports torch

        return isinstance(self.target, tuple) or self.target == FOLDERS

    @property
    def is_adaptive(self) -> bool:
        """Whether levels last as long as they teach."""
        return self.curriculum_epochs == ADAPTIVE

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
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else str(value)
