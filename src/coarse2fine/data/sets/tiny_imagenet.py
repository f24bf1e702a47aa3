"""Tiny-ImageNet, as its makers and the Hugging Face hub give it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import torch

from ..._util.text import brief
from ..sources.image_sources import image_names
from ..sources.images import decode_all
from ..sources.parquet import read_parquet_images
from ..sources.table_files import find_parquet
from ..split import Source, Split
from .archives import broken, check_size, checked_bytes, decoded
from .imagenet import synset_names

OFFICIAL: Mapping[str, str] = {"tiny-imagenet-200.zip": "90528d7ca1a48142e341f4ef8d21d0de"}
"""The md5 of the official archive, by its name."""

_ARCHIVE = "tiny-imagenet-200.zip"
_TOP = "tiny-imagenet-200/"


def load_tiny_imagenet(folder: str | Path, *, checksums: Mapping[str, str] = OFFICIAL) -> Source:
    """Load Tiny-ImageNet: 100,000 images of 64×64 in 200 classes to train on, 10,000 to test.

    The folder, or its sub-folder tiny-imagenet-200 or tiny-imagenet, holds the official zip,
    or what is in it, or the Hugging Face hub's parquet files, if possible with words.txt
    beside them. The images to test on are those for validation, as the others have no
    labels. Classes are in the order of wnids.txt, called by the first of their synonyms.

    Args:
        folder: Where it is.
        checksums: The md5 that the zip must have, by its name. Defaults to the official.

    Raises:
        FileNotFoundError: There is none.
        ValueError: A file is broken, or not the official one.
    """
    folder = Path(folder)
    for place in (folder / "tiny-imagenet-200", folder / "tiny-imagenet", folder):
        if (place / "wnids.txt").is_file():
            return _source(_Unpacked(place))
        if (place / _ARCHIVE).is_file():
            return _source(_Zipped(place / _ARCHIVE, checksums))
        files = find_parquet(place, "valid")
        if files is not None:
            train, test = (_parquet_split(split, place / "words.txt") for split in files)
            return Source("image", train, test)
    raise FileNotFoundError(
        f"{folder} holds no Tiny-ImageNet; put {_ARCHIVE} there, packed or unpacked, or the "
        f"Hugging Face hub's files train-*.parquet and valid-*.parquet."
    )


class _Unpacked:
    """The official files in a folder."""

    def __init__(self, place: Path) -> None:
        self.where = place

    def read(self, name: str) -> bytes:
        return (self.where / name).read_bytes()

    def image(self, name: str) -> bytes | Path:
        return self.where / name

    def training_images(self) -> list[str]:
        return [f"train/{name}" for name in image_names(self.where / "train")]


class _Zipped:
    """The official files in their zip, held in memory, where each process has its own place."""

    def __init__(self, path: Path, checksums: Mapping[str, str]) -> None:
        self.where = path
        data = checked_bytes(path, checksums)
        try:
            self.zip = ZipFile(BytesIO(data))
            for member in self.zip.infolist():
                check_size(member.file_size, member.filename)
        except Exception as error:  # a broken archive leads its reader to raise whatever
            raise broken(path, error) from error

    def read(self, name: str) -> bytes:
        try:
            return self.zip.read(_TOP + name)
        except KeyError:
            raise FileNotFoundError(
                f"{self.where} lacks {brief(name)}; download it again."
            ) from None
        except Exception as error:  # a broken archive leads its reader to raise whatever
            raise broken(self.where / brief(name), error) from error

    def image(self, name: str) -> bytes | Path:
        return self.read(name)

    def training_images(self) -> list[str]:
        inside = (name.removeprefix(_TOP) for name in self.zip.namelist())
        return [name for name in inside if name.startswith("train/") and name.endswith(".JPEG")]


_Files = _Unpacked | _Zipped


class _Images:
    """Some of the images."""

    def __init__(self, files: _Files, names: Sequence[str]) -> None:
        self.files, self.names = files, names

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, row: int, /) -> bytes | Path:
        return self.files.image(self.names[row])

    def name(self, row: int) -> str:
        return str(self.files.where / brief(self.names[row]))


def _text(files: _Files, name: str) -> str:
    return decoded(files.read(name), files.where / name)


def _source(files: _Files) -> Source:
    wnids = _text(files, "wnids.txt").split()
    class_names = synset_names(wnids, _text(files, "words.txt"))
    places = {wnid: place for place, wnid in enumerate(wnids)}

    def split(labelled: Sequence[tuple[str, str]]) -> Split:
        if not labelled:
            raise ValueError(f"{files.where} holds no classes; download it again.")
        names, classes = zip(*labelled, strict=True)
        unknown = [name for name, wnid in labelled if wnid not in places]
        if unknown:
            place = files.where / brief(unknown[0])
            raise ValueError(f"{place} is of a class that wnids.txt lacks.")
        images = decode_all(_Images(files, names))
        return Split(images, torch.tensor([places[wnid] for wnid in classes]), class_names)

    return Source("image", split(_train_images(files, places)), split(_test_images(files)))


def _train_images(files: _Files, places: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the names and classes of the images to train on, class by class."""
    found = [(name, name.split("/")[1]) for name in files.training_images()]
    missing = places.keys() - {wnid for _, wnid in found}
    if missing:
        raise ValueError(f"{files.where}: train/{brief(min(missing))} holds no images.")
    # Images of a class are numbered from 0 without leading zeros.
    return sorted(found, key=lambda one: (places.get(one[1], -1), len(one[0]), one[0]))


def _test_images(files: _Files) -> list[tuple[str, str]]:
    name = "val/val_annotations.txt"
    lines = [line.split("\t") for line in _text(files, name).splitlines()]
    if not lines or any(len(line) < 2 for line in lines):
        raise ValueError(f"{files.where / name} must have an image and a class in each line.")
    outside = [line[0] for line in lines if Path(line[0]).name != line[0] or "\\" in line[0]]
    if outside:
        raise ValueError(f"{files.where / name} names {brief(outside[0])}, not an image beside it.")
    return [(f"val/images/{line[0]}", line[1]) for line in lines]


def _parquet_split(files: Sequence[Path], words: Path) -> Split:
    images, labels, wnids = read_parquet_images(files)
    if wnids is None:
        raise ValueError(f"{files[0]} names no classes; download it again.")
    text = decoded(words.read_bytes(), words) if words.is_file() else ""
    return Split(images, labels, synset_names(wnids, text))
