"""What the adapters share: where a hierarchy comes from, and whether there is time for it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from torch import nn

from ..hierarchy import Hierarchy

Source = Hierarchy | nn.Module | str | os.PathLike[str]


def hierarchy_from(source: Source, head: str | None = None) -> Hierarchy:
    """Return a hierarchy as it is, or made from a trained classifier, or read from its file.

    Args:
        source: A hierarchy, a trained classifier, or the path of a file that
            `Hierarchy.save` wrote.
        head: The name of the classifier's final layer, where it cannot be found. Defaults
            to None.
    """
    if isinstance(source, Hierarchy):
        return source
    if isinstance(source, nn.Module):
        return Hierarchy.from_classifier(source, head=head)
    if isinstance(source, str | os.PathLike):
        if not Path(source).is_file():
            raise FileNotFoundError(
                f"there is no file {source} to read a hierarchy from; where it should come from a "
                f"model, load that and give it in place of the path."
            )
        return Hierarchy.load(source)
    raise TypeError(
        f"the hierarchy must be a Hierarchy, a trained torch.nn.Module or the path of a "
        f"hierarchy's file. Got {type(source).__name__}."
    )


def warn_if_cut_short(last: float, finest: int, what: str) -> None:
    """Warn where training would stop before the model is asked for the classes.

    Args:
        last: How many epochs (or steps) training takes.
        finest: After how many of them the finest level begins.
        what: What they are called where they are set.
    """
    if finest and last <= finest:
        warnings.warn(
            f"{what} is {last:g}, but the finest level begins only after {finest}; raise {what} or "
            f"shorten the curriculum.",
            stacklevel=3,
        )
