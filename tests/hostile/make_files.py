"""Write hostile files, each posing as one that is read here.

    python tests/hostile/make_files.py FOLDER

Whichever of them runs anything makes the file FOLDER/hostile-marker. The tests do the same, and
see to it that there is none. Load them with nothing else.
"""

from __future__ import annotations

import base64
import io
import json
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from safetensors.numpy import save

sys.path.insert(0, str(Path(__file__).parents[1]))  # where tests keep what they share
from made_runs import make_run
from pickles import SCRIPT, Command, attacks, bombs, odd

MARKER = "hostile-marker"
CIFAR10 = [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch", "batches.meta"]
CIFAR100 = ["train", "test", "meta"]
# What a config may name to be imported; evil.py lies in the run itself.
MODELS = ["evil:Net", "os:system", "subprocess:Popen", "builtins:exec", "__main__:f", "evil:Net#0"]


def write_all(folder: Path) -> dict[str, list[Path]]:
    """Write every file into a folder, and return them by what they pose as."""
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / MARKER
    (folder / SCRIPT).write_text(f"open({str(marker)!r}, 'w').close()")
    pickled = attacks(marker) | bombs() | odd()
    return {
        "pickle": list(_pickles(folder / "pickles", pickled)),
        "cifar": list(_cifars(folder / "cifar", pickled)),
        "checkpoint": list(_checkpoints(folder / "checkpoints", pickled, marker)),
        "matrix": list(_matrices(folder / "matrices", marker)),
        "data": list(_data(folder / "data", pickled["posix.system"], marker)),
        "hub": [_hub(folder / "hub", marker)],
        "run": list(_runs(folder / "runs", pickled["posix.system"], marker)),
        "model": list(_foreign_runs(folder / "foreign", marker)),
        "other": list(_others(folder / "others", pickled["posix.system"], marker)),
    }


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _pickles(folder: Path, pickled: dict[str, bytes]) -> Iterator[Path]:
    for name, content in pickled.items():
        yield _written(folder / f"{name}.pkl", content)


# --------------------------------------------------------------------------------------- data


def _cifars(folder: Path, pickled: dict[str, bytes]) -> Iterator[Path]:
    """CIFAR unpacked and packed, every file of it the same pickle."""
    for name, content in pickled.items():
        for kind, files in (("cifar10", CIFAR10), ("cifar100", CIFAR100)):
            unpacked = folder / kind / name
            for file in files:
                _written(unpacked / file, content)
            yield unpacked
    for kind, title, files in (("10", "batches-py", CIFAR10), ("100", "python", CIFAR100)):
        archive = folder / f"cifar{kind}" / "packed" / f"cifar-{kind}-python.tar.gz"
        archive.parent.mkdir()
        with tarfile.open(archive, "w:gz") as tar:
            for file in files:
                member = tarfile.TarInfo(f"cifar-{kind}-{title}/{file}")
                member.size = len(pickled["posix.system"])
                tar.addfile(member, io.BytesIO(pickled["posix.system"]))
        yield archive.parent


def _data(folder: Path, attack: bytes, marker: Path) -> Iterator[Path]:
    for number in range(4):
        _written(folder / "images" / f"class {number % 2}" / f"{number}.png", attack)
    yield folder / "images"
    for suffix in (".csv", ".json", ".jsonl", ".csv.gz", ".parquet"):
        yield _written(folder / f"pickle{suffix}", attack)
    # A type of column that older versions of Arrow unpickle.
    extension = {
        b"ARROW:extension:name": b"arrow.py_extension_type",
        b"ARROW:extension:metadata": attack,
    }
    fields = [pa.field("text", pa.string(), metadata=extension), pa.field("label", pa.string())]
    table = pa.table([["a", "b"] * 9, ["x", "y"] * 9], schema=pa.schema(fields))
    pq.write_table(table, folder / "extension.parquet")
    yield folder / "extension.parquet"
    cells = [f"=cmd|'/C touch {marker}'!A0", f"@SUM(1)*cmd|'touch {marker}'", f"$(touch {marker})"]
    rows = [f'"{cell}",class {number}' for cell in cells * 6 for number in (0, 1)]
    yield _written(folder / "formulas.csv", "\n".join(["text,label", *rows]).encode())


def _hub(folder: Path, marker: Path) -> Path:
    """A data set with a loading script, as the hub's library used to run them."""
    for name in ("hub.py", "set.py", "__init__.py", "dataset.py"):
        _written(folder / name, f"open({str(marker)!r}, 'w').close()".encode())
    _written(folder / "train.csv", b"text,label\n" + b"good,x\nbad,y\n" * 9)
    return folder


# -------------------------------------------------------------------------------- checkpoints


def _checkpoints(folder: Path, pickled: dict[str, bytes], marker: Path) -> Iterator[Path]:
    for number, (name, content) in enumerate(pickled.items()):
        suffix = (".pt", ".pth", ".bin", ".ckpt")[number % 4]
        yield _written(folder / f"{name}{suffix}", content)
        yield _written(folder / f"{name} zipped{suffix}", _zipped(content))
    yield _written(folder / "pickle.safetensors", pickled["posix.system"])
    head = {"fc.weight": torch.zeros(4, 3), "epoch": Command(f"touch {marker}")}
    for is_new in (True, False):
        torch.save(head, folder / f"head {is_new}.pt", _use_new_zipfile_serialization=is_new)
        yield folder / f"head {is_new}.pt"
    repeated = torch.zeros(1).as_strided((100_000, 50_000), (0, 0))
    torch.save({"fc.weight": repeated}, folder / "repeated.pt")
    yield folder / "repeated.pt"


def _zipped(content: bytes) -> bytes:
    """What torch.save writes, with any pickle in it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", content)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")
    return file.getvalue()


def _matrices(folder: Path, marker: Path) -> Iterator[Path]:
    folder.mkdir()
    objects = np.array([Command(f"touch {marker}")], dtype=object)
    np.save(folder / "objects.npy", objects, allow_pickle=True)
    np.savez(folder / "objects.npz", objects, np.eye(3))
    yield from (folder / "objects.npy", folder / "objects.npz")
    header = f"open({str(marker)!r}, 'w')".encode().ljust(118) + b"\n"
    yield _written(folder / "code.npy", b"\x93NUMPY\x01\x00\x76\x00" + header)


# --------------------------------------------------------------------------------------- runs


def _run(path: Path, **settings) -> Path:
    """A finished run whose images are said to be Shapes."""
    options = {"data": "shapes:60", "image_size": 24, "kind": "image", "model": "cnn"}
    make_run(path, method="baseline", predictions=[0, 1], targets=[0, 1], **options | settings)
    result = json.loads((path / "result.json").read_text())
    for part in ("checksums", "own"):  # which whoever changes a file could change too
        result.pop(part, None)
    (path / "result.json").write_text(json.dumps(result))
    return path


def _runs(folder: Path, attack: bytes, marker: Path) -> Iterator[Path]:
    """Runs one of whose files is a pickle."""
    for file in ("checkpoint/model.safetensors", "predictions.safetensors", "metrics.jsonl"):
        path = _run(folder / Path(file).stem)
        _written(path / file, attack)
        yield path
    for file in ("config.json", "result.json"):
        path = _run(folder / Path(file).stem)
        _written(path / file, attack)
        yield path
    path = _run(folder / "going-on")
    (path / "result.json").unlink()
    state = {"state": {"epoch": f"__import__('os').system('touch {marker}')"}, "checksums": {}}
    _written(path / "checkpoint" / "000001" / "state.json", json.dumps(state).encode())
    _written(path / "checkpoint" / "000002" / "state.json", attack)
    yield path


def _foreign_runs(folder: Path, marker: Path) -> Iterator[Path]:
    """Runs whose config names code to import, which lies beside it."""
    changes = [{"model": model} for model in MODELS]
    changes += [{"methods": ["evil:Method"]}, {"methods": "evil:Method"}]
    changes += [{"method_settings": {"evil:Method.rate": 1}}, {"hierarchy_model": "evil:Net"}]
    changes += [{"hierarchy": word, "encoder": "evil:Net"} for word in ("features", "names")]
    for number, change in enumerate(changes):
        path = _run(folder / f"run-{number}")
        content = json.loads((path / "config.json").read_text())
        content["config"] |= change
        (path / "config.json").write_text(json.dumps(content))
        code = f"open({str(marker)!r}, 'w').close()\nNet = Method = print\n"
        _written(path / "evil.py", code.encode())
        yield path


def _others(folder: Path, attack: bytes, marker: Path) -> Iterator[Path]:
    """What is not read at all, or only as JSON."""
    code = base64.b64encode(f"open({str(marker)!r}, 'w')".encode()).decode()
    layer = {"class_name": "Lambda", "config": {"function": [code, None, None]}}
    with zipfile.ZipFile(_written(folder / "model.keras", b""), "w") as archive:
        archive.writestr("config.json", json.dumps({"config": {"layers": [layer]}}))
    yield folder / "model.keras"
    yield _written(folder / "model.h5", attack)
    yield _written(folder / "hierarchy.json", attack)
    yield _written(folder / "hierarchy.safetensors", attack)
    about = {"format": "coarse2fine-hierarchy", "version": "1", "num_classes": str(10**12)}
    yield _written(folder / "claims.safetensors", save({}, about))
    tag = f"!!python/object/apply:os.system ['touch {marker}']"
    yield _written(folder / "yaml.json", tag.encode())
    yield _written(folder / "taxonomy.csv", f"parent,child\n,{tag}\n{tag},a\n{tag},b\n".encode())


if __name__ == "__main__":
    for kind, paths in write_all(Path(sys.argv[1]).resolve()).items():
        sys.stdout.write(f"{len(paths)} posing as {kind}\n")
