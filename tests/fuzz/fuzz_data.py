"""Targets: tables, archives of images, folders of images, parquet files."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_choices import Choices
from fuzz_guard import Attempt
from fuzz_images import picture, put
from fuzz_trees import steered

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))
from image_files import Cifar

from coarse2fine.data.load import load_data
from coarse2fine.data.sets.cifar import load_cifar10, load_cifar100
from coarse2fine.data.sets.tiny_imagenet import load_tiny_imagenet

# ---------------------------------------------------------------------------------- tables

TABLE = b"text,label\ngood one,1\nbad,0\nso so,0\n"
NUMBERS = b"x;colour;y\n1.5;red;a\n2;blue;b\n-3e1;red;b\n"
LINES = [{"text": "a b", "label": "x"}, {"text": "c", "label": "y"}, {"text": "d", "label": "x"}]


def table(folder: Path) -> Any:
    paths = [folder / f"t.{kind}" for kind in ("csv", "jsonl", "json", "tsv", "csv.gz")]

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        path = choices.pick(paths)
        content = choices.rest()
        if path.suffix.startswith(".json") and content[:1] < b"\x20":
            content = Choices(content).changed_json(LINES)
        elif path.suffix == ".gz" and content[:1] != b"\x1f":
            content = gzip.compress(content, 0)
        path.write_bytes(content)
        yield Attempt(partial(load_data, path), named=str(path))

    return attempts


def table_seeds() -> list[bytes]:
    lines = b"\n".join(json.dumps(line).encode() for line in LINES)
    files = [TABLE, NUMBERS, b'label,a,b\n1,"x\n""y",2\n2,z,3\n', b"y,x\n0,1\n1,\n"]
    packed = [NUMBERS, gzip.compress(TABLE)]
    return [
        *(b"\0" + file for file in files),
        *(b"\1" + lines, b"\2" + json.dumps(LINES).encode()),
        *(b"\2" + one for one in steered(8)),
        *(b"\3" + TABLE.replace(b",", b"\t"), *(b"\4" + one for one in packed)),
    ]


def parquet(folder: Path) -> Any:
    good = parquet_files()
    paths = [folder / "plain.parquet", folder / "hub" / "train.parquet"]
    paths[1].parent.mkdir()

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        form = choices.number(3)
        path = choices.pick(paths)
        whole = choices.edited(choices.pick(good)) if form == 1 else choices.rest()
        if form == 2:
            whole = _parquet_of(Choices(whole))
        path.write_bytes(whole)
        where = path if path is paths[0] else path.parent
        yield Attempt(partial(load_data, where), named=str(where))

    return attempts


def parquet_files() -> list[bytes]:
    """Sound parquet files: of numbers, and of images with the names of their classes."""
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = pa.array([{"bytes": picture("PNG"), "path": None}] * 3, kind)
    declared = {"info": {"features": {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}}}
    images = pa.table({"image": cells, "label": [0, 1, 0]})
    tables = [
        pa.table({"x": [1.0, 2.0, 3.0], "label": ["a", "b", "a"]}),
        images,
        images.replace_schema_metadata({"huggingface": json.dumps(declared)}),
    ]
    return [_written(table) for table in tables]


def _written(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, compression="none")
    return file.getvalue()


def _parquet_of(choices: Choices) -> bytes:
    """A sound file with columns of any type that Arrow has."""
    columns = {}
    for name in ("image", "label", "x")[: 1 + choices.number(3)]:
        kind = choices.pick(KINDS)
        values = [choices.pick(VALUES) for _ in range(3)]
        try:
            columns[name] = pa.array(values, from_pandas=True).cast(kind)
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            columns[name] = pa.nulls(3, kind)
    try:
        made = pa.table(columns).replace_schema_metadata({"huggingface": choices.edited(_HUB)})
        return _written(made)
    except (pa.ArrowException, ValueError):
        return b""


_HUB = b'{"info": {"features": {"label": {"names": ["a", "b"], "_type": "ClassLabel"}}}}'
VALUES: tuple[Any, ...] = (None, 0, 1, 2, -1, 2**40, 2**62, 0.5, float("nan"), float("inf"), 1e300)
KINDS = (
    *(pa.int64(), pa.int8(), pa.uint64(), pa.float64(), pa.float16(), pa.string(), pa.bool_()),
    *(pa.binary(), pa.date32(), pa.timestamp("us"), pa.duration("s"), pa.decimal128(38, 2)),
    *(pa.null(), pa.list_(pa.int64()), pa.struct([("bytes", pa.binary()), ("path", pa.string())])),
    *(pa.large_string(), pa.time32("s"), pa.dictionary(pa.int8(), pa.string())),
    *(pa.struct([("bytes", pa.string())]), pa.large_binary(), pa.map_(pa.string(), pa.int64())),
)


def parquet_seeds() -> list[bytes]:
    raw = [bytes([0, place]) + file for place, file in enumerate([*parquet_files()[:2], b"PAR1"])]
    forms = (b"\1\0", b"\1\1", b"\2\0", b"\2\1")
    return [*raw, *(form + one for form in forms for one in steered(6))]


# -------------------------------------------------------------------------------- archives


def cifar(folder: Path) -> Any:
    loaders = {
        "cifar-10-python.tar.gz": load_cifar10,
        "cifar-100-python.tar.gz": load_cifar100,
        "cifar-100-binary.tar.gz": load_cifar100,
    }
    good = {name: cifar_files(name) for name in loaders}

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        name, form = choices.pick(list(loaders)), choices.number(4)
        files = dict(good[name])
        inner = choices.pick(sorted(files))
        path = folder / name
        if form == 0:
            path.write_bytes(choices.rest())
        elif form == 1:
            files[inner] = choices.edited(files[inner])
            path.write_bytes(tarred(files, choices))
        elif form == 2:
            files[inner] = choices.rest()
            path.write_bytes(tarred(files, Choices(b"")))
        else:  # unpacked
            files[inner] = choices.edited(files[inner])
            for file, content in files.items():
                (folder / file).write_bytes(content)
        yield Attempt(partial(loaders[name], folder, checksums={}), named=str(folder))
        for file in (path, *(folder / file for file in files)):
            file.unlink(missing_ok=True)

    return attempts


def cifar_files(archive: str) -> dict[str, bytes]:
    """The files of a tiny CIFAR, as its makers call them."""
    made = Cifar(100 if "100" in archive else 10)
    return made.binary_files() if "binary" in archive else made.python_files()


def tarred(files: dict[str, bytes], choices: Choices) -> bytes:
    """A tar.gz of files, of which some have odd names or are no files at all."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", compresslevel=1) as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(choices.pick(PLACES) + name)
            member.type = choices.pick(TYPES)
            member.linkname = "../../outside"
            member.size = len(content) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(content) if member.isreg() else None)
    data = file.getvalue()
    if choices.number(4) != 1:
        return data
    return gzip.compress(choices.edited(gzip.decompress(data)), 1)


