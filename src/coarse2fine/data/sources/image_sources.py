"""Sources of images: folders of files, or whatever else gives them, decoded now or later."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..._util.text import did_you_mean
from ...hierarchy import Hierarchy
from ..split import ROLES, Source, Split
from .images import Box, Encoded, centre_box, decode, decode_all, image_sizes, name_of
from .trees import GivenTree

MEMORY_LIMIT = 4 * 2**30
"""How many bytes of pixels are held in memory; of a larger set, images are decoded when needed."""

# The usual random crop of ImageNet: its share of the area, and width over height.
_AREAS = (0.08, 1.0)
_ASPECTS = (3 / 4, 4 / 3)
_TRIES = 10

EXTENSIONS = (
    *(".jpeg", ".jpg", ".jpe", ".jfif", ".jp2", ".png", ".webp", ".avif", ".gif"),
    *(".bmp", ".tif", ".tiff", ".pbm", ".pgm", ".ppm", ".pnm"),
)
"""What the names of image files end in."""

_LARGEST_DEFAULT_SIZE = 224


def image_source(
    images: Mapping[str, Encoded],
    targets: Mapping[str, Tensor],
    class_names: tuple[str, ...],
    size: tuple[int, int],
    memory_limit: int = MEMORY_LIMIT,
    hierarchy: Hierarchy | None = None,
) -> Source:
    """Return images to train on and others, decoded now if memory holds them all, else later.

    Args:
        images: Those to train on as ``"train"`` and, where there are such, those to test and
            to validate on as ``"test"`` and ``"val"``.
        targets: Their classes.
        class_names: The names of the classes.
        size: The height and width to bring all images to.
        memory_limit: How many bytes of pixels to hold in memory. Defaults to 4 GiB.
        hierarchy: The tree of which targets are nodes. Defaults to None: they are classes.
    """
    is_lazy = 3 * math.prod(size) * sum(map(len, images.values())) > memory_limit
    read = LazyImages if is_lazy else decode_all
    splits = {
        role: Split(read(items, size), targets[role], class_names, hierarchy=hierarchy)
        for role, items in images.items()
    }
    return Source("image", columns=(), groups=None, **splits)


class LazyImages:
    """`LazyInputs` of images in files; can be pickled, so any loader's process can read it.

    Args:
        items: The encoded images, or their files.
        size: The height and width of every image that is read.
        share: Without randomness, the part of the largest centred crop's sides that is kept
            and resized to `size`. Defaults to 1.0; 224 / 256 is usual for ImageNet.

    Attributes:
        is_plain: That without randomness an image is always the same.
    """

    is_plain = True

    def __init__(self, items: Encoded, size: tuple[int, int], share: float = 1.0) -> None:
        self.items, self.size, self.share = items, size, share

    def __len__(self) -> int:
        return len(self.items)

    def read(self, row: int, rng: np.random.Generator | None) -> Tensor:
        """Return an image as uint8 of shape (3, height, width).

        Args:
            row: Which image.
            rng: Draws a random crop (8 to 100 % of the area, at most 4:3 off in shape) and
                whether to flip it; None gives the centre.
        """
        crop = partial(centre_box, share=self.share) if rng is None else partial(random_box, rng)
        pixels = decode(self.items[row], self.size, crop=crop, name=name_of(self.items, row))
        if rng is not None and rng.random() < 0.5:
            pixels = pixels[:, ::-1]
        return torch.from_numpy(np.ascontiguousarray(pixels.transpose(2, 0, 1)))


def random_box(rng: np.random.Generator, width: int, height: int, aspect: float) -> Box:
    """Return a random box (left, top, right, bottom), of 8 to 100 % of an image's area.

    Its shape is up to 4:3 flatter or higher than `aspect`; if ten draws do not fit into the
    image, the centred box of the nearest shape that does is taken.

    Args:
        rng: What to draw from.
        width: Of the image.
        height: Of the image.
        aspect: Width over height of what the box will be resized to.
    """
    low, high = math.log(_ASPECTS[0] * aspect), math.log(_ASPECTS[1] * aspect)
    for _ in range(_TRIES):
        area = width * height * rng.uniform(*_AREAS)
        shape = math.exp(rng.uniform(low, high))
        box_width, box_height = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < box_width <= width and 0 < box_height <= height:
            left = int(rng.integers(0, width - box_width + 1))
            top = int(rng.integers(0, height - box_height + 1))
            return left, top, left + box_width, top + box_height
    return centre_box(width, height, min(max(width / height, math.exp(low)), math.exp(high)))


# -------------------------------------------------------------------------------- folders


def load_folder(
    folder: str | Path,
    size: int | None = None,
    *,
    class_names: Sequence[str] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    tree: GivenTree | None = None,
) -> Source:
    """Load a folder that holds a folder of images for each class.

    Instead, it may hold such folders called train, test and val (or valid, validation, dev), of
    which only train is needed. A class's images may lie in folders within its folder. Hidden
    files, and those whose extension is not an image's, are left out.

    Args:
        folder: Where the images are.
        size: The height and width to bring all images to, by resizing the shorter side and
            cropping the centre. Defaults to None: images that are all of one size stay as
            they are; others are brought to the median shorter side of those to train on, at
            most 224.
        class_names: The classes in the order of their targets, of which some may have no
            folder. Defaults to None: those that have one, sorted.
        memory_limit: How many bytes of pixels to hold in memory; where there are more,
            images are decoded when they are needed. Defaults to 4 GiB.
        tree: Whose clusters folders may be called by too. Defaults to None.

    Raises:
        FileNotFoundError: There is no such folder.
        ValueError: There are fewer than two classes, one has no images or is not among
            those to train on, or a file is not an image.
    """
    if size is not None and size < 1:
        raise ValueError(f"size must be at least 1. Got {size}.")
    folders = split_folders(Path(folder))
    names = tuple(class_names or (path.name for path in class_folders(folders["train"])))
    if len(names) < 2:
        raise ValueError(
            f"{folders['train']} must hold a folder for each of two or more classes. Got "
            f"{', '.join(names) or 'none'}."
        )
    names = names if tree is None else tree.names(names, class_names)
    files, targets = {}, {}
    for role, path in folders.items():
        files[role], targets[role] = labelled_files(path, names)
    return image_source(files, targets, names, common_size(files, size), memory_limit)


class Files:
    """Files below a folder.

    Args:
        folder: The folder.
        names: Their paths within it.
    """

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        self.folder = folder
        # Millions of strings would each be copied to every worker as soon as it counts a
        # reference to them; the pages of an array stay shared.
        self.names = np.array([os.fsencode(name) for name in names], dtype=np.bytes_)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, row: int, /) -> Path:
        return self.folder / os.fsdecode(self.names[row])


def class_folders(folder: Path) -> list[Path]:
    """Return the folders in a folder, sorted by name, without hidden ones."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}.")
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name[0] != ".")


