"""CIFAR-10 and CIFAR-100, as their makers and the Hugging Face hub give them out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..sources.parquet import read_parquet_images, read_parquet_labels
from ..sources.table_files import find_parquet
from ..split import Groups, Source, Split, check_class_indices
from .archives import checked_bytes, decoded, tar_members
from .pickles import plain_values

OFFICIAL: Mapping[str, str] = {
    "cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a",
    "cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530",
    "cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85",
    "cifar-100-binary.tar.gz": "03b5dce01913d631647c71ecec9e9cb8",
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
    "batches.meta": "5ff9c542aee3614f3951f8cda6e48888",
    "train": "16019d7e3df5f24257cddd939b257f8d",
    "test": "f0ef6b0ae62326f3e7ffdfab6717acfc",
    "meta": "7973b15100ade9c7d40fb424638fde48",
}
"""The md5 of the official files, by their names."""

Batch = tuple[NDArray[np.uint8], Sequence[int]]

_SHAPE = (3, 32, 32)
_PIXELS = 3 * 32 * 32


def load_cifar10(folder: str | Path, *, checksums: Mapping[str, str] = OFFICIAL) -> Source:
    """Load CIFAR-10: 50,000 images of 32×32 in 10 classes to train on, 10,000 to test.

    The folder, or its usual sub-folder, holds one of: the python or the binary version that
    its makers give out, as tar.gz or unpacked, or the parquet files of the Hugging Face hub.

    Args:
        folder: Where it is.
        checksums: The md5 that files must have, by their names. Defaults to the official.

    Raises:
        FileNotFoundError: There is none.
        ValueError: A file is broken, or not the official one.
    """
    batches = tuple(f"data_batch_{number}" for number in range(1, 6))
    pickles = _Pickles("labels", "batches.meta", "label_names")
    records = _Records(1, 0, "batches.meta.txt")
    versions = (
        _Version("cifar-10-python.tar.gz", "cifar-10-batches-py", batches, "test_batch", pickles),
        _Version(
            "cifar-10-binary.tar.gz",
            "cifar-10-batches-bin",
            tuple(f"{batch}.bin" for batch in batches),
            "test_batch.bin",
            records,
        ),
    )
    return _load("CIFAR-10", Path(folder), versions, ("label",), checksums)


def load_cifar100(
    folder: str | Path, coarse: bool = False, *, checksums: Mapping[str, str] = OFFICIAL
) -> Source:
    """Load CIFAR-100: 50,000 images of 32×32 in 100 classes to train on, 10,000 to test.

    The classes come with their 20 superclasses, as groups.

    Args:
        folder: Where it is, in any of the forms that `load_cifar10` reads.
        coarse: Whether to take the superclasses instead. Defaults to False.
        checksums: The md5 that files must have, by their names. Defaults to the official.

    Raises:
        FileNotFoundError: There is none.
        ValueError: A file is broken, or not the official one.
    """
    kinds = ("coarse",) if coarse else ("fine", "coarse")
    place = {"coarse": 0, "fine": 1}
    pickles = (_Pickles(f"{kind}_labels", "meta", f"{kind}_label_names") for kind in kinds)
    records = (_Records(2, place[kind], f"{kind}_label_names.txt") for kind in kinds)
    python, binary = "cifar-100-python", "cifar-100-binary"
    versions = (
        _Version(f"{python}.tar.gz", python, ("train",), "test", *pickles),
        _Version(f"{binary}.tar.gz", binary, ("train.bin",), "test.bin", *records),
    )
    columns = tuple(f"{kind}_label" for kind in kinds)
    return _load("CIFAR-100", Path(folder), versions, columns, checksums)


# -------------------------------------------------------------------- official versions


@dataclass(frozen=True)
class _Pickles:
    """The python version: each file a pickled dict, the images its data."""

    labels: str
    names_file: str
    names: str

    def batch(self, data: bytes, name: Path) -> Batch:
        values = plain_values(data, str(name))
        pixels, found = values.get("data"), values.get(self.labels)
        if isinstance(pixels, np.ndarray) and isinstance(found, list):
            labels = [label for label in found if type(label) is int]
            if pixels.shape == (len(labels), _PIXELS) and len(labels) == len(found):
                return pixels, labels
        raise ValueError(f"{name} holds no images with {self.labels}; download it again.")

    def class_names(self, data: bytes, name: Path) -> list[str]:
        found = plain_values(data, str(name)).get(self.names)
        texts = (
            [text for text in found if isinstance(text, bytes)] if isinstance(found, list) else []
        )
        if not isinstance(found, list) or len(texts) != len(found):
            raise ValueError(f"{name} holds no {self.names}; download it again.")
        return [decoded(text, name) for text in texts]


@dataclass(frozen=True)
class _Records:
    """The binary version: each image a record, a few labels of a byte and then the pixels."""

    labels: int
    place: int
    names_file: str

    def batch(self, data: bytes, name: Path) -> Batch:
        length = self.labels + _PIXELS
        if not data or len(data) % length:
            raise ValueError(
                f"{name} must hold records of {length} bytes. Got {len(data)} bytes; it is cut "
                f"off or another file: download it again."
            )
        records = np.frombuffer(data, np.uint8).reshape(-1, length)
        return records[:, self.labels :], records[:, self.place].tolist()

    def class_names(self, data: bytes, name: Path) -> list[str]:
        return decoded(data, name).split()


@dataclass(frozen=True)
class _Version:
    """Where the makers put what; groups of the classes, if there are any, in the same files."""

    archive: str
    folder: str
    train: tuple[str, ...]
    test: str
    format: _Pickles | _Records
    groups: _Pickles | _Records | None = None

    def read(self, place: Path, checksums: Mapping[str, str]) -> Source | None:
        """Return what is in a folder, unpacked or not; None where there is neither."""
        formats = (self.format, self.groups) if self.groups else (self.format,)
        names_files = {format.names_file: None for format in formats}
        wanted = (*self.train, self.test, *names_files)
        where = place / self.archive
        if where.is_file():
            files = tar_members(checked_bytes(where, checksums), wanted, where)
        elif (place / self.train[0]).is_file():
            where = place
            there = (place / name for name in wanted if (place / name).is_file())
            files = {path.name: checked_bytes(path, checksums) for path in there}
        else:
            return None
        missing = [name for name in wanted if name not in files]
        if missing:
            raise FileNotFoundError(f"{where} lacks {', '.join(missing)}; download it again.")
        return self._source(files, where)

    def _source(self, files: Mapping[str, bytes], where: Path) -> Source:
        train, test = (
            _split(self.format, files, part, where) for part in (self.train, (self.test,))
        )
        groups = None
        if self.groups is not None:
            batches, names = _batches(self.groups, files, self.train, where)
            groups = Groups(_labels(batches), names)
        return Source("image", train, test, groups=groups)


def _split(
    format: _Pickles | _Records, files: Mapping[str, bytes], part: Sequence[str], where: Path
) -> Split:
    batches, class_names = _batches(format, files, part, where)
    pixels = np.concatenate([pixels for pixels, _ in batches]).reshape(-1, *_SHAPE)
    return Split(torch.from_numpy(pixels), _labels(batches), class_names)


def _labels(batches: Sequence[Batch]) -> Tensor:
    return torch.tensor([label for _, labels in batches for label in labels])


def _batches(
    format: _Pickles | _Records, files: Mapping[str, bytes], part: Sequence[str], where: Path
) -> tuple[list[Batch], tuple[str, ...]]:
    """Return what a format reads from some files, and what its labels are called."""
    names_file = format.names_file
    class_names = format.class_names(files[names_file], where / names_file)
    batches = [format.batch(files[name], where / name) for name in part]
    for name, (_, labels) in zip(part, batches, strict=True):
        check_class_indices(np.asarray(labels), len(class_names), str(where / name))
    return batches, tuple(class_names)


# --------------------------------------------------------------------------- all of them


def _load(
    title: str,
    folder: Path,
    versions: Sequence[_Version],
    columns: Sequence[str],
    checksums: Mapping[str, str],
) -> Source:
    usual = title.replace("-", "").lower()
    for place in (folder, folder / usual):
        for version in versions:
            for inner in (place / version.folder, place):
                source = version.read(inner, checksums)
                if source is not None:
                    return source
        files = find_parquet(place, "test")
        if files is not None:
            train, test = (_parquet_split(split, columns[0]) for split in files)
            groups = [_parquet_groups(files[0], column) for column in columns[1:]]
            return Source("image", train, test, groups=groups[0] if groups else None)
    archives = " or ".join(version.archive for version in versions)
    raise FileNotFoundError(
        f"{folder} holds no {title}; put {archives} there, packed or unpacked, or the Hugging "
        f"Face hub's files train-*.parquet and test-*.parquet."
    )


def _parquet_split(files: Sequence[Path], column: str) -> Split:
    images, labels, class_names = read_parquet_images(files, label_column=column)
    if images.shape[1:] != _SHAPE:
        raise ValueError(
            f"{files[0]} must hold images of 32×32. Got {images.shape[3]}×{images.shape[2]}."
        )
    return Split(images, labels, _named(class_names, files, column))


def _parquet_groups(files: Sequence[Path], column: str) -> Groups:
    labels, names = read_parquet_labels(files, column)
    return Groups(labels, _named(names, files, column))


def _named(names: Sequence[str] | None, files: Sequence[Path], column: str) -> tuple[str, ...]:
    if names is None:
        raise ValueError(f"{files[0]} names no classes for {column}; download it again.")
    return tuple(names)
