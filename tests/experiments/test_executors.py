"""Processes that carry out trainings, here something simpler."""

import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures.process import BrokenProcessPool

import pytest
import torch

from coarse2fine import MissingExtraError, executors
from coarse2fine.executors import Processes, check_executor, workers


@pytest.fixture
def processes():
    two = Processes(2)
    yield two
    two.shutdown(wait=False)


def test_a_process_that_dies_is_replaced_and_the_other_is_left_alone(processes):
    slow = processes.submit(time.sleep, 0.2)  # so that the second has a process of its own
    first = processes.submit(os.getpid).result()
    slow.result()
    with pytest.raises(BrokenProcessPool):
        processes.submit(os._exit, 1).result()
    sleeper = processes.submit(time.sleep, 0.2)
    assert processes.submit(os.getpid).result() == first
    sleeper.result()


def test_processes_are_used_again(processes):
    assert len({processes.submit(os.getpid).result() for _ in range(3)}) == 1


def test_what_is_not_waited_for_ends_and_nothing_else_does():
    other = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
    other.start()
    own = Processes(1)
    pid = own.submit(os.getpid).result()
    future = own.submit(time.sleep, 600)
    own.shutdown(wait=False)
    with pytest.raises(BrokenProcessPool):
        future.result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert other.is_alive()
    other.kill()
    other.join()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals to block")
def test_ctrl_c_is_left_to_the_parent_from_the_very_start(processes):
    assert signal.SIGINT in processes.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result()
    assert processes.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_each_of_several_processes_has_its_share_of_the_cores(monkeypatch):
    monkeypatch.setattr(executors, "cores", lambda: 8)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name, expected in (("processes", (8, 1)), ("processes:3", (3, 2)), ("processes:9", (9, 1))):
        with workers(name) as found:
            assert (found.count, found.threads) == expected
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with workers("processes") as found:
        assert (found.count, found.threads) == (2, 4)


@pytest.mark.parametrize(("visible", "expected"), [(None, "1"), ("4,7", "7"), ("4", "4")])
def test_each_process_sees_one_of_several_gpus(monkeypatch, visible, expected):
    name = "CUDA_VISIBLE_DEVICES"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.delenv(name, raising=False)
    if visible is not None:
        monkeypatch.setenv(name, visible)
    with executors._seeing_one_gpu(3):
        assert os.environ[name] == expected
    assert os.environ.get(name) == visible


@pytest.mark.parametrize("name", ["", "threads", "processes:0", "processes:x", "127.0.0.1:8786"])
def test_an_executor_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match=r"executor must be processes, processes:N, or the add"):
        check_executor(name)


def test_without_dask_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with (
        pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[dask\]'"),
        workers("tcp://127.0.0.1:8786"),
    ):
        pass
