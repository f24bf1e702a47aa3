"""Targets: run directories, checkpoints, and anyone's weights."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fuzz_choices import Choices
from fuzz_data import zipped
from fuzz_guard import Attempt
from fuzz_trees import TREE, steered
from safetensors.torch import save

from coarse2fine import Config, RunResult
from coarse2fine.checkpoints import read_class_vectors, read_state_dict
from coarse2fine.cli.runs import cells
from coarse2fine.errors import RunError
from coarse2fine.figures.curves import learning_curve
from coarse2fine.models import build_model
from coarse2fine.report.content import report_content
from coarse2fine.report.page import to_json
from coarse2fine.report.runs import gather
from coarse2fine.runs.checkpoint import (
    Checkpoint,
    digest,
    load_checkpoint,
    save_checkpoint,
    signed,
)
from coarse2fine.runs.directory import Run
from coarse2fine.runs.find import find_run
from coarse2fine.runs.guards import check_same
from coarse2fine.runs.hierarchies import read_hierarchy
from coarse2fine.runs.listing import list_runs
from coarse2fine.runs.restore import load_trained
from coarse2fine.runs.result import Result
from coarse2fine.runs.writer import RunWriter, provenance

RUN_ERRORS = (RunError, ValueError, FileNotFoundError)


# -------------------------------------------------------------------------- run directories


def make_run(path: Path) -> None:
    """Write a finished run of a tiny model."""
    run = RunWriter(path)
    config = Config(model="mlp", epochs=2, batch_size=4, curriculum_epochs=1)
    data = {
        "kind": "table",
        "class_names": TREE.class_names,
        "columns": ["x", "y"],
        "input_shape": [2],
        "samples": [5, 0, 5],
        "fingerprint": "f",
        "transform": {"mean": [0.0, 0.5], "std": [1.0, 2.0], "padding": 0, "flip": False},
    }
    begun = provenance(config)
    run.begin({**begun, "command": "c2f train x.csv", "method": "continuous", "data": data})
    TREE.save(path / "hierarchy.json")
    for epoch in (1, 2):
        run.log({"stage": 0, "epoch": epoch, "level": epoch, "loss": 1.5, "accuracy": 0.4})
    (path / "checkpoint").mkdir(exist_ok=True)
    targets = torch.arange(5)
    stored = {f"{part}.{name}": targets for part in ("test", "val") for name in NAMES}
    result = RunResult("continuous", 0, 1.0, 1.0, 1, 2, 0.5, True, 1, TREE.num_clusters, path)
    run.finish(build_model("mlp", 5, (2,), "table").state_dict(), {}, stored, result.to_dict())


NAMES = ("predictions", "targets")
JSONS = ("config.json", "result.json", "hierarchy.json")
FILES = (*JSONS, "metrics.jsonl", "predictions.safetensors", "checkpoint/model.safetensors")


def run_directory(folder: Path) -> Any:
    path = folder / "seed-0" / "continuous"
    path.parent.mkdir()
    make_run(path)
    good = {name: (path / name).read_bytes() for name in FILES}

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        name, form = choices.pick(FILES), choices.number(3)
        content = choices.rest()
        if form == 1 and name in JSONS:
            content = Choices(content).changed_json(json.loads(good[name]))
        elif form == 1 and name == "metrics.jsonl":
            line = json.loads(good[name].split(b"\n")[0])
            content = good[name] + Choices(content).changed_json(line) + b"\n"
        elif form:
            content = Choices(content).edited(good[name])
        for file, whole in _signed_again({**good, name: content}, name).items():
            (path / file).write_bytes(whole)
        for call in RUN_CALLS[name]:
            yield Attempt(partial(call, path), RUN_ERRORS, named=str(folder))

    return attempts


def _signed_again(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    """Let the checksums of a run fit what was changed, as whoever means harm would."""
    try:
        result = json.loads(files["result.json"])
        if name == "config.json":
            result["data_checksum"] = digest(json.loads(files[name])["data"])
        elif name != "result.json":
            result["checksums"][name] = hashlib.sha256(files[name]).hexdigest()
        content = signed({key: value for key, value in result.items() if key != "own"})
        return {**files, "result.json": json.dumps(content).encode()}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return files


def _shown(path: Path) -> None:
    result = Result((RunResult.load(path),), (), path)
    assert str(result)
    json.dumps(result.to_dict())


def _level_table(path: Path) -> None:
    Result((RunResult.load(path),), (), path).level_table()


def _gathered(path: Path) -> None:
    for entry in gather([path.parent.parent]).entries:
        for run in entry.runs:
            assert run.curve()
            assert run.predictions
            assert run.hierarchy is None or str(run.hierarchy)


def _listed(path: Path) -> None:
    for folder in (path.parent.parent, path.parent):
        rows = [cells(each, folder) for each in list_runs(folder)]
        assert len(rows) == 1
        json.dumps([each.to_dict() for each in list_runs(folder)])


def _curve(path: Path) -> None:
    learning_curve(RunResult.load(path))


def _report(path: Path) -> None:
    json.dumps(to_json(report_content([path], examples=0)))


def _found(path: Path) -> None:
    read_hierarchy(find_run(path.parent.parent))


def _same(path: Path) -> None:
    check_same(path, {"config": Config(epochs=2).to_dict(), "data": {"a": 1}})


RUN_CALLS: dict[str, list[Callable[[Path], object]]] = {
    "config.json": [load_trained, _gathered, _report, _same, _listed],
    "result.json": [_shown, _level_table, _gathered, _report, _listed],
    "hierarchy.json": [_level_table, _gathered, _found],
    "metrics.jsonl": [lambda path: Run(path).metrics(), _curve, _gathered],
    "predictions.safetensors": [_level_table, _gathered],
    "checkpoint/model.safetensors": [load_trained],
}


def run_seeds() -> list[bytes]:
    line = b'{"stage": 0, "epoch": 1, "level": 0, "loss": 1.5, "test_accuracy": 0.4}\n'
    predictions = save({f"test.{name}": torch.zeros(2, dtype=torch.int32) for name in NAMES})
    seeds = [b"\3\0" + line, b"\3\0" + line * 2 + line[:9], b"\4\0" + predictions]
    for number in range(len(FILES)):
        seeds += [bytes([number]) + choices for choices in steered(4)]
        seeds.append(bytes([number, 2]) + b"\1\0\0\0\0\0\1\7")
    return seeds


# ----------------------------------------------------------------------------- checkpoints


def checkpoint(folder: Path) -> Any:
    place = folder / "checkpoint"
    for number in (1, 2):
        tensors = {"model": {"w": torch.ones(2, 2)}, "optimiser": {"0.step": torch.tensor(1.0)}}
        state = {"epoch": number, "best": 0.5, "stage": {"epochs": [1, 2]}}
        save_checkpoint(place, Checkpoint(number, state, tensors))
    newest = place / "000002"
    good = {path.name: path.read_bytes() for path in newest.iterdir()}

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        files = dict(good)
        form = choices.number(4)
        name = choices.pick(sorted(files))
        if form == 0:
            files["state.json"] = choices.rest()
        elif form == 1:
            files[name] = choices.edited(files[name])
        else:
            files["model.safetensors"] = choices.edited(files["model.safetensors"])
            files["state.json"] = _signed(files, choices if form == 2 else None)
        for file, content in files.items():
            (newest / file).write_bytes(content)
        yield Attempt(partial(load_checkpoint, place), (RunError,), named=str(place))
        hidden = (place / "000001").rename(folder / "000001")
        yield Attempt(partial(load_checkpoint, place), (RunError,), named=str(place))
        hidden.rename(place / "000001")

    return attempts


def _signed(files: dict[str, bytes], choices: Choices | None) -> bytes:
    """A state whose checksums fit the files, changed before it is signed."""
    sums = {n: hashlib.sha256(files[n]).hexdigest() for n in files if n != "state.json"}
    content: Any = {"state": json.loads(files["state.json"])["state"], "checksums": sums}
    try:
        if choices is not None:
            content = json.loads(choices.changed_json(content))
        text = json.dumps(content, sort_keys=True)
        whole = {**content, "own": hashlib.sha256(text.encode()).hexdigest()}
        return json.dumps(whole).encode()
    except (ValueError, TypeError, RecursionError):
        return b"{}"


def checkpoint_seeds() -> list[bytes]:
    slip = {"state": {}, "checksums": {"../../x": "0", "/dev/zero": "1"}}
    text = json.dumps(slip, sort_keys=True)
    signed = {**slip, "own": hashlib.sha256(text.encode()).hexdigest()}
    raw = [json.dumps(signed).encode(), b'{"own": 1}', b"[]", b'"a"']
    forms = [bytes([form]) for form in (1, 2, 3)]
    return [*(b"\0\0" + one for one in raw), *(f + one for f in forms for one in steered(5))]


# -------------------------------------------------------------------------- anyone's weights


def weights(folder: Path) -> Any:
    names = ("w.safetensors", "w.pt", "w.pth", "w.pt")
    good_zip = zip_parts(torch_saved({"fc.weight": torch.ones(3, 2), "fc.bias": torch.zeros(3)}))

    def attempts(data: bytes) -> Iterator[Attempt]:
        choices = Choices(data)
        form = choices.number(4)
        path = folder / names[form]
        if form == 3:  # a sound archive whose pickle or tensors were changed
            parts = dict(good_zip)
            name = choices.pick(sorted(parts))
            parts[name] = choices.rest() if choices.number(4) == 3 else choices.edited(parts[name])
            path.write_bytes(zipped(parts))
        else:
            path.write_bytes(choices.rest())
        yield Attempt(partial(read_class_vectors, path), named=str(path))
        if path.suffix != ".safetensors":
            yield Attempt(partial(read_state_dict, path), named=str(path))
        yield Attempt(partial(read_hierarchy, path), named=str(path))

    return attempts


def torch_saved(state: Any, **options: Any) -> bytes:
    """What torch.save writes."""
    file = io.BytesIO()
    torch.save(state, file, **options)
    return file.getvalue()


def zip_parts(archive: bytes) -> dict[str, bytes]:
    """The files in a zip."""
    with zipfile.ZipFile(io.BytesIO(archive)) as zip:
        return {name: zip.read(name) for name in zip.namelist()}


def weight_seeds() -> list[bytes]:
    state = {"body.weight": torch.ones(2, 4), "head.weight": torch.eye(3, 2)}
    named = {"class_names": json.dumps(["a", "b", "c"])}
    spread = {"fc.weight": torch.ones(1, 1).expand(50_000, 50_000)}
    old = {"_use_new_zipfile_serialization": False}
    evil = pickle.dumps(shutil.rmtree, protocol=2)
    return [
        b"\0" + save(state, named),
        b"\0" + save({"a.0.weight": torch.ones(2, 3, dtype=torch.bfloat16)}),
        b"\1" + torch_saved(state),
        b"\1" + torch_saved(spread),
        b"\1" + torch_saved(state, **old),
        b"\2" + torch_saved({"state_dict": {"fc.weight": torch.ones(2, 2)}}, **old),
        b"\2" + evil,
        *(b"\3" + one for one in steered(12)),
        b"\3\2\3" + evil,
        b"\1" + np.zeros(4).tobytes(),
    ]
