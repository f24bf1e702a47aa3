"""ImageNet (ILSVRC 2012), in the layouts that people have it in."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from ..._util.tables import csv_rows
from ..._util.text import brief
from ..sources.image_sources import (
    Files,
    LazyImages,
    class_folders,
    image_names,
    labelled_files,
)
from ..sources.parquet import ParquetImages, read_parquet_labels
from ..sources.table_files import find_parquet
from ..split import Source, Split
from .archives import decoded
from .matlab import read_structs

SHARE = 224 / 256
"""To evaluate, the part of the largest centred crop's sides that is kept."""


def load_imagenet(folder: str | Path, size: int = 224) -> Source:
    """Load ImageNet, whose images are decoded only when they are needed.

    The folder holds one of: train and val with a folder for each class; the same below
    ILSVRC/Data/CLS-LOC, as Kaggle has it, where the images of val may lie side by side if
    LOC_val_solution.csv, or the development kit with ILSVRC2012_validation_ground_truth.txt
    and meta.mat, is there; or the Hugging Face hub's parquet files. The images to test on
    are those for validation, as the others have no labels. Classes are in the order of their
    WordNet numbers, and called by the first of their synonyms where
    LOC_synset_mapping.txt, words.txt or the parquet files tell it.

    To evaluate, the shorter side is resized to 256/224 of `size` and the centre cropped; to
    train, random crops are resized and flipped (see `LazyImages`).

    Args:
        folder: Where it is.
        size: The height and width of every image that is read. Defaults to 224.

    Raises:
        FileNotFoundError: There is none, or a part is missing.
        ValueError: Images and classes do not fit together.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1. Got {size}.")
    folder = Path(folder)
    for place in (folder, folder / "imagenet"):
        for inner in ("", "ILSVRC/Data/CLS-LOC", "Data/CLS-LOC"):
            if (place / inner / "train").is_dir() and class_folders(place / inner / "train"):
                return _folders_source(place, place / inner, size)
        files = find_parquet(place, "validation")
        if files is not None:
            train, test = (_parquet_split(split, size) for split in files)
            return Source("image", train, test)
    raise FileNotFoundError(
        f"{folder} holds no ImageNet; put the folders train and val there, or ILSVRC, or the "
        f"Hugging Face hub's files train-*.parquet and validation-*.parquet."
    )


def synset_names(wnids: Sequence[str], text: str) -> tuple[str, ...]:
    """Return what classes are called that are known by their numbers in WordNet.

    Args:
        wnids: The numbers.
        text: Lines of a number and its synonyms, such as ``words.txt`` has; a class that they
            do not name is called by its number.

    Examples:
        >>> synset_names(["n01440764", "n02"], "n01440764 tench, Tinca tinca")
        ('tench', 'n02')
    """
    lines = (line.split(maxsplit=1) for line in text.splitlines())
    synonyms = {parts[0]: parts[1] for parts in lines if len(parts) == 2}
    return short_names([synonyms.get(wnid, wnid) for wnid in wnids], wnids)


def short_names(synonyms: Sequence[str], numbers: Sequence[str]) -> tuple[str, ...]:
    """Return the first synonym of each class, with its number where two have the same.

    Examples:
        >>> short_names(["tench, Tinca tinca", "crane", "crane"], ["n01", "n02", "n03"])
        ('tench', 'crane (n02)', 'crane (n03)')
    """
    names = [text.split(",")[0].strip() for text in synonyms]
    counts = Counter(names)
    return tuple(
        name if counts[name] == 1 else f"{name} ({number})"
        for name, number in zip(names, numbers, strict=True)
    )


def _folders_source(place: Path, images: Path, size: int) -> Source:
    wnids = tuple(path.name for path in class_folders(images / "train"))
    named = (place / name for name in ("LOC_synset_mapping.txt", "words.txt"))
    text = next((decoded(path.read_bytes(), path) for path in named if path.is_file()), "")
    class_names = synset_names(wnids, text)

    def split(files: Files, targets: Tensor) -> Split:
        return Split(LazyImages(files, (size, size), SHARE), targets, class_names)

    train, val = images / "train", images / "val"
    test = labelled_files(val, wnids) if class_folders(val) else _flat_files(val, place, wnids)
    return Source("image", split(*labelled_files(train, wnids)), split(*test))


def _flat_files(val: Path, place: Path, wnids: Sequence[str]) -> tuple[Files, Tensor]:
    """Return the images of a folder without class folders, and their classes."""
    names = sorted(image_names(val))
    if not names:
        raise ValueError(f"{val} holds no images; put those for validation there.")
    told_by, answers = _answers(place, names)
    places = {wnid: number for number, wnid in enumerate(wnids)}
    for name in names:
        if answers.get(Path(name).stem) not in places:
            raise ValueError(
                f"{told_by} tells no class of {val / name} that is among those to train on."
            )
    return Files(val, names), torch.tensor([places[answers[Path(name).stem]] for name in names])


def _answers(place: Path, names: Sequence[str]) -> tuple[Path, dict[str, str]]:
    """Return the file that tells the classes of images, and their WordNet numbers by name."""
    solution = place / "LOC_val_solution.csv"
    kits = ("ILSVRC2012_devkit_t12/data", "devkit/data", "")
    truths = (place / kit / "ILSVRC2012_validation_ground_truth.txt" for kit in kits)
    for path in (solution, *truths):
        if path.is_file():
            try:
                return path, _solution(path) if path == solution else _ground_truth(path, names)
            except (ValueError, LookupError, OSError, zlib.error) as error:
                text = brief(f"{type(error).__name__}: {error}")
                raise ValueError(f"{path} cannot be used ({text}); download it again.") from error
    raise FileNotFoundError(
        f"the images of val have no class folders, and their classes are told by neither "
        f"{solution} nor {path}; put one of them there."
    )


def _solution(path: Path) -> dict[str, str]:
    # "n03995372 85 1 499 272" is an object and where it is in the image.
    return {name: objects.split()[0] for _, (name, objects) in list(csv_rows(path))[1:]}


def _ground_truth(path: Path, names: Sequence[str]) -> dict[str, str]:
    numbers = [int(line) for line in decoded(path.read_bytes(), path).split()]
    if len(numbers) != len(names):
        raise ValueError(f"it has {len(numbers)} lines for {len(names)} images")
    meta = path.with_name("meta.mat").read_bytes()
    synsets = read_structs(meta, ("ILSVRC2012_ID", "WNID"))
    wnids = {synset["ILSVRC2012_ID"]: synset["WNID"] for synset in synsets}
    stems = (Path(name).stem for name in names)
    return {stem: str(wnids[number]) for stem, number in zip(stems, numbers, strict=True)}


def _parquet_split(files: Sequence[Path], size: int) -> Split:
    images = ParquetImages(files)
    labels, names = read_parquet_labels(files)
    if names is None:
        raise ValueError(f"{files[0]} names no classes; download it again.")
    class_names = short_names(names, [str(number) for number in range(len(names))])
    return Split(LazyImages(images, (size, size), SHARE), labels, class_names)
