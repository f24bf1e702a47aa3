"""A full /dev/shm, and too little memory in whatever process, are told and lose nothing."""

import os
import resource
import signal
import sys
from pathlib import Path

import faulty
import killing
import numpy as np
import pytest
import tiny
import torch
from faulty import mounts  # noqa: F401

from coarse2fine import fit
from coarse2fine.data import Batches, Split, Transform
from coarse2fine.executors import Processes
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.runner import Observer
from coarse2fine.training.processes import memory_errors_explained

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and mounts are Linux's")
NAMES = ("cat", "dog")
REMEDY = (
    "; free some, and the same command resumes from the last checkpoint; or take another folder "
    "and a smaller batch_size, a larger accumulate, or fewer workers."
)


class Images:
    """Inputs that are read one by one, far more of them than /dev/shm has room for."""

    def __len__(self):
        return 32

    def read(self, row, rng):  # noqa: ARG002
        return torch.full((3, 64, 64), row, dtype=torch.uint8)


def batches(inputs, workers=2):
    split = Split(inputs, torch.arange(len(inputs)) % 2, NAMES)
    return Batches(split, Transform(), 8, workers=workers)


# --------------------------------------------------------------------------------- /dev/shm


def fill_shared_memory(room):
    """Have a /dev/shm of 64 KiB, of which a little room is left or none."""
    faulty.own_mounts()
    faulty.mount_small("/dev/shm", 64)
    Path("/dev/shm/filler").write_bytes(bytes(1024 * (64 - room)))


def read_with_little_shared_memory():
    wanted = [batch.inputs for batch in batches(Images(), workers=0).in_order()]
    fill_shared_memory(room=60)
    found = [batch.inputs for batch in batches(Images()).in_order()]
    assert len(found) == 4
    assert all(map(torch.equal, found, wanted))


@pytest.mark.usefixtures("mounts")
def test_a_small_shared_memory_is_enough_for_workers(tmp_path):
    ended = faulty.run(tmp_path, read_with_little_shared_memory)
    assert ended.code == 0, ended.err


def read_without_shared_memory():
    fill_shared_memory(room=0)
    list(batches(Images()).in_order())


@pytest.mark.usefixtures("mounts")
def test_a_full_shared_memory_is_told_in_one_sentence(tmp_path):
    ended = faulty.run(tmp_path, read_without_shared_memory)
    assert ended.last == (
        "ChildProcessError: the processes that read data cannot be started (No space left on "
        "device); make room in memory and in /dev/shm, or do without them: --workers 0."
    )


def sweep_without_shared_memory():
    fill_shared_memory(room=0)
    Processes(1)


@pytest.mark.usefixtures("mounts")
def test_a_sweep_names_the_full_shared_memory(tmp_path):
    ended = faulty.run(tmp_path, sweep_without_shared_memory)
    assert ended.last == (
        "ChildProcessError: the executor's processes cannot be started (No space left on device); "
        "make room in memory and in /dev/shm, or have fewer: --executor processes:1."
    )


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 4, 5)], ids=str)
def test_workers_hand_over_tensors_of_every_kind(dtype, shape):
    class Given:
        values = torch.randint(0, 2, (6, *shape)).to(dtype)

        def __len__(self):
            return 6

        def read(self, row, rng):  # noqa: ARG002
            return self.values[row]

    (found,) = batches(Given(), workers=1)._read(torch.arange(6), None)
    assert found[1].dtype == dtype
    assert torch.equal(found[1], Given.values)
    found[1].zero_()  # it may be written to, as any tensor


# ----------------------------------------------------------------------- a process that reads


class Hungry(Images):
    """Wants more memory than the process that reads may have."""

    def read(self, row, rng):
        if row == 20:
            most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (most + (64 << 20), -1))
            np.ones(1 << 30)
        return super().read(row, rng)


class Unspeakable(Images):
    """Fails by an error that no other process can be told."""

    def read(self, row, rng):  # noqa: ARG002
        error = ValueError(f"row {row} is bad")
        error.reason = lambda: None
        raise error


class DemandingError(Exception):
    """Cannot be made again from what it says."""

    def __init__(self, row, reason):
        super().__init__(f"row {row}: {reason}")


class Unrepeatable(Images):
    def read(self, row, rng):  # noqa: ARG002
        raise DemandingError(row, "no such cat")


