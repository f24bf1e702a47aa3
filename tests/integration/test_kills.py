"""A run that is killed at any moment ends, when it is resumed, as if it had not been."""

import random
import time

import killing
import pytest


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    process = killing.start(out)
    process.join(120)
    assert process.exitcode == 0
    return killing.outcome(out)


def resume_to_the_end(out):
    process = killing.start(out)
    process.join(120)
    assert process.exitcode == 0
    return killing.outcome(out)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", killing.PLACES)
def test_a_kill_around_any_change_loses_nothing(place, after, tmp_path, undisturbed):
    # A comparison begins four stages: the baseline's, the continuous one, the two staged ones.
    calls = (1, 2, 2, 1) if place == "stage" else (1, 5, 14, 22)
    kills = 0
    for call in calls:
        process = killing.start(tmp_path, place, call, after)
        process.join(120)
        assert process.exitcode in (0, -9)
        kills += process.exitcode == -9
    assert kills >= 2
    assert resume_to_the_end(tmp_path) == undisturbed


def test_a_kill_at_every_beginning_of_a_stage_loses_nothing(tmp_path, undisturbed):
    for call, after in ((1, True), (2, True), (3, True), (4, True), (4, False)):
        out = tmp_path / f"{call}-{after}"
        process = killing.start(out, "stage", call, after)
        process.join(120)
        assert process.exitcode == -9
        assert resume_to_the_end(out) == undisturbed


def epochs_logged(out):
    return sum(path.read_bytes().count(b"\n") for path in out.glob("seed-0/*/metrics.jsonl"))


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_lose_nothing(seed, tmp_path, undisturbed):
    moments = random.Random(seed)
    out, kills = tmp_path / "0", 0
    for attempt in range(40):
        process = killing.start(out)
        wanted = epochs_logged(out) + moments.randint(1, 3)
        while process.is_alive() and epochs_logged(out) < wanted:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.01))
        process.kill()
        process.join()
        kills += process.exitcode == -9
        if kills == 6:
            break
        if process.exitcode == 0:  # it was too quick; what it made counts all the same
            assert killing.outcome(out) == undisturbed
            out = tmp_path / str(attempt + 1)
    assert kills == 6
    assert resume_to_the_end(out) == undisturbed
