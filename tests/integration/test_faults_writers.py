"""Two that write to one place, disks without locks, and clocks that jump."""

import errno
import fcntl
import multiprocessing
import os
import shutil
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import faulty
import killing
import pytest
import tiny

from coarse2fine import RunError, fit
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.tasks import carry_out
from coarse2fine.runs.guards import locked
from coarse2fine.training import trainer
from coarse2fine.training.trainer import Trainer

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="locks are tried out on Linux")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tiny.prepared(tmp_path)


OTHERS = {name: value for name, value in tiny.SETTINGS.items() if name != "data"}
FIT = {**OTHERS, "methods": ("spl",), "seeds": (0,)}
TRAIN = ["train", tiny.DATA, "--method", "spl", "--seeds", "1"]
for _name, _value in OTHERS.items():
    TRAIN += [f"--{_name.replace('_', '-')}", str(_value)]


def train(out):
    fit(tiny.DATA, **FIT, out=out)


def sweep(name):
    """Do one training of an experiment, as a worker of a sweep does."""
    wanted = Reproduction("tiny:TINY", out="runs", seeds=(0,), only=("spl",))
    carry_out(next(task for task in wanted.tasks if task.name == name))


STORE = f"runs/{tiny.SETTING.folder}"


@contextmanager
def first(folder, function, *args):
    """One that is held in the middle of a training, and ends well once it is let go on."""
    own = folder / "first"
    own.mkdir()
    process = faulty.begin(own, function, *args)
    try:
        wait_until_held(process, folder, own)
        yield process
        (folder / tiny.HOLD).unlink(missing_ok=True)
        assert killing.exit_code(process) == 0, (own / "stderr.txt").read_text()
    finally:
        process.kill()
        process.join()


def wait_until_held(process, folder, own):
    ends = time.monotonic() + killing.PATIENCE
    while not tiny.held(folder):
        assert process.is_alive(), (own / "stderr.txt").read_text()
        assert time.monotonic() < ends, "it hangs"
        time.sleep(0.01)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    tiny.write_data(folder)
    ended = faulty.run(folder, train_in, folder, folder / "run")
    assert ended.code == 0, ended.err
    return killing.outcome(folder / "run")


def train_in(folder, out):
    os.chdir(folder)
    train(out)


# ----------------------------------------------------------------------------- two writers


def test_a_second_command_is_refused_and_the_first_ends_as_if_alone(folder, undisturbed):
    with first(folder, faulty.c2f, *TRAIN, "--out", "run"):
        ended = faulty.run(folder, faulty.c2f, *TRAIN, "--out", "run")
        assert ended.code == 2
        sentence = "error: run is in use by another process; wait for it, or choose another folder."
        assert ended.err == f"{sentence}\n"
    assert killing.outcome(folder / "run") == undisturbed
    ended = faulty.run(folder, faulty.c2f, *TRAIN, "--out", "run")  # which finds it done
    assert ended.code == 0
    assert killing.outcome(folder / "run") == undisturbed


def test_training_is_refused_what_a_sweep_is_at(folder, undisturbed):
    with first(folder, sweep, "baseline"):
        ended = faulty.run(folder, train, STORE)
        wanted = f"RunError: {STORE}/seed-0/baseline is in use by another process; wait for it"
        assert wanted in ended.last.replace(f"{folder}/", "")
    ended = faulty.run(folder, train, STORE)
    assert ended.code == 0, ended.err
    assert killing.outcome(folder / STORE) == undisturbed


def test_a_sweep_is_refused_what_training_is_at(folder, undisturbed):
    with first(folder, train, STORE):
        ended = faulty.run(folder, sweep, "baseline")
        assert "seed-0/baseline is in use by another process; wait for it" in ended.last
    assert killing.outcome(folder / STORE) == undisturbed


def test_a_second_sweep_waits_for_what_the_first_is_at(folder, undisturbed):
    with first(folder, sweep, "baseline"):
        second = folder / "second"
        second.mkdir()
        process = faulty.begin(second, sweep_and_tell, "baseline")
        try:
            while process.is_alive() and not (folder / "waiting").exists():
                time.sleep(0.01)
            (folder / tiny.HOLD).unlink()
            assert killing.exit_code(process) == 0, (second / "stderr.txt").read_text()
        finally:
            process.kill()
            process.join()
    found = killing.outcome(folder / STORE)
    assert found == {name: undisturbed[name] for name in found}
    assert "seed-0/baseline/result.json" in found


