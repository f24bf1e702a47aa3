"""Labels that are coarser than classes: whether one can train and validate with them."""

from __future__ import annotations

from ..data import Data, Source, Split
from ..methods import takes_nodes
from ..nodes import Nodes
from ..runs.config import Config


def label_nodes(split: Split) -> Nodes | None:
    """Return what targets are numbered by, where some are clusters; None where all are classes."""
    if split.hierarchy is None or split.num_with_class == len(split):
        return None
    return split.hierarchy.nodes


def check_methods(config: Config, source: Source) -> None:
    """Raise a ValueError for a method that needs the class of every sample, where some lack it.

    Args:
        config: The settings.
        source: The samples.
    """
    train = source.train
    coarse = len(train) - train.num_with_class
    for method in config.methods if coarse else ():
        if not takes_nodes(method):
            raise ValueError(
                f"the method {method} needs the class of every training sample, and {coarse} of "
                f"{len(train)} have a coarser label; leave out the method or those samples, or "
                f"let its class use Method.wanted and declare takes_nodes = True."
            )


def check_labels(data: Data) -> None:
    """Raise a ValueError where no sample of a part has a class, so that nothing tells accuracy.

    Args:
        data: The samples of a seed.
    """
    for what, split in (("validation", data.val), ("test", data.test)):
        if len(split) and not split.num_with_class:
            raise ValueError(
                f"none of the {len(split)} {what} samples has a class, so no accuracy can be "
                f"told; label some of them with classes."
            )
