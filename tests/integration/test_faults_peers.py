"""A process that dies or stalls ends the others of a training in a set time, by one sentence."""

import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import faulty
import killing
import pytest
import tiny

from coarse2fine.runs.config import Config
from coarse2fine.training.processes import launch
from coarse2fine.training.trainer import Trainer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
SENTENCE = (
    r"another of the 2 processes of this training has died, or has not answered for {} seconds "
    r"\([^()]+\); see what became of it, then the same command resumes from the last checkpoint\."
)


@pytest.mark.parametrize("seconds", [0, -1.0, float("nan"), float("inf")])
def test_the_time_to_wait_must_be_some_time(seconds):
    with pytest.raises(ValueError, match="peer_seconds must be more than 0. Got"):
        launch(Config(accelerator="cpu", devices=1), seconds)


# ------------------------------------------- two processes as torchrun would have started them


def stall(*_):
    os.kill(os.getpid(), signal.SIGSTOP)


def take_part(rank, port, out, patience, victim, how):
    """Train as one of two; the victim stalls or dies in the second epoch of the curriculum."""
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "one",
    }
    if rank == victim:
        killing.die = {"stalls": stall, "dies": killing.die}[how]
        killing.die_at([Trainer], "_train_batches", 5)
    faulty.small_fit(out, peer_seconds=patience)


def train_by_two(folder, out, patience=60.0, victim=None, how="stalls"):
    """Return how long after the other was lost each process ended, and what it wrote."""
    port = unused_port()
    folders = [folder / "0", folder / "1"]
    started = []
    try:
        for rank, own in enumerate(folders):
            own.mkdir(exist_ok=True)
            arguments = (rank, port, out, patience, victim, how)
            started.append(faulty.begin(own, take_part, *arguments))
        if victim is not None:
            wait_for(lambda: not started[victim].is_alive() or is_stopped(started[victim].pid))
        lost = time.monotonic()
        for rank in {0, 1} - {victim}:
            started[rank].join(killing.PATIENCE)
        seconds = time.monotonic() - lost
    finally:
        for process in started:
            process.kill()
            process.join()
    codes = [process.exitcode for process in started]
    return codes, seconds, [(own / "stderr.txt").read_text() for own in folders]


def unused_port():
    """A port that nobody listens on, nor is given to others that ask the system for any."""
    first_given, _ = map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
    while True:
        port = random.randrange(max(1024, first_given - 10_000), max(2048, first_given))
        with socket.socket() as own, suppress(OSError):
            own.bind(("127.0.0.1", port))
            return port


def wait_for(condition):
    ends = time.monotonic() + killing.PATIENCE
    while not condition():
        assert time.monotonic() < ends, "it hangs"
        time.sleep(0.01)


def is_stopped(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"
    except (FileNotFoundError, ProcessLookupError):  # it has died meanwhile
        return False


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    codes, _, errors = train_by_two(folder, folder / "run")
    assert codes == [0, 0], errors
    return killing.outcome(folder / "run")


@pytest.mark.parametrize(("victim", "how"), [(0, "stalls"), (1, "stalls"), (1, "dies")])
def test_the_other_ends_in_time_and_the_run_resumes(victim, how, tmp_path, undisturbed):
    # Long enough for two processes to find each other, which counts too, on a busy machine.
    out, patience = tmp_path / "run", 6.0
    codes, seconds, errors = train_by_two(tmp_path, out, patience, victim, how)
    assert codes[1 - victim] == 1
    assert codes[victim] == -signal.SIGKILL
    assert seconds < patience + 60  # where gloo by itself would wait for half an hour
    if how == "stalls":  # which is noticed here some time after it did
        assert seconds > patience / 4
    last = errors[1 - victim].splitlines()[-1]
    assert re.fullmatch(r"coarse2fine\.errors\.RunError: " + SENTENCE.format(6), last)
    assert not (out / "result.json").exists()
    codes, _, errors = train_by_two(tmp_path, out)
    assert codes == [0, 0], errors
    assert killing.outcome(out) == undisturbed


# --------------------------------------------------------------------------- the command itself

TRAIN = ["train", tiny.DATA, "--model", "tiny:Net", "--epochs", "4", "--patience", "0"]
TRAIN += ["--batch-size", "34", "--learning-rate", "0.02", "--curriculum-epochs", "2"]
TRAIN += ["--accelerator", "cpu", "--out", "run", "--json"]
# Long enough for two processes to find each other, which counts too, on a busy machine.
PEER_SECONDS = 45
FOR_PEERS = ["--peer-seconds", str(PEER_SECONDS)]
PYTHON = [sys.executable, "-m"]
LAUNCHERS = {
    "torchrun": [*PYTHON, "torch.distributed.run", "--standalone", "--nproc_per_node=2", "-m"],
    "devices": PYTHON,
}


@contextmanager
def held(folder, launcher, *options):
    """Start the command, and hold its two processes in the middle of training."""
    tiny.write_data(folder)
    (folder / tiny.HOLD).touch()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)}
    with (folder / "stderr.txt").open("w") as errors:
        process = subprocess.Popen(
            [*LAUNCHERS[launcher], "coarse2fine.cli", *TRAIN, *options],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
    pids = {}
    try:
        wait_for(lambda: process.poll() is not None or len(tiny.held(folder)) == 2)
        pids = {rank_of(pid): pid for pid in tiny.held(folder)}
        assert pids.keys() == {0, 1}, (folder / "stderr.txt").read_text()
        yield process, pids
    finally:
        for pid in (*pids.values(), process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def rank_of(pid):
    found = Path(f"/proc/{pid}/environ").read_text().split("\0")
    names = dict(pair.split("=", 1) for pair in found if "=" in pair)
    return int(names.get("RANK", names.get("LOCAL_RANK", "0")))


def errors_of(folder):
    lines = (folder / "stderr.txt").read_text().splitlines()
    return [line for line in lines if line.startswith("error: ")]


@pytest.mark.slow
def test_torchrun_ends_after_one_of_its_processes_has_stalled(tmp_path):
    """It has 30 seconds' patience of its own with a process that does not end when told to."""
    with held(tmp_path, "torchrun", *FOR_PEERS) as (process, pids):
        os.kill(pids[1], signal.SIGSTOP)
        (tmp_path / tiny.HOLD).unlink()
        assert process.wait(killing.PATIENCE) == 1
        (error,) = errors_of(tmp_path)
        assert re.fullmatch("error: " + SENTENCE.format(PEER_SECONDS), error)
        assert not any(map(tiny.is_running, pids.values()))


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_processes_that_the_command_started_itself_end_with_it(how, tmp_path):
    """The time counts from the start, where the other process must be found first."""
    with held(tmp_path, "devices", "--devices", "2", *FOR_PEERS) as (process, pids):
        os.kill(pids[1], how)
        (tmp_path / tiny.HOLD).unlink()
        assert process.wait(killing.PATIENCE) == 2
        (error,) = errors_of(tmp_path)
        assert re.fullmatch("error: " + SENTENCE.format(PEER_SECONDS), error)
        wait_for(lambda: not tiny.is_running(pids[1]))


@pytest.mark.slow
def test_processes_that_the_command_started_end_when_it_is_killed(tmp_path):
    with held(tmp_path, "devices", "--devices", "2") as (process, pids):
        process.kill()
        (tmp_path / tiny.HOLD).unlink()
        wait_for(lambda: not tiny.is_running(pids[1]))
