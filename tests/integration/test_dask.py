"""Experiments on a Dask cluster: a real one, on loopback, whose workers are processes."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import wait
from contextlib import contextmanager

import killing
import numpy as np
import pytest
import tiny

from coarse2fine import RunError, cluster_embeddings, executors
from coarse2fine._affinity import spread
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.experiments.runner import Observer

distributed = pytest.importorskip("distributed", reason="distributed is not installed")
NAME = "tiny:TINY"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tiny.prepared(tmp_path)


def cluster(workers):
    return distributed.LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=False,
    )


class Killer(Observer):
    """Kills one of two workers in the middle of a training, then lets all go on."""

    def __init__(self, folder):
        self.folder, self.killed = folder, None

    def begin(self, tasks, workers):
        self.tasks, self.workers = len(tasks), workers

    def running(self, tasks):
        found = tiny.held(self.folder)
        if self.killed is None and len(found) == 2:
            assert all(task.epochs_done == 2 for task in tasks)
            self.killed = found[0]
            os.kill(self.killed, signal.SIGKILL)
            (self.folder / tiny.HOLD).unlink()


@pytest.mark.slow
def test_a_killed_worker_loses_nothing_but_its_run_which_is_retried(folder, tmp_path_factory):
    killer = Killer(folder)
    with cluster(workers=2) as two:
        wanted = Reproduction(NAME, out="runs", only=("spl",))
        assert wanted.run(two.scheduler_address, killer) == {}
    assert (killer.tasks, killer.workers) == (4, 2)
    assert killer.killed is not None
    undisturbed = tiny.compare(tmp_path_factory.mktemp("undisturbed"), 1, methods=("spl",))
    found = killing.outcome(folder / "runs" / tiny.SETTING.folder)
    assert found == killing.outcome(undisturbed)  # to the bit
    assert sum(name.endswith("result.json") for name in found) == 4


def test_a_cluster_without_workers_is_told_in_one_sentence(folder):
    with cluster(workers=0) as none:
        address = none.scheduler_address
        with pytest.raises(ValueError, match=r"^the Dask cluster at \S+ has no workers; start one"):
            Reproduction(NAME, out="runs").run(address)
    assert (folder / "runs" / "tiny.TINY.json").is_file()


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "smoke://127.0.0.1:1", "tls://127.0.0.1:1"]
)
@pytest.mark.usefixtures("folder")
def test_a_wrong_address_is_told_in_one_sentence(monkeypatch, address):
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.5)
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Reproduction(NAME, out="runs").run(address)
    assert str(error.value).startswith(f"there is no Dask cluster at {address} (")
    assert str(error.value).endswith(
        "; start one by dask scheduler and dask worker, or leave --executor out."
    )
    assert "\n" not in str(error.value)


@contextmanager
def started(command, *arguments):
    process = subprocess.Popen(
        [sys.executable, "-m", f"distributed.cli.dask_{command}", *arguments]
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_scheduler_that_is_killed_ends_it_with_one_sentence(folder, monkeypatch):
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 15)
    shutil.copy(tiny.__file__, folder)  # where the worker finds the model
    file = folder / "scheduler.json"

    class KillerOfScheduler(Observer):
        def running(self, _):
            if tiny.held(folder):
                scheduler.kill()

    quiet = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
    with (
        started("scheduler", "--port", "0", *quiet) as scheduler,
        started("worker", "--nthreads", "1", "--no-nanny", *quiet),
    ):
        while not file.exists():
            assert scheduler.poll() is None
            time.sleep(0.02)
        with distributed.Client(scheduler_file=str(file), set_as_default=False) as client:
            client.wait_for_workers(1)
            address = client.scheduler.address
        with pytest.raises(RunError, match=r"^the Dask cluster at \S+ has gone; start it again"):
            Reproduction(NAME, out="runs").run(address, KillerOfScheduler())


@pytest.mark.slow
def test_a_killed_workers_block_of_a_clustering_is_computed_again(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((5000, 64), dtype=np.float32)
    killed = []

    def wait_and_kill(*arguments, **options):
        found = wait(*arguments, **options)
        if found[0] and not killed:
            killed.append(workers.pop())
            os.kill(killed[0], signal.SIGKILL)
        return found

    monkeypatch.setattr(spread, "wait", wait_and_kill)
    with cluster(workers=2) as two:
        with distributed.Client(two.scheduler_address, set_as_default=False) as client:
            workers = list(client.run(os.getpid).values())
        found = cluster_embeddings(rows, executor=two.scheduler_address)
    assert killed
    alone = cluster_embeddings(rows)
    for one, other in zip(found.levels, alone.levels, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.edges, alone.edges)
    np.testing.assert_array_equal(found.heights, alone.heights)  # to the bit
