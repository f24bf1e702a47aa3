"""Kills around level changes, and amid the trainings that others are set by."""

import random

import killing
import pytest


def outcome(out, training):
    killing.finish(killing.start(out, None, 0, False, training))
    assert killing.leftovers(out) == []
    return killing.outcome(out)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    return {name: outcome(folder / name, name) for name in ("levels", "search")}


def test_the_level_changes_with_almost_every_epoch(undisturbed):
    lines = undisturbed["levels"]["seed-0/continuous/metrics.jsonl"]
    assert [line["level"] for line in lines] == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_every_level_change_loses_nothing(after, tmp_path, undisturbed):
    """A resumed process trains the epoch that was cut off, so the next change is its second."""
    for call in (1, 2, 2, 2, 2):
        assert killing.kills_itself(tmp_path, "level", call, after, "levels")
    assert outcome(tmp_path, "levels") == undisturbed["levels"]


@pytest.mark.parametrize("place", ["checkpoint", "replace"])
@pytest.mark.parametrize("epoch", [2, 3, 4])
def test_a_kill_amid_what_follows_a_level_change_loses_nothing(epoch, place, tmp_path, undisturbed):
    """Again and again in the first epoch of a level, until one process gets through it."""
    first = {"checkpoint": epoch, "replace": epoch + 3}[place]
    for call, after in ((first, False), (1, True), (1, False)):
        assert killing.kills_itself(tmp_path, place, call, after, "levels")
    assert outcome(tmp_path, "levels") == undisturbed["levels"]


@pytest.mark.parametrize("seed", range(2))
def test_kills_amid_a_search_for_the_length_lose_nothing(seed, tmp_path, undisturbed):
    moments, out, kills = random.Random(seed), tmp_path / "0", 0
    for attempt in range(40):
        process = killing.start(out, None, 0, False, "search")
        kills += killing.kill_somewhen(process, out, moments)
        if kills == 5:
            break
        if process.exitcode == 0:  # it was too quick; what it made counts all the same
            assert killing.outcome(out) == undisturbed["search"]
            out = tmp_path / str(attempt + 1)
    assert kills == 5
    assert outcome(out, "search") == undisturbed["search"]


def test_what_a_library_was_writing_at_the_kill_is_removed(tmp_path, undisturbed):
    process = killing.in_server(killing.work_half, tmp_path, "levels")
    assert killing.exit_code(process) == -9
    assert any(name.endswith("/.tmpA1b2C3") for name in killing.leftovers(tmp_path))
    assert outcome(tmp_path, "levels") == undisturbed["levels"]