def sweep_and_tell(name):
    """Leave a note whenever there is something to be waited for."""
    sleep = time.sleep

    def tell(seconds):
        Path("waiting").touch()
        sleep(seconds)

    time.sleep = tell
    sweep(name)


def test_what_somebody_else_has_just_finished_is_not_trained_again(folder, undisturbed):
    (folder / tiny.HOLD).unlink()
    ended = faulty.run(folder, train_too_late)
    assert ended.code == 0, ended.err
    assert killing.outcome(folder / STORE) == undisturbed


def train_too_late():
    """Find a run not done, and have it done by another process before it is locked."""

    own = Trainer._begin_epoch

    def train_before():
        trainer.locked, Trainer._begin_epoch = locked, own
        train(STORE)

    @contextmanager
    def late(path):
        other = multiprocessing.get_context("fork").Process(target=train_before)
        other.start()
        other.join()
        assert other.exitcode == 0
        with locked(path):
            yield

    def refuse(_):
        raise AssertionError("it is trained again")

    trainer.locked, Trainer._begin_epoch = late, refuse
    sweep("baseline")


# -------------------------------------------------------------------------------- the locks


def test_a_lock_that_a_kill_left_does_not_block(folder, undisturbed):
    own = folder / "killed"
    own.mkdir()
    process = faulty.begin(own, train, "run")
    wait_until_held(process, folder, own)
    process.kill()
    process.join()
    locks = sorted(path.relative_to(folder) for path in folder.rglob("run/**/.lock"))
    assert len(locks) == 2
    for lock in locks:
        lock.write_text("what another program thinks a lock is")
    (folder / tiny.HOLD).unlink()
    ended = faulty.run(folder, train, "run")
    assert ended.code == 0, ended.err
    assert killing.outcome(folder / "run") == undisturbed


def train_without_locks(number):
    def flock(*_):
        raise OSError(number, os.strerror(number))

    fcntl.flock = flock
    return faulty.c2f(*TRAIN, "--out", "run")


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_disk_without_locks_is_told_in_one_sentence(number, folder):
    ended = faulty.run(folder, train_without_locks, number)
    assert ended.code == 2
    remedy = "choose a place on a disk that has locks, such as one of this machine"
    assert ended.err == f"error: run: {os.strerror(number)}; {remedy}\n"


def test_a_lock_that_cannot_be_had_leaves_the_folder_as_it_was(tmp_path):
    with locked(tmp_path), pytest.raises(RunError, match="in use"), locked(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


# -------------------------------------------------------------------------------- the clock

YEAR = 365 * 24 * 3600


def jump(step):
    """Have the clock jump by so many seconds whenever it is looked at."""
    now = [time.time()]

    def tell():
        now[0] += step
        return now[0]

    time.time = tell
    time.time_ns = lambda: int(tell() * 1e9)


def fit_by_a_jumping_clock(out, step, dies_at):
    jump(step)
    if dies_at:
        killing.die_at(*killing.PLACES["epoch"], dies_at)
    faulty.small_fit(out, checkpoint_seconds=1e-9)


@pytest.mark.parametrize("step", [-YEAR, YEAR], ids=["back", "forward"])
def test_a_clock_that_jumps_changes_nothing(step, tmp_path):
    wanted = faulty.small_outcome(tmp_path / "undisturbed")
    out = tmp_path / "run"
    ended = faulty.run(tmp_path, fit_by_a_jumping_clock, out, step, 6)
    assert ended.code == -9, ended.err
    checkpoints = out / "seed-0" / "continuous" / "checkpoint"
    assert sorted(path.name for path in checkpoints.iterdir()) == ["000001", "000002"]
    # The older checkpoint is the newer file, and all are of another century.
    for number, path in enumerate(sorted(out.rglob("*"), reverse=True)):
        os.utime(path, (number * YEAR, number * YEAR))
    ended = faulty.run(tmp_path, fit_by_a_jumping_clock, out, -step, None)
    assert ended.code == 0, ended.err
    assert killing.outcome(out) == wanted
    shutil.rmtree(out)
