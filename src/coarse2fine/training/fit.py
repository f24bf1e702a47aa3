"""The whole method in one call: baseline, hierarchy, curriculum, comparison."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import nn

from ..curriculum import equal_shares
from ..data import Data, Source, Split, input_shape
from ..data.load import load_data
from ..hierarchy import Hierarchy
from ..models import default_model
from ..runs.begun import kept_once_trained
from ..runs.comparison import ComparisonWriter
from ..runs.config import FEATURES, GIVEN, HIERARCHY_WORDS, NAMES, OWN, Config
from ..runs.guards import check_writable
from ..runs.hierarchies import check_no_choice, read_hierarchy, read_tree
from ..runs.identity import import_path, path_or_name, structure, trust
from ..runs.result import Result, RunResult
from .encoders import Encoder, encoder_name, find_encoder, name_vectors
from .hierarchies import hierarchy_of_vectors, levels_to_train
from .labels import check_methods
from .processes import PEER_SECONDS, launch, lost_peers_explained, memory_errors_explained
from .progress import Watcher
from .recipes import recipe_for
from .seed import SeedRuns

RUNS = Path("runs")  # where directories are that have no name given


def fit(
    data: Any,
    test: Any = None,
    *,
    val: Any = None,
    class_names: Sequence[str] | None = None,
    folder: str | Path | None = None,
    model: str | Callable[..., nn.Module] | None = None,
    hierarchy: Any = None,
    encoder: str | Encoder | None = None,
    out: str | Path | None = None,
    watcher: Watcher | None = None,
    checkpoint_seconds: float = 10.0,
    peer_seconds: float = PEER_SECONDS,
    **settings: Any,
) -> Result:
    """Train a classifier with and without a coarse-to-fine curriculum, and compare them.

    The baseline is trained first. It gives the hierarchy, unless one is given, and an accuracy
    to compare with. Then the curriculum trains from the same fresh weights, on the
    same samples, for at most as many epochs. All of it is in a directory, and the same call
    resumes an interrupted one.

    Args:
        data: The name of a set, a file, a folder, a hub name; or, to train on, a pair
            (inputs, targets), a PyTorch Dataset or a `Split`.
        test: The same to test on, where `data` is Python objects. Defaults to None: a share
            of `data`.
        val: The same to validate on. Defaults to None: a share of what is trained on.
        class_names: Of Python objects. Defaults to None.
        folder: Where a named set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.
        model: A name, ``package.module:callable``, or a callable that takes ``num_classes``.
            Defaults to None: by the kind of data.
        hierarchy: A `Hierarchy`, a nested dict, a trained model, a K×K matrix of distances, or
            a file or run to take it from. Of a tree with names, labels may name the clusters
            too. Or ``"own"``, the one that the data brings; or ``"features"`` or ``"names"``,
            what `encoder` makes it from. Defaults to None: made by the labels of several columns
            or of nested folders, else from the baseline.
        encoder: For ``"features"``, a function from a batch of inputs as the model takes them,
            a list of sentences for text that is given as such, to an (N, D) array or tensor;
            for ``"names"``, one from the list of the K class names to a (K, D) array. An
            ``nn.Module`` or ``package.module:callable`` will do too. Defaults to None.
        out: The directory. Defaults to None: one in ``runs`` named by the settings.
        watcher: Told what happens. Defaults to None: nobody is.
        checkpoint_seconds: The least time between two checkpoints. Defaults to 10.0.
        peer_seconds: How long the processes of a training wait for one that does not answer.
            Defaults to 600.0.
        **settings: See `coarse2fine.Config`.

    Returns:
        The accuracies and gains; `print` shows them as a table.

    Examples:
        >>> from coarse2fine import fit
        >>> result = fit("shapes", epochs=45, batch_size=64)  # doctest: +SKIP
        >>> print(result)  # doctest: +SKIP
    """
    asked = _named(data, model, hierarchy, encoder, **settings)
    encode = None if encoder is None else find_encoder(encoder)
    check_writable(RUNS if out is None else Path(out))
    with memory_errors_explained():
        source = loaded(
            asked, data, test, val, class_names=class_names, folder=folder, hierarchy=hierarchy
        )
        if callable(model):
            train = source.train
            made = structure(model, len(train.class_names), input_shape(train), source.kind)
            asked = replace(asked, model=f"{asked.model}#{made}")
        config = resolve(asked, source)
        given = given_hierarchy(hierarchy, config, source, encode)
        check_length(config, given)
        path = RUNS / default_name(config, source, given) if out is None else Path(out)
        fabric = launch(config, peer_seconds)
        is_writer = fabric.is_global_zero
        with (
            lost_peers_explained(fabric, peer_seconds),
            kept_once_trained(path) if is_writer else nullcontext(),
        ):
            told = watcher if watcher is not None and is_writer else Watcher()
            told.compare(path, config)
            comparison = ComparisonWriter(path, config, is_writer)
            comparison.begin()
            fabric.barrier()
            runs: list[RunResult] = []
            remarks: list[str] = []
            for seed in config.seeds:
                of_seed = SeedRuns(
                    fabric,
                    asked,
                    replace(config, seeds=(seed,)),
                    source,
                    model if callable(model) else str(config.model),
                    given,
                    path,
                    told,
                    checkpoint_seconds,
                    lengthens=True,
                    encoder=encode if asked.hierarchy == FEATURES else None,
                )
                runs += of_seed.train()
                remarks += of_seed.remarks.values()
            result = Result(tuple(runs), tuple(remarks), path)
            comparison.finish(result)
            fabric.barrier()
            return result


def loaded(config: Config, data: Any, *parts: Any, hierarchy: Any = None, **options: Any) -> Source:
    """Return the samples, by the settings.

    Args:
        config: The settings as they were asked for.
        data: As `fit` takes it.
        *parts: Those to test and to validate on.
        hierarchy: As `fit` takes it; labels may name its clusters.
        **options: Further ones of `load_data`.
    """
    is_word = config.hierarchy in HIERARCHY_WORDS
    return load_data(
        data,
        *parts,
        image_size=config.image_size,
        target=config.target,
        text=config.text,
        hierarchy=None if is_word or hierarchy is None else lambda: read_tree(hierarchy),
        **options,
    )


def resolve(config: Config, source: Source) -> Config:
    """Return the settings with the model and its recipe filled in for the data."""
    model = config.model or default_model(source.kind)
    filled = config.with_recipe(recipe_for(model), model=model)
    trust(model, model.partition("#")[0])
    for name in filled.method_settings or {}:
        if name.rpartition(".")[0] not in filled.methods:
            raise ValueError(
                f"the setting {name} is of a method that is not trained; those are "
                f"{', '.join(filled.methods) or 'none'}."
            )
    if filled.curriculum_epochs == "search" and filled.methods != ("continuous",):
        raise ValueError("to search for curriculum_epochs, the method must be continuous alone.")
    check_methods(filled, source)
    return filled


def default_name(config: Config, source: Source, hierarchy: Hierarchy | None = None) -> str:
    """Return a directory's name: the same for the same data and settings but seeds and epochs."""
    settings = {**config.to_dict(), "data": path_or_name(config.data)}
    for name in ("seeds", "workers"):  # which may change from call to call
        del settings[name]
    del settings["epochs"]  # of which there may be more later
    if config.data == GIVEN:
        train = source.train
        settings["data"] = Data(source.kind, train, train, source.test or train).fingerprint()
    if hierarchy is not None and config.hierarchy is not None:  # else it is of the data
        settings["hierarchy"] = hierarchy.to_dict()
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
    data = Path(config.data)
    name = data.stem or data.resolve().stem
    parts = [name, str(config.model).partition("#")[0].rpartition(":")[2]]
    if data.stem == "train":  # a file whose folder says more
        parts[0] = data.resolve().parent.name
    return re.sub(r"[^\w.+-]+", "-", "-".join(parts)) + f"-{digest[:8]}"


