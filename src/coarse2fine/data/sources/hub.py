"""Data sets of the Hugging Face hub."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import numpy as np

from ..._util.text import first_line
from ...errors import require
from ..split import ROLES, Source
from .image_sources import MEMORY_LIMIT, image_source
from .images import image_sizes
from .table_labels import Target, labels_of, target_column
from .table_reader import Table
from .tables import table_source
from .trees import GivenTree

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict  # type: ignore[import-untyped]

_PATIENCE = 5.0  # seconds until the hub counts as out of reach


def load_hub(
    name: str,
    *,
    folder: str | Path | None = None,
    image_size: int | None = None,
    target: Target = None,
    text: str | None = None,
    class_names: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    tree: GivenTree | None = None,
) -> Source:
    """Load a data set of the Hugging Face hub: images, text or a table.

    Its splits train, test and validation are used. Where there is no test, or its labels are
    withheld, validation serves as the test. What was downloaded once needs no network.

    Args:
        name: Such as ``user/set`` or, with a configuration, ``user/set:config``; or a local
            folder of files that the library `datasets` can read.
        folder: Where downloads are kept. Defaults to None: the library's own folder.
        image_size: The height and width to bring images to. Defaults to None: all are of one
            size, which is kept.
        target: The column of the classes. Defaults to None: the only one of a declared set
            of classes, else as for `coarse2fine.data.load_data`, as are the others.
        text: The column of the text.
        class_names: The classes in the order of their targets.
        columns: The columns to use as numbers.
        tree: Whose clusters labels may name too. Defaults to None.

    Raises:
        FileNotFoundError: There is no such data set, or the hub is out of reach.
        ValueError: It cannot be loaded or understood.
    """
    splits = _splits(name, _loaded(name, folder))
    image = _only_column(splits["train"], "Image") if text is None and not columns else None
    parts = {role: _table(name, split) for role, split in splits.items()}
    declared = _only_column(splits["train"], "ClassLabel")
    if target is None or isinstance(target, str):
        target = target_column(parts["train"], target or declared, columns, image)
    roles = _labelled(parts, target if isinstance(target, str) else target[-1])
    parts = {role: parts[given] for role, given in roles.items()}
    if image is None:
        return table_source(parts, target, text, class_names, columns, tree)
    labels = labels_of(parts, target, class_names, tree=tree)
    images = {role: _Images(splits[given], image) for role, given in roles.items()}
    shape = _shape(name, images, image_size)
    names, own_tree = labels.class_names, labels.hierarchy
    return image_source(images, labels.targets, names, shape, MEMORY_LIMIT, own_tree)


# ------------------------------------------------------------------------------- loading


def _loaded(name: str, folder: str | Path | None) -> DatasetDict:
    datasets = require("datasets", "train")
    path, _, config = (name, "", "") if Path(name).exists() else name.partition(":")
    cache = None if folder is None else str(folder)
    try:
        with _quick_without_network(datasets, path):
            return datasets.load_dataset(path, config or None, cache_dir=cache)
    except Exception as error:  # the library lets through whatever its many readers raise
        kind = FileNotFoundError if isinstance(error, OSError) else ValueError
        reason = first_line(error)
        raise kind(f"the data {name!r} could not be had from the hub: {reason}.") from error


@contextmanager
def _quick_without_network(datasets: Any, path: str) -> Iterator[None]:
    """Have what is stored used at once where the hub is out of reach, not after many tries."""
    config = datasets.config
    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = before or not (Path(path).exists() or _in_reach(config.HF_ENDPOINT))
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def _in_reach(endpoint: str) -> bool:
    if getproxies():
        return True  # only the proxy knows
    address = urlsplit(endpoint)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=_PATIENCE).close()
    except OSError:
        return False
    return True


def _splits(name: str, loaded: DatasetDict) -> dict[str, Dataset]:
    found = {
        role: loaded[split]
        for role, names in ROLES.items()
        for split in reversed(names)  # of several, the first name counts
        if split in loaded
    }
    if "train" not in found:
        raise ValueError(f"the data {name!r} has no split train; it has {', '.join(loaded)}.")
    return found


# ------------------------------------------------------------------------------- columns


def _only_column(split: Dataset, feature: str) -> str | None:
    """Return the column of a feature's type, None if there is no or more than one."""
    kind = getattr(require("datasets", "train"), feature)
    columns = [name for name, value in split.features.items() if isinstance(value, kind)]
    return columns[0] if len(columns) == 1 else None


def _table(name: str, split: Dataset) -> Table:
    return Table([(f"{name}, {split.split}", split.with_format("arrow")[:])])


def _labelled(parts: Mapping[str, Table], target: str) -> dict[str, str]:
    """Return the roles, and which part is to play each; labels of a test may be withheld."""
    roles = {role: role for role in parts}
    if "test" in parts and _is_withheld(parts["test"], target):
        del roles["test"]
    if "test" not in roles and "val" in roles:
        roles["test"] = roles.pop("val")
    return roles


def _is_withheld(table: Table, target: str) -> bool:
    return target not in table.names or set(table.column(target).unique().to_pylist()) <= {None, -1}


# -------------------------------------------------------------------------------- images


class _Images:
    """The encoded images of a split, each as bytes or as its file."""

    def __init__(self, split: Dataset, column: str) -> None:
        undecoded = require("datasets", "train").Image(decode=False)
        self.split = split.select_columns([column]).cast_column(column, undecoded)
        self.column = column

    def __len__(self) -> int:
        return len(self.split)

    def __getitem__(self, row: int, /) -> bytes | Path:
        image = self.split[row][self.column]
        if image is None:
            raise ValueError(f"{self.name(row)} holds no image; remove the row.")
        return image["bytes"] if image["bytes"] is not None else Path(image["path"])

    def name(self, row: int) -> str:
        """Return what to call a row in an error, counted from 1."""
        return f"{self.split.split}, row {row + 1}"


def _shape(name: str, images: Mapping[str, _Images], image_size: int | None) -> tuple[int, int]:
    if image_size is not None:
        return image_size, image_size
    sizes = [image_sizes(items) for items in images.values()]
    (height, width), *others = np.unique(np.concatenate(sizes), axis=0).tolist()
    if others:
        raise ValueError(
            f"the images of {name!r} are of different sizes, from {height}×{width} to "
            f"{others[-1][0]}×{others[-1][1]} pixels; give an image size to bring them to."
        )
    return height, width