class Killed(Images):
    """Is killed as the system does when memory runs out.

    Its batches fit into a pipe. Where half of one has been sent, torch's loader waits for the
    other half, and it does so for ever if the signal comes just before it begins to wait.
    """

    def read(self, row, rng):  # noqa: ARG002
        if row == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.full((3, 16, 16), row, dtype=torch.uint8)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        (Hungry(), MemoryError, r"^memory has run out \(Unable to allocate 8.00 GiB"),
        (Killed(), ChildProcessError, "^a process that reads data has died, perhaps for lack of"),
        (Unspeakable(), RuntimeError, "^ValueError: row 0 is bad$"),
        (Unrepeatable(), RuntimeError, "^DemandingError: row 0: no such cat$"),
    ],
    ids=["hungry", "killed", "unspeakable", "unrepeatable"],
)
def test_what_befalls_a_process_that_reads_is_told(inputs, kind, message, workers):
    with pytest.raises(kind, match=message), memory_errors_explained():
        list(batches(inputs, workers).in_order())


# ------------------------------------------------------------------------ the training itself


class Short(torch.nn.Module):
    """Has too little memory from the third epoch on, while a file says so."""

    def __init__(self, num_classes):
        super().__init__()
        self.head, self.batches = torch.nn.Linear(4, num_classes), 0

    def forward(self, inputs):
        self.batches += self.training
        if self.batches > 10 and Path("short").exists():
            torch.empty(1 << 46, dtype=torch.uint8)  # as torch itself puts it
        return self.head(inputs)


def settings(**others):
    return {**tiny.SETTINGS, "model": "test_faults_memory:Short", "methods": ("spl",), **others}


def train(folder):
    os.chdir(folder)
    given = settings(checkpoint_seconds=0.0)
    given.pop("data")
    fit(tiny.DATA, **given, out="run")


def test_memory_that_runs_out_in_training_is_told_and_it_goes_on(tmp_path):
    tiny.write_data(tmp_path)
    ended = faulty.run(tmp_path, train, tmp_path)
    assert ended.code == 0, ended.err
    wanted = killing.outcome(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "undisturbed")
    (tmp_path / "short").touch()
    ended = faulty.run(tmp_path, train, tmp_path)
    assert ended.last.startswith("MemoryError: memory has run out (")
    assert "you tried to allocate 70368744177664 bytes" in ended.last
    assert ended.last.endswith(REMEDY)
    (tmp_path / "short").unlink()
    ended = faulty.run(tmp_path, train, tmp_path)
    assert ended.code == 0, ended.err
    assert killing.outcome(tmp_path / "run") == wanted


def show_lack_of_memory(folder):
    os.chdir(folder)
    options = ("--model", "test_faults_memory:Short", "--epochs", "4", "--batch-size", "34")
    return faulty.c2f("train", tiny.DATA, *options)


def test_the_command_says_so_in_one_line(tmp_path):
    tiny.write_data(tmp_path)
    (tmp_path / "short").touch()
    ended = faulty.run(tmp_path, show_lack_of_memory, tmp_path)
    assert ended.code == 2
    assert ended.last.startswith("error: memory has run out (")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 7.28 TiB for an array"),
        RuntimeError("[enforce fail at alloc_cpu.cpp:1] . not enough memory: you tried to"),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_it_is_called_it_is_the_same(error):
    with pytest.raises(MemoryError) as caught, memory_errors_explained():
        raise error
    assert str(caught.value).startswith("memory has run out (")
    assert str(caught.value).endswith(REMEDY)


def test_other_errors_are_left_as_they_are():
    with pytest.raises(RuntimeError, match="^mat1 and mat2 shapes"), memory_errors_explained():
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")


# --------------------------------------------------------------------------- a sweep's workers


class Noting(Observer):
    def __init__(self):
        self.ended = {}

    def done(self, task, result):
        assert result.method == task.name
        self.ended[task.name] = "done"

    def failed(self, task, error):
        self.ended[task.name] = str(error)


@pytest.mark.slow  # its worker loads torch first
def test_a_sweep_goes_on_when_a_worker_lacks_memory(tmp_path, monkeypatch):
    """Only the training that needs too much is given up, and the same command does it."""
    monkeypatch.chdir(tmp_path)
    tiny.write_data(tmp_path)
    (tmp_path / "short").touch()
    wanted, noting = Reproduction("short_of_memory:SWEEP", out="runs"), Noting()
    assert wanted.run("processes:1", noting).keys() == {wanted.tasks[-1]}
    assert noting.ended["baseline"] == noting.ended["spl"] == "done"
    assert noting.ended["hungry"].startswith("memory has run out (")
    (tmp_path / "short").unlink()
    assert wanted.run("processes:1", noting) == {}
    assert noting.ended["hungry"] == "done"