def check_length(config: Config, hierarchy: Hierarchy | None) -> None:
    """Raise a `ValueError` for a curriculum that would not reach the classes, before training.

    Args:
        config: Every setting filled in.
        hierarchy: The given one; None where it is made from a baseline that is yet to be trained.
    """
    if not config.is_needed("length"):
        return
    epochs, length = config.epochs or 1, config.curriculum_epochs
    if isinstance(length, int) and length > epochs:
        raise ValueError(
            f"curriculum_epochs {length} is beyond the {epochs} epochs of the training, so the "
            f"classes would never be reached; give at most {epochs}, or a larger epochs=."
        )
    levels = 2  # there are at least so many, however the baseline turns out
    if hierarchy is not None:
        levels = len(levels_to_train(hierarchy, config).levels)
    shortest = length if isinstance(length, int) else 1  # a rule may give as few as this
    finest = max(equal_shares(shortest, levels), default=0)
    if finest >= epochs:
        raise ValueError(
            f"with {levels} levels the classes are trained from epoch {finest + 1} on, but the "
            f"training has only {epochs}; give a larger epochs="
            f"{' or a smaller max_levels=.' if levels > 2 else '.'}"
        )


def _named(data: Any, model: Any, hierarchy: Any, encoder: Any, **settings: Any) -> Config:
    """Return the settings, with Python objects by what they are called."""
    unknown = settings.keys() - {field.name for field in fields(Config)}
    if unknown:
        raise TypeError(f"fit() has no setting {sorted(unknown)[0]!r}; see coarse2fine.Config.")
    others = (hierarchy, settings.get("hierarchy_model"), settings.get("hierarchy_epochs"))
    brings_tree = isinstance(data, Split) and data.hierarchy is not None
    if brings_tree and others == (None, None, None) and settings.get("baseline") is False:
        hierarchy = OWN  # as nothing else tells the settings of it
    return Config(
        _name(data),
        model=import_path(model) if callable(model) else model,
        hierarchy=None if hierarchy is None else _hierarchy_name(hierarchy),
        encoder=encoder_name(encoder) if callable(encoder) else encoder,
        **settings,
    )


