"""Where a hierarchy comes from, in whatever form the user has it."""

from __future__ import annotations

import os

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
        return Hierarchy.load(source)
    raise TypeError(
        f"the hierarchy must be a Hierarchy, a trained torch.nn.Module or the path of a "
        f"hierarchy's file. Got {type(source).__name__}."
    )
