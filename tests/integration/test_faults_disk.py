"""A disk that is full, or files that may grow no larger, lose nothing, and a sentence says so."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import faulty
import killing
import pytest
import tiny
from faulty import mounts  # noqa: F401

from coarse2fine import Hierarchy, RunResult
from coarse2fine.checkpoints import load_tensors
from coarse2fine.editor import Session
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.tasks import carry_out
from coarse2fine.runs.checkpoint import load_checkpoint
from coarse2fine.runs.directory import read_lines
from coarse2fine.training.progress import Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts are Linux's")
SHORT = ("--epochs", "2", "--curriculum-epochs", "1")
FULL = "No space left on device; free some, then do the same again"
TOO_LARGE = "File too large; allow larger ones (ulimit -f), then do the same again"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return faulty.small_outcome(tmp_path_factory.mktemp("undisturbed"))


def assert_all_whole(out):
    """Nothing half-written has a final name, and temporary ones do not pile up."""
    for path in out.rglob("*.json"):
        json.loads(path.read_text())
    for path in out.rglob("*.safetensors"):
        load_tensors(path)
    for run in out.glob("seed-0/*"):
        load_checkpoint(run / "checkpoint")
        if (run / "result.json").exists():
            RunResult.load(run)
    hidden = [path for path in out.rglob(".*") if path.name != ".lock"]
    assert hidden == []


def fit_with_ever_more(out, grow, what, watcher=None):
    """Train until it works, with a little more room at every attempt; return the failures."""
    told = []
    for attempt in range(150):
        done = {path: path.read_bytes() for path in out.glob("seed-0/*/result.json")}
        grow(attempt)
        error = error_of(out, watcher)
        if error is None:
            return told
        assert error.strerror == what
        told.append(str(Path(error.filename).relative_to(out)))
        assert_all_whole(out)
        assert {path: path.read_bytes() for path in done} == done
    raise AssertionError("it never ends")


def error_of(out, watcher):
    try:
        faulty.small_fit(out, watcher=watcher)
    except OSError as error:
        return error
    return None


# ---------------------------------------------------------------------------- a small disk


def on_a_growing_disk(folder, copy):
    disk = folder / "disk"
    disk.mkdir()
    faulty.own_mounts()
    faulty.mount_small(disk, 4)
    told = fit_with_ever_more(
        disk / "run", lambda attempt: faulty.resize(disk, 4 + 4 * attempt), FULL
    )
    shutil.copytree(disk / "run", copy)
    sys.stdout.write(json.dumps(told))


@pytest.mark.usefixtures("mounts")
def test_a_run_goes_on_whenever_a_full_disk_has_room_again(tmp_path, undisturbed):
    """It is full at every file in turn, as it grows by one block at a time."""
    ended = faulty.run(tmp_path, on_a_growing_disk, tmp_path, tmp_path / "copy")
    assert ended.code == 0, ended.err
    places = {re.sub(r"\d{6}", "N", place) for place in json.loads(ended.out)}
    assert {f"seed-0/{run}/checkpoint/N" for run in ("baseline", "continuous")} <= places
    assert {"seed-0/baseline/config.json", "seed-0/baseline/metrics.jsonl"} <= places
    assert killing.outcome(tmp_path / "copy") == undisturbed


class Limiting(Watcher):
    """Limits files once a training has its settings, which are larger than its metrics."""

    size = faulty.UNLIMITED

    def begin(self, *_):
        faulty.limit_files(self.size)

    def at_most(self, size):
        faulty.limit_files(faulty.UNLIMITED)
        self.size = size


def with_growing_files(folder):
    watcher = Limiting()
    told = fit_with_ever_more(
        folder / "run", lambda attempt: watcher.at_most(100 + 70 * attempt), TOO_LARGE, watcher
    )
    sys.stdout.write(json.dumps(told))


def test_a_run_goes_on_whenever_its_files_may_be_larger(tmp_path, undisturbed):
    """Metrics are cut in the middle of a line, tensors in the middle of a file."""
    ended = faulty.run(tmp_path, with_growing_files, tmp_path)
    assert ended.code == 0, ended.err
    places = {re.sub(r"\d{6}", "N", place) for place in json.loads(ended.out)}
    assert {"seed-0/baseline/metrics.jsonl", "seed-0/baseline/checkpoint/N"} <= places
    assert killing.outcome(tmp_path / "run") == undisturbed


def test_a_line_cut_short_in_the_middle_of_the_metrics_is_no_epoch(tmp_path):
    """As a full disk leaves it, where somebody appended more all the same."""
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"epoch": 1}\n{"epo{"epoch": 2}\n\xff\n{"epoch": 3')
    assert len(read_lines(path)) == 3
    assert read_lines(path)[0] == '{"epoch": 1}\n'


# ----------------------------------------------------------------- every command that writes


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished comparison, and the table it was trained on."""
    folder = tmp_path_factory.mktemp("made")
    tiny.write_data(folder)
    arguments = ("train", folder / tiny.DATA, *SHORT, "--out", folder / "run")
    ended = faulty.run(folder, faulty.c2f, *arguments)
    assert ended.code == 0, ended.err
    Hierarchy.from_levels([[0, 0, 1, 1]]).save(folder / "levels.json")
    return folder


COMMANDS = {
    "report.html": "report {made}/run --out {file}",
    "curves.svg": "figure curves {made}/run --out {file}",
    "model.safetensors": "export {made}/run --out {file}",
    "model.onnx": "export {made}/run --onnx --out {file}",
    "hierarchy.json": "hierarchy {made}/levels.json --save {file}",
    "hierarchy.csv": "hierarchy {made}/levels.json --csv {file}",
}
OLD = b"what was there before"


