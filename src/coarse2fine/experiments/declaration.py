"""What an experiment is: rows of settings, and the methods compared in each."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any

from ..methods import PLAIN
from ..runs.config import Config, irrelevant_settings, settings_affecting
from ..runs.result import BASELINE
from ..training.recipes import recipe_for

Published = Mapping[str, tuple[float, float | None]]
FULL = "full"
CHOSEN = "chosen"  # what tables call the better of the baseline and some variants


@dataclass(frozen=True)
class Variant:
    """One way to train, compared with the baseline of the same setting and seed.

    Args:
        name: Of its run directory, so the same name must always mean the same.
        method: See `coarse2fine.methods.find_method`. Defaults to ``""``: as `name`.
        settings: Of `Config`, such as the metric or T, where they are not the default; only
            those that the baseline does not depend on. Defaults to none.
        label: In tables and figures. Defaults to ``""``: `name`.
    """

    name: str
    method: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\w[\w.+=-]*", self.name) or self.name in (BASELINE, CHOSEN):
            raise ValueError(
                f"a variant's name must be made of letters, digits and . + = - _, and not be "
                f"{BASELINE!r} or {CHOSEN!r}; a method of your own is given as `method`. Got "
                f"{self.name!r}."
            )
        shared = sorted(self.settings.keys() - set(settings_affecting("curriculum")))
        if shared:
            raise ValueError(
                f"the variant {self.name!r} sets {shared[0]}, on which its baseline depends too; "
                f"set it for the whole setting instead."
            )

    @property
    def shown(self) -> str:
        """What tables and figures call it."""
        return self.label or self.name

    @property
    def trains_by(self) -> str:
        """The method's name."""
        return self.method or self.name


@dataclass(frozen=True)
class Setting:
    """A row of a table: data, model and how to train.

    Args:
        label: What tables call it.
        settings: Of `Config`; at least data and model.
        variants: What is compared with the baseline.
        paper: The paper's own figures in percent with their standard errors: the accuracy
            of ``"baseline"``, and the gain of each variant by its name. Defaults to none.
        chosen_among: The names of variants that a further line of the table chooses among: of
            each seed, the one of these or the baseline that validates best, which is what
            somebody who trains once would use. Defaults to none.
    """

    label: str
    settings: Mapping[str, Any]
    variants: tuple[Variant, ...]
    paper: Published = field(default_factory=dict)
    chosen_among: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in {"data", "model"} - self.settings.keys():
            raise ValueError(f"the setting {self.label!r} must say what its {name} is.")
        length = self.settings.get("curriculum_epochs")
        names = [variant.name for variant in self.variants]
        if len(set(names)) < len(names):
            raise ValueError(
                f"the variants of {self.label!r} must have different names. Got {', '.join(names)}."
            )
        for name in set(self.chosen_among) - set(names):
            raise ValueError(f"{self.label!r} has no variant {name!r} to choose among.")
        for variant in self.variants:
            own = variant.settings.get("curriculum_epochs", length)
            if (own == "search") != (length == "search"):
                raise ValueError(
                    f"to search for curriculum_epochs takes a baseline of its own; set it for the "
                    f"whole of {self.label!r} instead of {variant.name!r}."
                )

    @property
    def key(self) -> str:
        """A short name, by data, model and size, such as ``cifar100-cnn-10000``.

        Examples:
            >>> Setting("", {"data": "imagenet", "model": "resnet18", "train_size": 0.01}, ()).key
            'imagenet-resnet18-0.01'
        """
        size = self.settings.get("train_size")
        parts = [str(self.settings["data"]), str(self.settings["model"])]
        parts += [] if size is None else [str(size)]
        return re.sub(r"[^\w.+-]+", ".", "-".join(parts)).strip(".")

    def asked(self, variant: Variant | None, seeds: tuple[int, ...]) -> Config:
        """Return the settings of a variant's trainings, or of the baseline's, as declared."""
        settings = {**self.settings, **(variant.settings if variant else {})}
        methods = (variant.trains_by,) if variant else ()
        return Config(**settings, methods=methods, seeds=seeds)

    def config(self, variant: Variant | None, seeds: tuple[int, ...]) -> Config:
        """Return the same, with the model's recipe filled in."""
        asked = self.asked(variant, seeds)
        return asked.with_recipe(recipe_for(asked.model))

    @cached_property
    def folder(self) -> str:
        """The directory of its runs: the same for the same baseline, whatever is compared.

        So experiments share what they have in common.
        """
        config = self.config(None, (0,)).to_dict()
        is_searched = config["curriculum_epochs"] == "search"  # then there is no validation
        others = (*settings_affecting("randomness", "machine"), *irrelevant_settings(PLAIN))
        kept = {
            name: value
            for name, value in config.items()
            if value is not None and name not in others
        }
        text = json.dumps([kept, is_searched], sort_keys=True)
        return f"{self.key}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@dataclass(frozen=True)
class Scale:
    """One size at which an experiment can be run.

    Args:
        about: What it is, and how it differs from the paper's.
        settings: The rows.
    """

    about: str
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class Experiment:
    """A table or figure, declared.

    Args:
        title: In a few words.
        scales: By name; ``"full"`` is the paper's.
        figure: What is drawn, see `coarse2fine.experiments.figures`. Defaults to None.
        num_seeds: How many by default. Defaults to 5, as in the paper.
    """

    title: str
    scales: Mapping[str, Scale]
    figure: str | None = None
    num_seeds: int = 5

    def scale(self, name: str) -> Scale:
        """Return a scale by its name."""
        if name not in self.scales:
            there = ", ".join(self.scales)
            raise ValueError(f"there is no scale {name!r} here. Must be one of {there}.")
        return self.scales[name]


def chosen(
    scale: Scale, only: tuple[str, ...] = (), epochs: int | None = None
) -> tuple[Setting, ...]:
    """Return the settings that are wanted.

    Args:
        scale: Of an experiment.
        only: Keys of settings or names of variants, with ``*`` for anything; those not named
            are left out. Defaults to none: all.
        epochs: The most epochs, instead of what is declared. Defaults to None.
    """
    settings = scale.settings
    if epochs is not None:
        settings = tuple(replace(s, settings={**s.settings, "epochs": epochs}) for s in settings)
    keys = [setting.key for setting in settings]
    names = list(dict.fromkeys(v.name for setting in settings for v in setting.variants))
    wanted_keys = {key for key in keys for term in only if fnmatchcase(key, term)}
    wanted_names = {name for name in names for term in only if fnmatchcase(name, term)}
    for term in only:
        if not any(fnmatchcase(name, term) for name in (*keys, *names)):
            raise ValueError(
                f"nothing here is called {term!r}. The settings are {', '.join(keys)}; the "
                f"methods are {', '.join(names)}."
            )
    kept = [setting for setting in settings if not wanted_keys or setting.key in wanted_keys]
    if not wanted_names:
        return tuple(kept)
    found = tuple(
        _with_variants(setting, wanted_names)
        for setting in kept
        if any(variant.name in wanted_names for variant in setting.variants)
    )
    if not found:
        raise ValueError(
            f"none of the settings {', '.join(sorted(wanted_keys))} has a method "
            f"{' or '.join(sorted(wanted_names))}."
        )
    return found


def _with_variants(setting: Setting, names: set[str]) -> Setting:
    """Return a setting with some of its variants; one chooses only where all are there."""
    variants = tuple(variant for variant in setting.variants if variant.name in names)
    among = setting.chosen_among if names.issuperset(setting.chosen_among) else ()
    return replace(setting, variants=variants, chosen_among=among)
