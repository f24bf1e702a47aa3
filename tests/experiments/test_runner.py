"""Trainings are carried out in order, whatever fails or dies; none is real here."""

from collections import Counter
from concurrent.futures import Executor, Future
from contextlib import contextmanager

import pytest

from coarse2fine import RunError, RunResult
from coarse2fine.executors import Workers
from coarse2fine.experiments import runner
from coarse2fine.experiments.declaration import Setting, Variant
from coarse2fine.experiments.runner import Observer, Runner
from coarse2fine.experiments.tasks import expand


class DeathError(Exception):
    """Stands for the death of a worker."""


class Queue(Executor):
    """Carries out what was submitted first, when it is told to."""

    def __init__(self):
        self.calls = []

    def submit(self, function, /, *args):
        self.calls.append((Future(), function, args))
        return self.calls[-1][0]

    def finish_one(self):
        future, function, args = self.calls.pop(0)
        try:
            future.set_result(function(*args))
        except DeathError as error:
            future.set_exception(error)
        except ValueError as error:
            future.set_exception(error)
        except KeyboardInterrupt:
            future.cancel()
            future.set_running_or_notify_cancel()


class Log(Observer):
    """Notes all that it is told, and lets trainings end one by one."""

    def __init__(self, queue):
        self.queue, self.events, self.most = queue, [], 0

    def begin(self, tasks, workers):
        self.begun, self.workers = [short(task) for task in tasks], workers

    def running(self, tasks):
        self.most = max(self.most, len(tasks))
        self.queue.finish_one()

    def done(self, task, result):
        assert result.method == task.name
        self.events.append(f"{short(task)} done")

    def failed(self, task, error):
        self.events.append(f"{short(task)} failed: {error}")

    def retried(self, task):
        self.events.append(f"{short(task)} retried")


def short(task):
    return f"{task.name} {task.seed}"


def settings(*names):
    variants = tuple(Variant(name) for name in names or ("spl", "staged"))
    return (Setting("animals", {"data": "animals.csv", "model": "mlp"}, variants),)


@pytest.fixture
def carry_out(monkeypatch, tmp_path):
    """Carry out trainings of which some end otherwise, and return the errors and the log."""

    def carry_out(tasks=None, ends=None, count=1, check=lambda: None):
        queue = Queue()
        log = Log(queue)
        left = {name: list(errors) for name, errors in (ends or {}).items()}

        @contextmanager
        def workers(name):
            assert name == "here"
            yield Workers(queue, count, 3, DeathError, check)

        def end(task):
            assert task.threads == 3
            if left.get(short(task)):
                raise left[short(task)].pop(0)
            return RunResult(task.name, task.seed, 0.5, None, 1, 1, 1.0, True, None, (), task.path)

        monkeypatch.setattr(runner, "workers", workers)
        monkeypatch.setattr(runner, "carry_out", end)
        errors = Runner("here", log).run(tasks or expand(settings(), (0, 1), tmp_path))
        return {short(task): str(error) for task, error in errors.items()}, log

    return carry_out


def finish(task):
    task.path.mkdir(parents=True)
    (task.path / "result.json").touch()


def test_a_baseline_comes_before_what_is_compared_with_it(carry_out):
    errors, log = carry_out()
    assert errors == {}
    assert log.events == [
        f"{name} {seed} done" for seed in (0, 1) for name in ("baseline", "spl", "staged")
    ]
    assert (log.most, log.workers) == (1, 1)


def test_as_many_run_at_a_time_as_there_are_workers(carry_out):
    _, log = carry_out(count=2)
    assert log.most == 2
    assert log.events == [
        "baseline 0 done",
        "baseline 1 done",
        "spl 0 done",
        "staged 0 done",
        "spl 1 done",
        "staged 1 done",
    ]
    assert carry_out(count=9)[1].most == 4  # what is compared with the two baselines


def test_what_is_done_is_skipped(carry_out, tmp_path):
    tasks = expand(settings(), (0, 1), tmp_path)
    for task in tasks[:2]:
        finish(task)
    _, log = carry_out(tasks)
    assert log.begun == ["staged 0", "baseline 1", "spl 1", "staged 1"]
    assert log.events[0] == "staged 0 done"


def test_where_all_is_done_there_are_no_workers(carry_out, tmp_path):
    tasks = expand(settings("spl"), (0,), tmp_path)
    for task in tasks:
        finish(task)
    errors, log = carry_out(tasks)
    assert (errors, log.events) == ({}, [])
    assert not hasattr(log, "begun")


@pytest.mark.parametrize("death", [DeathError(), KeyboardInterrupt()], ids=["died", "cancelled"])
def test_a_training_whose_worker_dies_is_taken_up_again_at_once(carry_out, death):
    errors, log = carry_out(ends={"spl 0": [death]})
    assert errors == {}
    assert log.events[:4] == ["baseline 0 done", "spl 0 retried", "spl 0 done", "staged 0 done"]
    assert len(log.events) == 7


def test_after_three_deaths_a_training_is_given_up_and_the_others_go_on(carry_out):
    errors, log = carry_out(ends={"spl 0": [DeathError()] * 9}, count=2)
    assert errors == {"spl 0": "its process died 3 times; is there enough memory?"}
    assert Counter(event.split()[-1] for event in log.events)["done"] == 5
    assert log.events.count("spl 0 retried") == 2


def test_the_deaths_of_one_are_not_held_against_another(carry_out):
    ends = {"spl 0": [DeathError()] * 2, "staged 0": [DeathError()] * 2}
    assert carry_out(ends=ends, count=2)[0] == {}


def test_one_that_fails_by_itself_is_given_up_at_once(carry_out):
    errors, log = carry_out(ends={"spl 1": [ValueError("no")]})
    assert errors == {"spl 1": "no"}
    assert log.events[-2:] == ["spl 1 failed: no", "staged 1 done"]


def test_what_needs_a_baseline_that_failed_fails_with_it(carry_out):
    errors, log = carry_out(ends={"baseline 0": [ValueError("no data")]}, count=2)
    why = "its baseline could not be trained."
    assert errors == {"baseline 0": "no data", "spl 0": why, "staged 0": why}
    assert log.events == [
        "baseline 0 failed: no data",
        f"spl 0 failed: {why}",
        f"staged 0 failed: {why}",
        "baseline 1 done",
        "spl 1 done",
        "staged 1 done",
    ]


def test_where_nobody_is_left_to_carry_out_anything_it_ends(carry_out):
    checks = iter([None, None, RunError("gone")])

    def check():
        error = next(checks)
        if error:
            raise error

    with pytest.raises(RunError, match="gone"):
        carry_out(check=check)


def test_settings_with_the_same_baseline_train_it_once(carry_out, tmp_path):
    tasks = expand((*settings("spl"), *settings("staged", "spl")), (0,), tmp_path)
    assert [short(task) for task in tasks] == ["baseline 0", "spl 0", "staged 0"]
    errors, log = carry_out(tasks, {"baseline 0": [ValueError("no")]}, count=2)
    assert len(errors) == 3
    assert len(log.events) == 3
