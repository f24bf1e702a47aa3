"""From a baseline to a curriculum: its hierarchy, the length T, the loss. All adapters share it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import ArrayLike
from torch import nn

from .._level_module import LevelLoss
from ..curriculum import Curriculum
from ..errors import RunError
from ..hierarchy import Hierarchy
from ..lengths import capped_length, epochs_to_reach
from ..loss import CoarseToFineLoss
from ..runs.config import ADAPTIVE
from ..runs.hierarchies import read_hierarchy

REACH_90 = "reach-90"  # the paper's rule for T
HierarchySource = Hierarchy | nn.Module | str | os.PathLike[str] | ArrayLike


def curriculum_from(
    source: HierarchySource,
    epochs: int | None = None,
    *,
    steps: int | None = None,
    boundaries: Iterable[int] | None = None,
    patience: int | None = None,
    total_epochs: int | None = None,
    criterion: LevelLoss | None = None,
    head: str | None = None,
) -> Curriculum:
    """Return the curriculum of a loss, which is given the hierarchy.

    Args:
        source: Where the hierarchy comes from, see `hierarchy_from`.
        epochs: T, the length of the curriculum in epochs.
        steps: T in optimiser steps instead.
        boundaries: Instead of either, the epochs at which the levels 1, 2, ... begin.
        patience: Instead of those, the epochs without improvement after which a level is left.
        total_epochs: With `patience`, how many epochs training takes in all. Defaults to None:
            not known. (Of a fixed curriculum that is too long `warn_if_cut_short` warns.)
        criterion: The loss. Defaults to None: a new one.
        head: The name of a classifier's final layer. Defaults to None: found by itself.
    """
    criterion = CoarseToFineLoss() if criterion is None else criterion
    criterion.hierarchy = hierarchy_from(source, head=head)
    lengths: dict[str, Any] = {"steps": steps, "boundaries": boundaries, "patience": patience}
    total = None if patience is None else total_epochs
    return Curriculum(criterion, epochs, **lengths, total_epochs=total)


def check_one_length(**lengths: Any) -> None:
    """Refuse more lengths of a curriculum than one, or none."""
    if sum(given is not None for given in lengths.values()) != 1:
        *others, last = lengths
        raise ValueError(f"give exactly one of {', '.join(others)} and {last}.")


def hierarchy_from(source: HierarchySource, **options: Any) -> Hierarchy:
    """Return the hierarchy that is given, or that is made from what is given.

    Args:
        source: See `read_hierarchy`.
        **options: Of `Hierarchy.from_classifier` for a classifier, else of `read_hierarchy`.
    """
    if isinstance(source, nn.Module):
        return Hierarchy.from_classifier(source, **options)
    try:
        return read_hierarchy(source, **options)
    except (FileNotFoundError, RunError) as error:
        # Such as the name of a model on a hub, or the folder of one.
        raise FileNotFoundError(
            f"{error} Where the hierarchy should come from a model, load that and give it in "
            f"place of the path."
        ) from error


def length_of(
    length: int | str, accuracies: Sequence[float], epochs: int, levels: int
) -> int | None:
    """Return T, which is given as a number or follows from how a baseline trained.

    None where levels last as long as they teach.

    Args:
        length: The number, ``"adaptive"`` or ``"reach-90"``, the paper's rule.
        accuracies: The baseline's validation accuracy after each epoch.
        epochs: How many training may take in all.
        levels: How many the hierarchy has; each of the coarse ones gets an epoch at least.

    Examples:
        >>> length_of("reach-90", [0.2, 0.5, 0.56, 0.6], epochs=30, levels=3)
        3
    """
    if length == ADAPTIVE:
        return None
    if length != REACH_90:
        return int(length)
    return max(capped_length(epochs_to_reach(accuracies), epochs), levels - 1)


def warn_if_cut_short(last: float, curriculum: Curriculum, what: str) -> None:
    """Warn where training would stop before the model is asked for the classes.

    Args:
        last: How many epochs (or steps) training takes.
        curriculum: In the same unit.
        what: What they are called where they are set.
    """
    finest = curriculum.finest_epoch
    if finest and last <= finest:
        warnings.warn(
            f"{what} is {last:g}, but the finest level begins only after {finest}; raise {what} or "
            f"shorten the curriculum.",
            stacklevel=3,
        )


def warn_if_coarse(curriculum: Curriculum) -> None:
    """Warn where training has ended before the model was asked for the classes."""
    if curriculum.is_adaptive and not curriculum.is_finest:
        warnings.warn(
            f"Training ended at level {curriculum.level}, before the classes; train for longer, or "
            f"give a smaller patience.",
            stacklevel=3,
        )
