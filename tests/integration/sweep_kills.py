"""A small sweep in a process of its own, which can be killed, as can its workers.

All are forked from one server that has torch loaded, so that each costs little; what starts
workers by the hundred would otherwise mostly import.
"""

import multiprocessing
import os
import random
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import forkserver
from pathlib import Path

import killing
import tiny

from coarse2fine import executors
from coarse2fine.experiments import runner, tasks
from coarse2fine.experiments.content import read_results
from coarse2fine.experiments.reproduce import Reproduction
from coarse2fine.runs import writer as run

NAME, OUT = "tiny:TINY", "runs"
WORKERS = 2


def carry_out(task):
    """Train as a worker does, with a checkpoint after every epoch and without syncs."""
    killing.hurry()
    made = tasks._seed_runs
    tasks._seed_runs = lambda task: replace(made(task), checkpoint_seconds=0.0)
    try:
        return tasks.carry_out(task)
    finally:
        tasks._seed_runs = made


def one_process():
    context = multiprocessing.get_context("forkserver")
    return ProcessPoolExecutor(1, context, initializer=executors._begin_worker)


def work(folder):
    """Carry out the sweep in a folder; exit with 1 where something was given up."""
    os.chdir(folder)
    killing.hurry()
    forkserver._forkserver.ensure_running = lambda: None  # the one that this process is of
    executors._one_process, runner.carry_out = one_process, carry_out
    runner.POLL_SECONDS = 0.02
    sys.exit(bool(Reproduction(NAME, out=OUT).run(f"processes:{WORKERS}")))


def carry_out_untidily(folder):
    """Train a baseline and a variant, but die before the variant's checkpoints are removed.

    Nobody needs the variant again, unlike the baseline.
    """
    os.chdir(folder)
    killing.die_at([run], "remove_checkpoints", 2)
    carry_out(Reproduction(NAME, out=OUT).tasks[1])


def store_but_die(folder, call):
    """Write the results' files once more, and die before one of them is in its place."""
    os.chdir(folder)
    killing.hurry()
    killing.die_at([os], "replace", call)
    Reproduction(NAME, out=OUT).store()


def start(folder):
    if not (folder / tiny.DATA).exists():
        tiny.write_data(folder)
    return killing.in_server(work, folder)


def outcome(folder):
    """All that must be the same to the bit, after a look at the table's file."""
    results = read_results(Path(folder, OUT, "tiny.TINY.json"))
    assert [len(row.runs) for row in results.rows] == [2 * 5]  # seeds, runs
    return killing.outcome(Path(folder, OUT, tiny.SETTING.folder))


def finished(folder):
    """The results so far: what each file holds, and what tells whether it was written again."""
    paths = Path(folder).glob(f"{OUT}/*/seed-*/*/{run.RESULT}")
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def workers(but):
    """The processes that the server has forked, without one."""
    server, found = forkserver._forkserver._forkserver_pid, []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(") ")[2].split()[:2]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(parent) == server and state != "Z" and int(path.parent.name) != but:
            found.append(int(path.parent.name))
    return found


def end(folder):
    """Let the sweep go on to its end; nothing but results and locks is left of it."""
    process = start(folder)
    killing.finish(process)
    wait_for_workers(process)
    assert killing.leftovers(Path(folder, OUT)) == []
    return outcome(folder)


def wait_for_workers(process):
    """Wait until the workers of a dead parent have ended by themselves."""
    ends = time.monotonic() + killing.PATIENCE
    while found := workers(process.pid):
        if time.monotonic() > ends:
            for worker in found:
                os.kill(worker, signal.SIGKILL)
            raise AssertionError("the workers of a killed sweep live on")
        time.sleep(0.01)


def kill_parent(folder, moments):
    """Carry the sweep on until it is killed at some moment, and return whether it was.

    In one of two cases the next call comes before its workers have noticed.
    """
    process = start(folder)
    is_killed = killing.kill_somewhen(process, Path(folder, OUT), moments, epochs=10)
    assert is_killed or process.exitcode == 0
    if moments.random() < 0.5:
        wait_for_workers(process)
    return is_killed


def kill_workers(folder, moments: random.Random, most):
    """Carry the sweep on while its workers are killed, and return how many were.

    At times a training dies so often that it is given up; then the next call goes on.
    """
    process, kills = start(folder), 0
    while process.is_alive() and kills < most:
        if not killing.wait_for_epochs(process, folder, moments, epochs=6):
            break
        kills += _kill_one(process, moments)
    assert killing.exit_code(process) in (0, 1)
    return kills


def _kill_one(parent, moments):
    found = workers(parent.pid)
    if not found or not parent.is_alive():  # they end with it
        return False
    victim = moments.choice(found)
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return False
    while tiny.is_running(victim):
        time.sleep(0.001)
    return True
