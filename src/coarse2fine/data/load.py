"""Find the data that a name, a path or a Python object stands for."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from .._util.plugins import brought, names
from ..hierarchy import Hierarchy
from .sources.trees import GivenTree
from .split import Source

VARIABLE = "COARSE2FINE_DATA"


@dataclass(frozen=True)
class NamedSet:
    """A named data set.

    Args:
        module: The file in `coarse2fine.data.sets` that loads it.
        loader: The function there.
        options: What the function is given. Defaults to nothing.
        has_folder: Whether it is read from a folder. Defaults to True.
        has_size: Whether its images can have any size. Defaults to False.
    """

    module: str
    loader: str
    options: Mapping[str, bool] = field(default_factory=dict)
    has_folder: bool = True
    has_size: bool = False


SETS = {
    "shapes": NamedSet("shapes", "load_shapes", has_folder=False, has_size=True),
    "cifar10": NamedSet("cifar", "load_cifar10"),
    "cifar100": NamedSet("cifar", "load_cifar100"),
    "cifar100-coarse": NamedSet("cifar", "load_cifar100", {"coarse": True}),
    "tiny-imagenet": NamedSet("tiny_imagenet", "load_tiny_imagenet"),
    "imagenet": NamedSet("imagenet", "load_imagenet", has_size=True),
    "clinc150": NamedSet("sentences", "load_clinc150"),
    "banking77": NamedSet("sentences", "load_banking77"),
    "trec": NamedSet("sentences", "load_trec"),
    "digits": NamedSet("sklearn_tables", "load_digits", has_folder=False),
    "made-table": NamedSet("sklearn_tables", "make_table", has_folder=False),
}
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+(:[\w.-]+)?")


FOLDERS = "folders"
"""As the target of a folder of images: the innermost folders are the classes."""


class _TableOptions(TypedDict):
    target: str | Sequence[str] | None
    text: str | None
    class_names: Sequence[str] | None
    columns: Sequence[str] | None
    tree: GivenTree


def load_data(
    data: Any,
    test: Any = None,
    val: Any = None,
    *,
    class_names: Sequence[str] | None = None,
    folder: str | Path | None = None,
    image_size: int | None = None,
    target: str | Sequence[str] | None = None,
    text: str | None = None,
    columns: Sequence[str] | None = None,
    hierarchy: Hierarchy | Callable[[], Hierarchy | None] | None = None,
) -> Source:
    """Return the samples that are meant.

    Args:
        data: The name of a set (see `SETS`; ``shapes:6000`` is Shapes with 6,000 images), a
            file (csv, json-lines, parquet), a folder of class folders, the name of a set that an
            installed package brings, a hub name; or Python objects, see `coarse2fine.fit`.
        test: Python objects to test on. Defaults to None.
        val: Python objects to validate on. Defaults to None.
        class_names: The classes in the order of their targets. Defaults to None: the data's,
            or the labels to train on: integers in their order, others sorted.
        folder: Where a named set lies. Defaults to None: the environment variable
            COARSE2FINE_DATA.
        image_size: The side of the images. Defaults to None: as they are.
        target: The column of the classes, in a table. Or several columns of labels, the
            coarsest first, of which the finest may be empty where they are not known: together
            they make a tree. In a folder of images, ``"folders"`` makes a tree of its folders,
            whose innermost ones are the classes. Defaults to None: one called label, target,
            class, category, intent, y or the like; else the last.
        text: The column of the text, in a table. Defaults to None: one called text, sentence,
            utterance, query, question, review or the like; else the only column of strings, if
            those are no categories.
        columns: The columns of a table to use as numbers, in this order: `Source.columns` of
            an earlier file. Defaults to None: all but the target.
        hierarchy: A tree of classes with names. Labels may name its clusters too, and targets
            are its nodes then. What returns it will do as well, and is called where labels are
            words. Defaults to None: all labels are classes.
    """
    tree = GivenTree(hierarchy)
    if not isinstance(data, str | os.PathLike):
        from .sources.objects import from_python

        return tree.applied_to(from_python(data, test, val, class_names, tree))
    if test is not None or val is not None:
        raise TypeError("test and val are for Python objects; a named set brings its own.")
    name, _, count = str(data).partition(":")
    if name in SETS:
        return _load_set(name, count, folder, image_size)
    table = _TableOptions(
        target=target, text=text, class_names=class_names, columns=columns, tree=tree
    )
    path = Path(data)
    if path.exists():
        return tree.applied_to(_load_path(path, image_size, table))
    found = brought(name, "data", "data") if name == data else None
    if found is not None:
        return tree.applied_to(_load_brought(name, found, folder, image_size))
    from .sources.table_files import is_table_file

    if isinstance(data, str) and _HUB_NAME.fullmatch(data) and not is_table_file(path):
        from .sources.hub import load_hub

        return tree.applied_to(load_hub(data, folder=folder, image_size=image_size, **table))
    raise FileNotFoundError(
        f"there is no data {str(data)!r}: not one of {names('data', SETS)}, no file or folder of "
        f"that name, and no hub name like user/set."
    )


def _load_path(path: Path, image_size: int | None, table: _TableOptions) -> Source:
    from .sources.image_sources import load_folder
    from .sources.nested_folders import load_nested_folders
    from .sources.parquet import has_image_column, is_table
    from .sources.parquet_images import load_parquet_images

    if is_table(path):
        from .sources.tables import load_table

        return load_table(path, **table)
    if has_image_column(path):
        names, tree = table["class_names"], table["tree"]
        return load_parquet_images(path, image_size, table["target"], names, tree)
    if path.is_dir() and table["target"] == FOLDERS:
        return load_nested_folders(path, image_size, class_names=table["class_names"])
    if path.is_dir():
        if not isinstance(table["target"], str | None):
            raise ValueError(
                f"{path} is a folder of images, which has no columns of labels; for the tree of "
                f"its folders give target=folders."
            )
        names, tree = table["class_names"], table["tree"]
        return load_folder(path, size=image_size, class_names=names, tree=tree)
    raise ValueError(f"{path}: not a csv, json-lines or parquet file, nor a folder of images.")


def _load_set(name: str, count: str, folder: str | Path | None, image_size: int | None) -> Source:
    known = SETS[name]
    options: dict[str, bool | int | Path] = {**known.options}
    if known.has_folder:
        options["folder"] = _folder(name, folder)
    if image_size is not None:
        if not known.has_size:
            raise ValueError(f"the images of {name} have one size; leave image_size out.")
        options["size"] = image_size
    if count:
        if name != "shapes" or not count.isdecimal():
            raise ValueError(
                f"only shapes can have a number after it, as shapes:6000. Got {count!r}."
            )
        options["count"] = int(count)
    loader = getattr(importlib.import_module(f".sets.{known.module}", __package__), known.loader)
    source: Source = loader(**options)
    return source


def takes_size(data: str) -> bool:
    """Return whether the images of data can be brought to a size.

    Args:
        data: As `load_data` takes it.
    """
    name = data.partition(":")[0]
    if name in SETS:
        return SETS[name].has_size
    found = None if Path(data).exists() else brought(name, "data", "data")
    return found is None or "image_size" in inspect.signature(found).parameters


def _load_brought(name: str, loader: Any, folder: str | Path | None, size: int | None) -> Source:
    """Return what a loader of an installed package loads, given those options that it takes."""
    if not callable(loader):
        raise TypeError(f"data {name!r} must be a function. Got a {type(loader).__name__}.")
    takes = inspect.signature(loader).parameters
    if size is not None and "image_size" not in takes:
        raise ValueError(f"the data {name} have one size; leave image_size out.")
    options = {"folder": folder or os.environ.get(VARIABLE), "image_size": size}
    source = loader(**{key: options[key] for key in options if key in takes})
    if not isinstance(source, Source):
        raise TypeError(
            f"data {name!r} must load a {Source.__module__.rpartition('.')[0]}.Source. Got a "
            f"{type(source).__name__}."
        )
    return source


def _folder(name: str, folder: str | Path | None) -> Path:
    found = folder or os.environ.get(VARIABLE)
    if not found:
        raise ValueError(
            f"{name} must be on this machine: say in which folder by folder= or the "
            f"environment variable {VARIABLE}."
        )
    path = Path(found)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}, in which {name} should lie.")
    return path
