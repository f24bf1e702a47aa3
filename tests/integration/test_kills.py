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
    for call in (1, 5, 14, 22):
        process = killing.start(tmp_path, place, call, after)
        process.join(120)
        if process.exitcode == 0:
            break
        assert process.exitcode == -9
    assert resume_to_the_end(tmp_path) == undisturbed


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_lose_nothing(seed, tmp_path, undisturbed):
    moments = random.Random(seed)
    for _ in range(6):
        process = killing.start(tmp_path)
        time.sleep(moments.uniform(0.3, 1.5))
        process.kill()
        process.join()
    assert resume_to_the_end(tmp_path) == undisturbed
