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


@pytest.fixture(scope="module")
def duration(tmp_path_factory, undisturbed):  # noqa: ARG001 (by then all is loaded)
    """How many seconds a comparison takes on this machine."""
    started = time.perf_counter()
    resume_to_the_end(tmp_path_factory.mktemp("timed"))
    return time.perf_counter() - started


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_lose_nothing(seed, tmp_path, undisturbed, duration):
    moments = random.Random(seed)
    kills = 0
    for _ in range(6):
        process = killing.start(tmp_path)
        time.sleep(moments.uniform(0.1, 0.4) * duration)
        process.kill()
        process.join()
        kills += process.exitcode == -9
    assert kills >= 3
    assert resume_to_the_end(tmp_path) == undisturbed
