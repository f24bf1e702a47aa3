"""A sweep whose parent or workers are killed at any moment ends as if they had not been."""

import random
import sys

import killing
import pytest
import sweep_kills
import tiny
from sweep_kills import end, finished

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
SEEDS = pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a sweep that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    end(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(whole):
    return sweep_kills.outcome(whole)


@SEEDS
def test_a_killed_sweep_goes_on_and_never_touches_what_was_finished(seed, tmp_path, undisturbed):
    moments, before = random.Random(seed), {}
    for _ in range(6):
        sweep_kills.kill_parent(tmp_path, moments)
        assert before.items() <= finished(tmp_path).items()
        before = finished(tmp_path)
    assert before
    assert end(tmp_path) == undisturbed
    assert before.items() <= finished(tmp_path).items()


@SEEDS
def test_a_sweep_whose_workers_are_killed_ends_as_if_none_had_been(seed, tmp_path, undisturbed):
    moments, kills = random.Random(seed), 0
    for attempt in range(8):
        folder = tmp_path / str(attempt)  # another sweep, where one was too quick to be killed
        folder.mkdir()
        kills += sweep_kills.kill_workers(folder, moments, most=6)
        before = finished(folder)
        assert end(folder) == undisturbed
        assert before.items() <= finished(folder).items()
        if kills > 3:
            break
    assert kills > 3


def killed(target, *args):
    return killing.exit_code(killing.in_server(target, *args)) == -9


def test_what_a_worker_could_not_remove_once_its_run_was_done_is_removed(tmp_path, undisturbed):
    tiny.write_data(tmp_path)
    assert killed(sweep_kills.carry_out_untidily, tmp_path)
    before = finished(tmp_path)
    assert len(before) == 2
    assert any("checkpoint/0" in name for name in killing.leftovers(tmp_path))
    assert end(tmp_path) == undisturbed
    assert before.items() <= finished(tmp_path).items()


@pytest.mark.parametrize("call", [1, 2], ids=["results", "table"])
def test_results_and_table_are_whole_after_a_kill_amid_writing_them(call, whole):
    files = [whole / sweep_kills.OUT / f"tiny.TINY.{kind}" for kind in ("json", "md")]
    before = [file.read_bytes() for file in files]
    assert killed(sweep_kills.store_but_die, whole, call)
    assert [file.read_bytes() for file in files] == before
    assert killing.leftovers(whole)
    end(whole)
