"""What any_level.py trains on: samples of which some are known by their class, others by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path

import numpy as np
import torch
from mechanism_tasks import Recipe, Task, task_of
from torch import Tensor, nn

from coarse2fine import Hierarchy
from coarse2fine.data.load import load_data
from coarse2fine.data.sampling import sample, stratified_rows
from coarse2fine.data.split import Source, Split
from coarse2fine.models import MODELS, build_model
from coarse2fine.training.recipes import recipe_for

VAL_SHARE = 0.2  # of the samples with fine labels, as nobody could validate on others


@dataclass(frozen=True)
class Set:
    """A data set with groups that people made, and what is trained on it.

    Args:
        model: One of this package.
        size: How many samples there are to train and to validate on.
        groups: Returns the groups, from what was loaded and the folder of the sets.
    """

    model: str
    size: int
    groups: Callable[[Source, Path], Hierarchy]


def superclasses(source: Source, folder: Path) -> Hierarchy:
    """Return the 20 superclasses of CIFAR-100, from the second label of its images."""
    coarse, fine = load_data("cifar100-coarse", folder=folder).train, source.train
    table = {
        "coarse_label": [coarse.class_names[target] for target in coarse.targets.tolist()],
        "fine_label": [fine.class_names[target] for target in fine.targets.tolist()],
    }
    return Hierarchy.from_taxonomy(table, fine.class_names)


def domains(source: Source, folder: Path) -> Hierarchy:
    """Return the 10 domains of CLINC150, from its authors' file."""
    path = folder / "clinc150" / "domains.json"
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; put the authors' domains.json there.")
    return Hierarchy.from_taxonomy(path, source.train.class_names)


SETS: Mapping[str, Set] = {
    "cifar100": Set("cnn", 12_000, superclasses),
    "clinc150": Set("bag", 15_000, domains),
}


@cache
def load_set(name: str, folder: Path) -> tuple[Source, Hierarchy]:
    """Return the samples of a set, and the groups of its classes."""
    source = load_data(name, folder=folder)
    return source, SETS[name].groups(source, folder)


def recipe_in_steps(model: str) -> Recipe:
    """Return how a model is trained here: all lengths in steps, the same for every way.

    A way that sees a tenth of the samples has a tenth of the batches in an epoch. So validation
    comes every so many steps, and patience and the longest training count steps, too.
    """
    return {
        "rate": float(recipe_for(model).learning_rate or 0),
        "batch": 128,
        "every": 20,
        "patience": 1_000,
        "steps": 6_000,
    }


@dataclass(frozen=True)
class Mixed:
    """The samples of a seed, of which some have fine labels and all others coarse ones.

    Args:
        task: The samples to train, to validate and to test on, all with their classes.
        hierarchy: The groups, and the classes.
        is_fine: Whether the class of each sample to train on is known.
    """

    task: Task
    hierarchy: Hierarchy
    is_fine: Tensor

    @property
    def classes(self) -> Tensor:
        """The class of each sample to train on, also where only the group is known."""
        return self.task.parts["train"][1]

    @cached_property
    def group_of(self) -> Tensor:
        """The group of each class."""
        return torch.tensor(self.hierarchy.levels[0])

    @property
    def groups(self) -> Tensor:
        """The group of each sample to train on."""
        return self.group_of[self.classes]

    def network(self, num_outputs: int) -> nn.Module:
        """Return a network with the weights of the seed and so many outputs."""
        model, shape = self.task.model, tuple(self.task.parts["train"][0].shape[1:])
        build = partial(build_model, model, num_outputs, shape, MODELS[model][0])
        return replace(self.task, build=build).network()

    @property
    def nodes(self) -> Tensor:
        """What is known of each sample to train on: a class, or the node of a group."""
        node_of_group = torch.tensor(self.hierarchy.nodes.of_level[0])
        return torch.where(self.is_fine, self.classes, node_of_group[self.groups])


def mixed_samples(
    name: str, model: str, source: Source, hierarchy: Hierarchy, size: int, share: float, seed: int
) -> Mixed:
    """Divide a set into samples with fine labels, samples with coarse ones, and the test set.

    All is stratified by class. A fifth of the samples with fine labels is to validate on. A
    division of its own that the set may have into training and validation is not used.

    Args:
        name: Of the set.
        model: One of this package.
        source: What was loaded.
        hierarchy: The groups of the classes, and the classes.
        size: How many samples there are to train and to validate on.
        share: Of these, how many have fine labels, as a fraction.
        seed: Of every choice.
    """
    data = sample(replace(source, val=None), train_size=size, val_share=0, seed=seed)
    train, val, is_fine = _divide(data.train, share, np.random.RandomState(1000 + seed))
    splits = {"train": train, "val": val, "test": data.test}
    task = replace(task_of(name, model, seed, data.kind, splits), recipe=recipe_in_steps(model))
    return Mixed(task, hierarchy, is_fine)


def _divide(pool: Split, share: float, rng: np.random.RandomState) -> tuple[Split, Split, Tensor]:
    """Return the samples to train on, those to validate on, and which of the first are fine."""
    targets, count = pool.targets.numpy(), len(pool.class_names)
    fine = stratified_rows(targets, count, round(share * len(pool)), rng)
    held = fine[stratified_rows(targets[fine], count, round(VAL_SHARE * len(fine)), rng)]
    rest = np.setdiff1d(np.arange(len(pool)), held)
    is_fine = torch.from_numpy(np.isin(rest, fine))
    return pool.take(rest), pool.take(np.sort(held)), is_fine
