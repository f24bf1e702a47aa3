"""What a hierarchy is made from where none is given: a training, or vectors by an encoder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from ..clustering import Linkage
from ..data import Data
from ..hierarchy import CONFUSION_METRICS, Hierarchy
from ..runs.config import Config
from ..runs.hierarchies import from_vectors
from ..runs.identity import Factory
from ..runs.result import RunResult
from .recipes import recipe_for


def hierarchy_of(run: RunResult, config: Config, model: Factory, data: Data) -> Hierarchy:
    """Return the hierarchy of a trained model by the settings' metric and linkage."""
    return Hierarchy.from_classifier(
        run.model(model),
        config.metric,
        head=config.head,
        confusion=run.predictions("val") if config.metric in CONFUSION_METRICS else None,
        linkage=cast(Linkage, config.linkage),
        seed=run.seed,
        class_names=data.class_names,
    )


def hierarchy_of_vectors(vectors: Any, config: Config, class_names: Sequence[str]) -> Hierarchy:
    """Return the hierarchy of class vectors by the settings' metric, linkage and first seed."""
    return from_vectors(vectors, config.metric, config.linkage, class_names, config.seeds[0])


def levels_to_train(hierarchy: Hierarchy, config: Config) -> Hierarchy:
    """Return a hierarchy with only those of its levels that the settings let be trained on."""
    if config.max_cluster_share is not None:
        hierarchy = hierarchy.max_cluster_share(config.max_cluster_share)
    return hierarchy if config.max_levels is None else hierarchy.max_levels(config.max_levels)


def training_config(asked: Config, config: Config) -> Config | None:
    """Return the settings of a training that only the hierarchy is made from.

    Args:
        asked: The settings as they were asked for.
        config: The same, every setting filled in, of one seed.

    Returns:
        Those of the other model or of the short training; None where neither is asked for.
    """
    epochs, model = config.hierarchy_epochs, config.hierarchy_model
    if model is not None:
        config = asked.with_recipe(
            recipe_for(model),
            model=model,
            head=None,
            val_share=config.val_share,
            seeds=config.seeds,
        )
    elif epochs is None:
        return None
    return config if epochs is None else replace(config, epochs=epochs, patience=0)


def training_name(config: Config) -> str:
    """Return the name of the directory of that training.

    It differs for every model and number of epochs, as the variants of an experiment share the
    directory it is in.

    Examples:
        >>> training_name(Config(hierarchy_model="cnn", hierarchy_epochs=12))
        'hierarchy-cnn-12-epochs'
    """
    model, epochs = config.hierarchy_model, config.hierarchy_epochs
    parts = ["hierarchy", *([model.replace(":", ".")] if model else [])]
    return "-".join([*parts, *([f"{epochs}-epochs"] if epochs else [])])
