"""Folders of images within folders: the innermost are classes, those around them clusters."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ..split import Source
from .image_sources import (
    MEMORY_LIMIT,
    Files,
    common_size,
    image_names,
    image_source,
    split_folders,
)
from .trees import Branch, tree_of


def load_nested_folders(
    folder: str | Path,
    size: int | None = None,
    *,
    class_names: Sequence[str] | None = None,
    memory_limit: int = MEMORY_LIMIT,
) -> Source:
    """Load a folder of folders of images, in which every folder is a node of a tree.

    The innermost folders are the classes. An image that lies beside folders, as
    ``animal/7.jpg`` beside ``animal/cat/1.jpg``, is one of their classes, and it is not known
    which. Parts called train, test and val are as in `load_folder`.

    Args:
        folder: Where the images are.
        size: See `load_folder`, as for the others.
        class_names: The classes in the order of their targets.
        memory_limit: How many bytes of pixels to hold in memory.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: There are fewer than two classes, an innermost folder has no images or is
            not among those to train on, or two have one name.
    """
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1. Got {size}.")
    folders = split_folders(Path(folder))
    files = {role: Files(path, image_names(path)) for role, path in folders.items()}
    branches = {role: _branches(found) for role, found in files.items()}
    tree = tree_of(branches["train"], _places(files["train"]), class_names)
    targets = {role: tree.targets(branches[role], _places(found)) for role, found in files.items()}
    names = tree.hierarchy.class_names or ()
    shape = common_size(files, size)
    return image_source(files, targets, names, shape, memory_limit, tree.hierarchy)


def _branches(files: Files) -> list[Branch]:
    """Return the folders of each image, from the outermost to its own."""
    found = [files[row].relative_to(files.folder).parts[:-1] for row in range(len(files))]
    if () in found:
        raise ValueError(
            f"{files[found.index(())]} lies in no folder of a class; put it into one, or remove it."
        )
    _check_no_empty(files.folder, {*found})
    return found


def _places(files: Files) -> Callable[[int], str]:
    """Return what tells the folder that an image lies in."""
    return lambda row: str(files[row].parent)


def _check_no_empty(folder: Path, branches: set[Branch]) -> None:
    """Raise a ValueError where an innermost folder has no images."""
    for place, inner, _ in os.walk(folder):
        inner[:] = [name for name in inner if name[0] != "."]
        if not inner and Path(place).relative_to(folder).parts not in branches:
            raise ValueError(f"{place} holds no images; remove the folder or put some there.")
