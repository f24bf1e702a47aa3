"""Experiments by real processes, which are killed on the way."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path

import killing
import pytest
import tiny

from coarse2fine.executors import workers
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.runner import Observer
from coarse2fine.experiments.tasks import carry_out

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
NAME = "tiny:TINY"


class Killer(Observer):
    """Kills a worker in the middle of a training, so many times; then lets all go on."""

    def __init__(self, folder, kills):
        self.folder, self.kills = folder, kills
        self.killed, self.retries, self.failures = [], [], []

    def running(self, tasks):
        fresh = [pid for pid in tiny.held(self.folder) if pid not in self.killed]
        if self.kills and len(fresh) == len(tasks):
            assert all(task.epochs_done == 2 for task in tasks)
            self.others = {child.pid for child in active_children()} - {fresh[0]}
            os.kill(fresh[0], signal.SIGKILL)
            self.killed.append(fresh[0])
            self.kills -= 1
        if not self.kills:
            (self.folder / tiny.HOLD).unlink(missing_ok=True)

    def done(self, task, result):
        assert result.method == task.name
        self.left = {child.pid for child in active_children()}

    def retried(self, task):
        self.retries.append(task)

    def failed(self, task, error):
        self.failures.append((task.name, str(error)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tiny.prepared(tmp_path)


@pytest.fixture(scope="module")
def threads():
    """How many each of two processes has."""
    with workers("processes:2") as found:
        return found.threads


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, threads):
    return killing.outcome(tiny.compare(tmp_path_factory.mktemp("undisturbed"), threads))


def outcome(folder):
    return killing.outcome(folder / "runs" / tiny.SETTING.folder)


def test_a_killed_worker_loses_nothing_but_its_run_which_is_retried(folder, undisturbed):
    killer = Killer(folder, kills=1)
    assert Reproduction(NAME, out="runs").run("processes:2", killer) == {}
    assert outcome(folder) == undisturbed  # to the bit
    assert sum(name.endswith("result.json") for name in undisturbed) == 2 * 5  # seeds, runs
    assert len(killer.retries) == 1
    assert len(killer.others) == 1
    assert killer.others < killer.left
    assert not active_children()


@pytest.mark.slow
def test_a_run_whose_worker_is_killed_three_times_is_given_up(folder):
    killer = Killer(folder, kills=3)
    wanted = Reproduction(NAME, out="runs", seeds=(0,), only=("spl",))
    assert [task.name for task in wanted.run("processes:1", killer)] == ["baseline", "spl"]
    assert killer.failures == [
        ("baseline", "its process died 3 times; is there enough memory?"),
        ("spl", "its baseline could not be trained."),
    ]
    assert len(killer.retries) == 2
    assert not active_children()
    assert wanted.run("processes:1") == {}  # another call begins to count anew


# ------------------------------------------------------------------------ the command itself


def start(folder):
    """Start the command in a session of its own, and wait until its worker is held."""
    shutil.copy(tiny.__file__, folder)
    command = ["paper", NAME, "--seeds", "1", "--only", "spl", "--executor", "processes:2"]
    process = subprocess.Popen(
        [sys.executable, "-m", "coarse2fine.cli", *command, "--out", "runs"],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and not tiny.held(folder):
        time.sleep(0.02)
    assert process.poll() is None, process.stderr.read()
    (worker,) = tiny.held(folder)
    Path(folder / f"{worker}.held").unlink()
    return process, worker


def in_session(session):
    """The processes that are still running of those that a command started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, own = path.read_text().rpartition(") ")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(own) == session and state != "Z":
            found.append(int(path.parent.name))
    return found


def wait_for_end(session):
    """Wait for all that a command started, among it what Python cleans up with."""
    ends = time.monotonic() + killing.PATIENCE
    while in_session(session):
        assert time.monotonic() < ends, "what the command started lives on"
        time.sleep(0.02)


@pytest.mark.slow
def test_ctrl_c_ends_all_with_one_sentence(folder):
    process, worker = start(folder)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert process.returncode == 130
    assert err.splitlines()[-1] == "stopped with 0 of 2 runs done; the same command resumes"
    assert "Traceback" not in err
    assert out == ""
    wait_for_end(process.pid)
    assert not tiny.is_running(worker)
    assert "spl | 0 |" in (folder / "runs" / "tiny.TINY-only-spl.md").read_text()


@pytest.mark.slow
def test_where_the_command_is_killed_its_workers_end_and_it_goes_on(folder, threads, undisturbed):
    process, _ = start(folder)
    process.kill()
    process.communicate()
    wait_for_end(process.pid)  # the worker notices, and ends itself

    (folder / tiny.HOLD).unlink()
    for task in Reproduction(NAME, out="runs", seeds=(0,), only=("spl",)).tasks:
        carry_out(replace(task, threads=threads))
    wanted = ("seed-0/baseline", "seed-0/spl")
    assert outcome(folder) == {k: v for k, v in undisturbed.items() if k.startswith(wanted)}