PLACES = ("cifar/", "", "../", "/", "/etc/", "../../../", "a" * 120 + "/", "./", "C:\\", "é/")
TYPES = (
    *(tarfile.REGTYPE,) * 8,
    *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE),
)


def cifar_seeds() -> list[bytes]:
    whole = tarred(cifar_files("cifar-100-binary"), Choices(b""))
    pickled = cifar_files("cifar-100-python")["meta"]
    claims = b"\x80\x02}r\xff\xff\xff\x7f."  # a memo of two billion entries
    forms = (b"\0\1", b"\1\1", b"\2\1", b"\1\3", b"\2\3")
    return [
        b"\2\0\0" + whole[:3000],
        b"\1\2\0" + pickled[:600],
        b"\1\2\2" + claims,
        *(form + one for form in forms for one in steered(5)),
    ]


def tiny_imagenet(folder: Path) -> Any:
    top, archive = "tiny-imagenet-200", folder / "tiny-imagenet-200.zip"
    good = tiny_files()

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        form, files = choices.number(4), dict(good)
        name = choices.pick(sorted(files))
        files[name] = choices.rest() if form == 1 else choices.edited(files[name])
        if form == 0:
            archive.write_bytes(choices.rest())
        elif form == 3:
            for file, content in files.items():
                put(folder / top / file, content)
        else:
            made = zipped({f"{choices.pick(ZIP_PLACES)}{n}": x for n, x in files.items()})
            archive.write_bytes(choices.edited(made) if form == 2 else made)
        load = partial(load_tiny_imagenet, folder, checksums={})
        yield Attempt(load, named=str(folder))
        archive.unlink(missing_ok=True)
        shutil.rmtree(folder / top, ignore_errors=True)

    return attempts


ZIP_PLACES = (*("tiny-imagenet-200/",) * 30, "../", "/etc/", "tiny-imagenet-200/../")


def tiny_files() -> dict[str, bytes]:
    image = picture("JPEG")
    return {
        "wnids.txt": b"n01\nn02\n",
        "words.txt": b"n01\tcat, pussy\nn02\tdog\n",
        "train/n01/images/n01_0.JPEG": image,
        "train/n02/images/n02_0.JPEG": image,
        "val/val_annotations.txt": b"val_0.JPEG\tn02\t0\t0\t1\t1\n",
        "val/images/val_0.JPEG": image,
    }


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as zip:
        for name, content in files.items():
            zip.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()


def tiny_seeds() -> list[bytes]:
    whole = zipped({f"tiny-imagenet-200/{n}": x for n, x in tiny_files().items()})
    texts = [b"\1\3n01\nn02", b"\1\4val_0.JPEG\tn01", b"\1\5n01\tcat", b"\1\3"]
    return [b"\0\0\0" + whole, *texts, *(bytes([f]) + one for f in (1, 2, 3) for one in steered(5))]
