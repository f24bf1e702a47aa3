"""Small fake data sets in the formats of the real ones."""

from __future__ import annotations

import hashlib
import io
import json
import struct
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image


def encoded(pixels: Any, format: str = "PNG", **options: Any) -> bytes:
    """An array of pixels, or a Pillow image, as a file's bytes."""
    image = pixels if isinstance(pixels, Image.Image) else Image.fromarray(pixels)
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def photo(width: int, height: int, seed: int = 0) -> np.ndarray:
    """A smooth picture in colour, which JPEG changes little."""
    small = np.random.default_rng(seed).integers(0, 256, (4, 4, 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def write_image(path: Path, pixels: np.ndarray, **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    formats = {".png": "PNG", ".bmp": "BMP", ".gif": "GIF", ".webp": "WEBP", ".tif": "TIFF"}
    format = formats.get(path.suffix.lower(), "JPEG")
    path.write_bytes(encoded(pixels, format, **options))
    return path


def write_parquet(
    path: Path,
    images: list[bytes | None],
    columns: dict[str, list[Any]],
    names: dict[str, list[str]] | None = None,
    image_column: str = "image",
    **options: Any,
) -> Path:
    """A parquet file as the hub has them, with class names in its schema."""
    cells = [{"bytes": data, "path": None} for data in images]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    table = pa.table({image_column: pa.array(cells, kind), **columns})
    if names is not None:
        features = {
            column: {"names": list(n), "_type": "ClassLabel"} for column, n in names.items()
        }
        info = json.dumps({"info": {"features": features}})
        table = table.replace_schema_metadata({"huggingface": info})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path, **options)
    return path


def python2_pickle(value: Any) -> bytes:
    """What cPickle of Python 2 wrote by protocol 2, where str is bytes."""
    return b"\x80\x02" + _opcodes(value) + b"."


def _opcodes(value: Any) -> bytes:
    if isinstance(value, dict):
        pairs = b"".join(_opcodes(key) + _opcodes(item) for key, item in value.items())
        return b"}(" + pairs + b"u"
    if isinstance(value, list):
        return b"](" + b"".join(map(_opcodes, value)) + b"e"
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_opcodes, value)) + b"t"
    if isinstance(value, np.ndarray):
        columns = value.flags.f_contiguous and not value.flags.c_contiguous
        state = (1, value.shape, np.dtype, columns, value.tobytes("F" if columns else "C"))
        empty = b"cnumpy\nndarray\n" + _opcodes((0,)) + _opcodes(b"b")
        return b"cnumpy.core.multiarray\n_reconstruct\n(" + empty + b"tR" + _opcodes(state) + b"b"
    if value is np.dtype:
        state = _opcodes((3, b"|", None, None, None, -1, -1, 0))
        return (
            b"cnumpy\ndtype\n(" + _opcodes(b"u1") + _opcodes(0) + _opcodes(1) + b"tR" + state + b"b"
        )
    if value is None or isinstance(value, bool):
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    text = value.encode() if isinstance(value, str) else value
    return b"T" + struct.pack("<i", len(text)) + text


# --------------------------------------------------------------------------------- CIFAR


class Cifar:
    """A CIFAR of a few random images; each method writes one of its versions."""

    def __init__(self, kind: int) -> None:
        rng = np.random.default_rng(kind)
        self.kind = kind
        self.fine_names = [f"class_{number}" for number in range(kind)]
        self.coarse_names = [f"group_{number}" for number in range(20)]
        self.batches = [f"data_batch_{number}" for number in range(1, 6)]
        if kind == 100:
            self.batches = ["train"]
        self.test = "test_batch" if kind == 10 else "test"
        self.parts = {
            name: (
                rng.integers(0, 256, (4, 3072), dtype=np.uint8),
                rng.integers(0, kind, 4).tolist(),
                rng.integers(0, 20, 4).tolist(),
            )
            for name in (*self.batches, self.test)
        }

    def python_files(self) -> dict[str, bytes]:
        files = {}
        for name, (pixels, fine, coarse) in self.parts.items():
            labels = {"labels": fine}
            if self.kind == 100:
                labels = {"fine_labels": fine, "coarse_labels": coarse}
            content = {"data": pixels, **labels, "filenames": ["a.png"] * 4, "batch_label": name}
            files[name] = python2_pickle(content)
        if self.kind == 10:
            files["batches.meta"] = python2_pickle({"label_names": self.fine_names})
        else:
            names = {"fine_label_names": self.fine_names, "coarse_label_names": self.coarse_names}
            files["meta"] = python2_pickle(names)
        return files

    def binary_files(self) -> dict[str, bytes]:
        files = {}
        for name, (pixels, fine, coarse) in self.parts.items():
            labels = [fine] if self.kind == 10 else [coarse, fine]
            records = np.concatenate([np.array(labels, np.uint8).T, pixels], axis=1)
            files[f"{name}.bin"] = records.tobytes()
        if self.kind == 10:
            files["batches.meta.txt"] = ("\n".join(self.fine_names) + "\n\n").encode()
        else:
            files["fine_label_names.txt"] = "\n".join(self.fine_names).encode()
            files["coarse_label_names.txt"] = "\n".join(self.coarse_names).encode()
        return files

    def write_parquet(self, folder: Path) -> None:
        for split, names in (("train", self.batches), ("test", [self.test])):
            pixels, fine, coarse = (
                [row for name in names for row in self.parts[name][part]] for part in range(3)
            )
            images = [encoded(row.reshape(3, 32, 32).transpose(1, 2, 0)) for row in pixels]
            columns, class_names = {"label": fine}, {"label": self.fine_names}
            if self.kind == 100:
                columns = {"fine_label": fine, "coarse_label": coarse}
                class_names = {"fine_label": self.fine_names, "coarse_label": self.coarse_names}
            path = folder / f"{split}-00000-of-00001.parquet"
            write_parquet(path, images, columns, class_names, "img")


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def write_tar(path: Path, top: str, files: dict[str, bytes]) -> str:
    """Write a tar.gz and return its md5."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return md5(path.read_bytes())


def write_zip(path: Path, top: str, files: dict[str, bytes]) -> str:
    """Write a zip and return its md5."""
    with zipfile.ZipFile(path, "w") as zip:
        for name, content in files.items():
            zip.writestr(f"{top}/{name}", content)
    return md5(path.read_bytes())


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
