"""Targets: folders of images, with whatever else may lie in them."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fuzz_choices import Choices
from fuzz_guard import Attempt
from fuzz_trees import steered
from PIL import Image

from coarse2fine.data.sets.imagenet import load_imagenet
from coarse2fine.data.sources.image_sources import load_folder

FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "EPS")


def picture(format: str, size: tuple[int, int] = (6, 5)) -> bytes:
    """A small image as a file of some format."""
    pixels = np.arange(size[0] * size[1] * 3, dtype=np.uint8).reshape(size[1], size[0], 3)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format)
    return file.getvalue()


def put(path: Path, content: bytes) -> None:
    """Write a file, and the folders it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def image_folder(folder: Path) -> Any:
    pictures = [picture(format) for format in FORMATS]
    outside = folder / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(pictures[0])
    place = folder / "images"

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        for name in ("a", "b"):
            put(place / name / "0.png", pictures[0])
        if choices.number(2):
            for _ in range(choices.number(6)):
                _odd_entry(place, choices, pictures)
        else:
            picked = choices.number(len(FORMATS) + 1)
            whole = choices.edited(pictures[picked]) if picked < len(FORMATS) else choices.rest()
            put(place / "a" / f"1.{choices.pick(('png', 'jpg', 'TIFF', 'gif'))}", whole)
        size = choices.pick((None, 4))
        load = partial(_all_read, place, size)
        yield Attempt(load, named=str(place), is_printable=False)
        shutil.rmtree(place)

    return attempts


def _all_read(place: Path, size: int | None) -> None:
    load_folder(place, size)
    lazy = load_folder(place, size or 4, memory_limit=0)
    for row in range(len(lazy.train)):
        lazy.train.inputs.read(row, np.random.default_rng(row))  # type: ignore[union-attr]


ENTRIES = (
    *(b"c", b"a/1.png", b"a/deep/2.JPG", b"test/a/0.png", b"train/a/1.png", b"val/b/0.gif", b"d/x"),
    *(b"\xff\xfe/0.png", b"a/\xff.png", b"a/.hidden.png", b"CON/aux.png", b"a/new\nline.png"),
    *(b"c/3.txt", b"a/" + b"n" * 240 + b".png", b"-/--help.png", b"a/\x1b[31m.png", b"b/..png"),
)


def _odd_entry(place: Path, choices: Choices, pictures: list[bytes]) -> None:
    """Put a file, folder, link, pipe or device of some name into a folder of images."""
    path = place / os.fsdecode(choices.pick(ENTRIES))
    kind = choices.number(10)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == 0:
            path.mkdir()
        elif kind == 1:
            path.symlink_to(choices.pick(("../../outside", "../outside/secret.png", ".", "..")))
        elif kind == 2:
            path.symlink_to(choices.pick((path.name, "nothing", "/dev/zero", "/dev/null")))
        elif kind == 3:
            os.mkfifo(path)
        else:
            with path.open("xb") as file:  # never through a link, or into a pipe
                file.write(choices.edited(choices.pick(pictures)))
    except OSError:  # the name is taken, or the system does not allow it
        pass


def image_seeds() -> list[bytes]:
    raw = [b"\0" + bytes([len(FORMATS)]) + picture(format) for format in FORMATS]
    edits = [b"\0" + bytes([number]) + one for number in range(7) for one in steered(2)]
    return [*raw, *edits, *(b"\1" + one[1:] for one in steered(24))]


def imagenet(folder: Path) -> Any:
    image = picture("JPEG")
    good = {
        "LOC_val_solution.csv": b"ImageId,PredictionString\nv1,n01 1 2 3 4\nv2,n02 1 1 1 1\n",
        "ILSVRC2012_validation_ground_truth.txt": b"1\n2\n",
        "meta.mat": _meta(),
        "LOC_synset_mapping.txt": b"n01 cat, pussy\nn02 dog\n",
    }
    names = ["train/n01/a.JPEG", "train/n02/b.JPEG", "val/v1.JPEG", "val/v2.JPEG"]
    for name in names:
        put(folder / name, image)

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        name = choices.pick(sorted(good))
        whole = choices.edited(good[name]) if choices.number(2) else choices.rest()
        solution = folder / "LOC_val_solution.csv"
        for file, content in {**good, name: whole}.items():
            (folder / file).write_bytes(content)
        if name in ("meta.mat", "ILSVRC2012_validation_ground_truth.txt"):
            solution.unlink()
        yield Attempt(partial(load_imagenet, folder, 4), named=str(folder))

    return attempts


def _meta() -> bytes:
    from scipy.io import savemat

    kind = [("ILSVRC2012_ID", "f8"), ("WNID", object)]
    file = io.BytesIO()
    savemat(file, {"synsets": np.array([(1, "n01"), (2, "n02")], dtype=kind)})
    return file.getvalue()


def imagenet_seeds() -> list[bytes]:
    raw = [
        b"\1\0v,n\nv1,n01\nv2,n02 1\n",
        b"\0\0" + b"1 2",
        b"\2\0" + b"n01 cat\n",
        b"\3\0" + _meta(),
    ]
    return [*raw, *(bytes([f]) + one for f in range(4) for one in steered(5))]
