"""What mechanism.py trains: the samples of a seed, and a network with its recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from mechanism_looks import Samples, group_means
from mechanism_made import MADE, TREE
from torch import Tensor, nn

from coarse2fine import Hierarchy
from coarse2fine.data.batches import Transform, channel_statistics
from coarse2fine.data.load import load_data
from coarse2fine.data.sampling import input_shape, sample
from coarse2fine.data.split import Kind, Split
from coarse2fine.models import build_model
from coarse2fine.models.table import TableMLP
from coarse2fine.runs.config import Config
from coarse2fine.training.recipes import recipe_for

Recipe = Mapping[str, float]
Splits = Mapping[str, Split]

# The model of tables with hidden layers of other sizes than 256; the recipe is the same.
WIDTHS = {f"mlp-{width}": partial(TableMLP, width=width) for width in (64, 1024)}

# What differs from the recipes of `c2f train`.
OWN: Mapping[str, Recipe] = {
    # So few sentences are few steps an epoch.
    "bag": {"epochs": 80, "dropout": 0.5},
    # As `c2f paper worth` trains it on Shapes.
    "cnn": {"batch": 64, "epochs": 90, "patience": 20},
    # As examples/transformers_text.py trains it by default, but for epochs and early stopping.
    "bert": {"rate": 1e-3, "batch": 32, "epochs": 36, "patience": 10, "warmup": 3, "clip": 1.0},
}


def usual_recipe(model: str) -> Config:
    """Return the recipe of `c2f train`."""
    return recipe_for("mlp" if model in WIDTHS else model)


def recipe_of(model: str) -> Recipe:
    """Return how a model is trained here."""
    usual = usual_recipe(model)
    numbers = {
        "rate": usual.learning_rate,
        "batch": usual.batch_size,
        "epochs": usual.epochs,
        "patience": usual.patience,
        "decay": usual.weight_decay,
    }
    return {**numbers, **OWN.get(model, {})}  # type: ignore[dict-item]


@dataclass(frozen=True)
class Task:
    """The samples of a seed, as a network takes them, and how one is made and trained.

    Args:
        name: Of the set.
        model: What the network is called.
        seed: Of its first weights, and of the order of the samples.
        parts: The samples to train, to validate and to test on.
        recipe: How it is trained.
        build: Returns a new network, whose final layer is its `head`.
    """

    name: str
    model: str
    seed: int
    parts: Mapping[str, Samples]
    recipe: Recipe
    build: Callable[[], nn.Module]

    def network(self) -> nn.Module:
        """Return a network with the weights of the seed."""
        torch.manual_seed(self.seed)
        network = self.build()
        for part in network.modules():
            if isinstance(part, nn.Dropout):
                part.p = self.recipe.get("dropout", part.p)
        return network.to(memory_format=torch.channels_last)


def load_splits(
    name: str,
    seed: int,
    folder: Path | None = None,
    per_class: int | None = None,
    val_size: int | None = None,
    image_size: int | None = None,
) -> tuple[Kind, Splits]:
    """Return what kind of data it is, and the samples of a seed that are used.

    Args:
        name: Of a set or a file, or one of `MADE`.
        seed: Of every choice.
        folder: Of the sets. Defaults to None: COARSE2FINE_DATA.
        per_class: How many of each class to train on. Defaults to None: all.
        val_size: How many to validate on. Defaults to None: all.
        image_size: The side of images. Defaults to None: as they are.
    """
    made = MADE.get(name)
    source = made() if made else load_data(name, folder=folder, image_size=image_size)
    data = sample(source, seed=seed)
    targets, rng = data.train.targets.numpy(), np.random.RandomState(1000 + seed)
    classes = range(len(data.class_names))
    rows = [rng.permutation(np.flatnonzero(targets == k))[:per_class] for k in classes]
    train = data.train.take(np.sort(np.concatenate(rows)))
    val = data.val.take(np.sort(rng.permutation(len(data.val))[:val_size]))
    return data.kind, {"train": train, "val": val, "test": data.test}


def task_of(name: str, model: str, seed: int, kind: Kind, splits: Splits) -> Task:
    """Return the task of a model of this package."""
    train, transform = splits["train"], Transform()
    if usual_recipe(model).normalise:
        transform = Transform(*channel_statistics(train.inputs))  # type: ignore[arg-type]
    parts = {part: (_inputs(split, transform), split.targets) for part, split in splits.items()}
    about = len(train.class_names), input_shape(train), kind
    build = partial(build_model, WIDTHS.get(model, model), *about)
    return Task(name, model, seed, parts, recipe_of(model), build)


def hierarchies_of(task: Task) -> dict[str, Hierarchy]:
    """Return the hierarchies that a table has without a baseline.

    They are called ``"means"``, of the class means of the columns, and ``"true"``, where the
    table was made from one.
    """
    inputs, targets = task.parts["train"]
    if inputs.dim() != 2 or not inputs.is_floating_point():
        return {}
    found = {"means": Hierarchy.from_embeddings(group_means(inputs, targets).numpy())}
    return {**found, "true": TREE} if task.name == "nested-table" else found


def _inputs(split: Split, transform: Transform) -> Tensor:
    inputs = transform.normalise(split.inputs)  # type: ignore[arg-type]
    # A CNN takes a third less time so.
    return inputs.contiguous(memory_format=torch.channels_last) if inputs.dim() == 4 else inputs