def on_a_full_disk(folder, made, name):
    """Write where a file is already and no room is left, then once there is room."""
    disk, file = folder / "disk", folder / "disk" / name
    disk.mkdir()
    faulty.own_mounts()
    faulty.mount_small(disk, 64)
    file.write_bytes(OLD)
    fill(disk / "filler")
    command = COMMANDS[name].format(made=made, file=file).split()
    assert faulty.c2f(*command) == 2
    assert file.read_bytes() == OLD
    assert faulty.names(disk) == sorted(["filler", name])
    faulty.resize(disk, 100_000)
    assert faulty.c2f(*command) == 0
    assert faulty.names(disk) == sorted(["filler", name])
    assert file.read_bytes() != OLD


def fill(path):
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "model.onnx"])
def test_a_file_that_finds_no_room_is_named_and_the_old_one_stays(name, tmp_path, made):
    ended = faulty.run(tmp_path, on_a_full_disk, tmp_path, made, name)
    assert ended.code == 0, ended.err
    errors = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert errors == [f"error: {tmp_path}/disk/{name}: {FULL}"]


@pytest.mark.slow
@pytest.mark.usefixtures("mounts")
def test_onnx_that_finds_no_room_is_named_and_the_old_one_stays(tmp_path, made):
    test_a_file_that_finds_no_room_is_named_and_the_old_one_stays("model.onnx", tmp_path, made)


def edit_on_a_full_disk(disk):
    disk.mkdir()
    faulty.own_mounts()
    faulty.mount_small(disk, 16)
    path = disk / "hierarchy.json"
    Hierarchy.from_levels([[0, 0, 1, 1]]).save(path)
    session = Session(path)
    before, digest = path.read_bytes(), session.read().digest
    fill(disk / "filler")
    changed = Hierarchy.from_levels([[0, 1, 1, 0]]).to_dict()
    with pytest.raises(OSError, match=FULL.replace("(", r"\(")):
        session.save(changed, digest)
    assert path.read_bytes() == before
    assert faulty.names(disk) == ["filler", "hierarchy.json"]
    (disk / "filler").unlink()
    backup = session.save(changed, digest).backup
    assert backup.read_bytes() == before
    assert Hierarchy.load(path).to_dict() == changed


@pytest.mark.usefixtures("mounts")
def test_the_editor_saves_once_there_is_room_and_nothing_before(tmp_path):
    ended = faulty.run(tmp_path, edit_on_a_full_disk, tmp_path / "disk")
    assert ended.code == 0, ended.err


def train_on_a_full_disk(made, disk):
    disk.mkdir()
    faulty.own_mounts()
    faulty.mount_small(disk, 64)
    command = ("train", made / tiny.DATA, *SHORT, "--out", disk / "run", "--json")
    assert faulty.c2f(*command) == 2
    sys.stderr.write("and again\n")
    faulty.resize(disk, 100_000)
    code = faulty.c2f(*command)
    shutil.copytree(disk / "run", disk.with_name("copy"))
    return code


@pytest.mark.usefixtures("mounts")
def test_training_ends_with_one_line_and_the_same_command_goes_on(tmp_path, made):
    ended = faulty.run(tmp_path, train_on_a_full_disk, made, tmp_path / "disk")
    assert ended.code == 0, ended.err
    lines = ended.err.splitlines()
    error, again = [line for line in lines if not line.startswith("warning: ")]
    place = f"{tmp_path}/disk/run/seed-0/baseline/checkpoint/00000"
    assert re.fullmatch(rf"error: {place}\d: {re.escape(FULL)}", error)
    assert again == "and again"
    assert killing.outcome(tmp_path / "copy") == killing.outcome(made / "run")


def sweep_on_a_full_disk(folder, disk):
    disk.mkdir()
    faulty.own_mounts()
    faulty.mount_small(disk, 100_000)
    os.chdir(folder)
    wanted = Reproduction("tiny:TINY", out=disk, seeds=(0,), only=("spl",))
    baseline = wanted.tasks[0]
    assert carry_out(baseline)
    before = baseline.path.joinpath("result.json").read_bytes()
    fill(disk / "filler")
    command = ("paper", "tiny:TINY", "--seeds", "1", "--only", "spl", "--out", disk)
    assert faulty.c2f(*command, "--executor", "processes:1") == 2
    assert baseline.path.joinpath("result.json").read_bytes() == before
    (disk / "filler").unlink()
    sys.stderr.write("and again\n")
    return faulty.c2f(*command, "--executor", "processes:1")


@pytest.mark.slow
@pytest.mark.usefixtures("mounts")
def test_a_sweep_on_a_full_disk_keeps_what_is_done_and_goes_on(tmp_path):
    tiny.write_data(tmp_path)
    ended = faulty.run(tmp_path, sweep_on_a_full_disk, tmp_path, tmp_path / "disk")
    assert ended.code == 0, ended.err
    first, again = ended.err.split("and again\n")
    assert "Traceback" not in ended.err
    assert first.splitlines()[-1].endswith(FULL)
    assert "1 of 1: tiny" in again


# ----------------------------------------------------------------------- nowhere to write to


def test_an_output_that_is_full_is_told_in_one_sentence(made):
    command = [sys.executable, "-m", "coarse2fine.cli", "hierarchy", str(made / "levels.json")]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=200, check=False
        )
    assert ended.returncode == 2
    assert ended.stderr == f"error: the standard output: {FULL}\n"