def labelled_files(folder: Path, class_names: tuple[str, ...]) -> tuple[Files, Tensor]:
    """Return the images in the class folders of a folder, and their classes.

    Args:
        folder: Holds a folder for each class, or for some of them.
        class_names: What the class folders may be called.
    """
    names: list[str] = []
    targets = []
    for path in class_folders(folder):
        if path.name not in class_names:
            raise ValueError(
                f"{path} is of a class that is not among those to train on; remove the folder, "
                f"or add images of {path.name} to train on.{did_you_mean(path.name, class_names)}"
            )
        found = sorted(image_names(path))
        if not found:
            raise ValueError(f"{path} holds no images; remove the folder or put some there.")
        names += [f"{path.name}/{name}" for name in found]
        targets.append(torch.full((len(found),), class_names.index(path.name)))
    if not targets:
        raise ValueError(f"{folder} holds no class folders; put its images into some.")
    return Files(folder, names), torch.cat(targets)


def image_names(folder: Path, seen: set[Path] | None = None) -> Iterator[str]:
    """Yield the paths, seen from a folder, of the images in it and in all folders within.

    A folder that links lead to in several ways is looked into once.

    Args:
        folder: Where to look.
        seen: The folders that were looked into, as links may lead in circles. Defaults to
            None: none yet.
    """
    seen = set() if seen is None else seen
    seen.add(folder.resolve())
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        if entry.name[0] == ".":
            continue
        inner = folder / entry.name if _is_dir(entry) else None
        if inner is None and entry.name.lower().endswith(EXTENSIONS):
            yield entry.name
        elif inner is not None and inner.resolve() not in seen:
            yield from (f"{entry.name}/{name}" for name in image_names(inner, seen))


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Whether it is a folder or leads to one; a link that leads in a circle does not."""
    return entry.is_dir(follow_symlinks=False) or (entry.is_symlink() and Path(entry).is_dir())


def split_folders(folder: Path) -> dict[str, Path]:
    """Return the folders of each role, train, test and val, that there are.

    Args:
        folder: Holds them, or else is the folder to train on itself.
    """
    inner = {path.name.lower(): path for path in class_folders(folder)}
    others = {
        role: inner[name] for role in ("test", "val") for name in ROLES[role][::-1] if name in inner
    }
    # A class may be called train; such a folder holds images rather than class folders.
    if "train" in inner and (others or len(inner) == 1) and class_folders(inner["train"]):
        return {"train": inner["train"], **others}
    if others and len(inner) == len(others):
        raise ValueError(f"{folder} holds {', '.join(inner)} but no folder train; add that.")
    return {"train": folder}


def common_size(files: Mapping[str, Files], size: int | None) -> tuple[int, int]:
    """Return the height and width to bring images to.

    Args:
        files: The images of each role.
        size: As for `load_folder`.
    """
    if size is not None:
        return size, size
    sizes = {role: image_sizes(found) for role, found in files.items()}
    different = np.unique(np.concatenate(list(sizes.values())), axis=0)
    if len(different) == 1:
        return int(different[0, 0]), int(different[0, 1])
    median = int(np.median(sizes["train"].min(axis=1)))
    return (min(median, _LARGEST_DEFAULT_SIZE),) * 2