def _name(given: Any) -> str:
    return str(given) if isinstance(given, str | os.PathLike) else GIVEN


def _hierarchy_name(given: Any) -> str:
    """Return what settings call a hierarchy; a path is never one of their words."""
    name = _name(given)
    return f"./{name}" if isinstance(given, os.PathLike) and name in HIERARCHY_WORDS else name


def given_hierarchy(
    hierarchy: Any, config: Config, source: Source, encoder: Encoder | None = None
) -> Hierarchy | None:
    """Return the hierarchy that a user gave, if any, or that the labels make.

    Args:
        hierarchy: As `fit` takes it.
        config: Every setting filled in.
        source: The data.
        encoder: Of the classes' names. Defaults to None: the one that the settings name.

    Returns:
        That of the labels, where they make one and no other is asked for; None where each seed
        makes its own, from its baseline or its samples.
    """
    if hierarchy is None and config.hierarchy_model is None and config.hierarchy_epochs is None:
        return source.train.hierarchy
    if hierarchy is None or config.hierarchy == FEATURES:
        return None
    names = source.train.class_names
    if config.hierarchy == NAMES:
        vectors = name_vectors(encoder or find_encoder(str(config.encoder)), names)
        return hierarchy_of_vectors(vectors, config, names)
    if config.hierarchy == OWN:
        check_no_choice("the hierarchy of the data", config.metric, config.linkage)
        return source.own_hierarchy()
    made = read_hierarchy(
        hierarchy,
        metric=config.metric,
        linkage=config.linkage,
        head=config.head,
        class_names=names,
    )
    return made.for_classes(names)
