"""Kills amid a comparison that goes on with more epochs: it ends as one that began with them."""

import random
import shutil

import killing
import pytest

from coarse2fine import RunResult


def finished(out, training):
    killing.finish(killing.start(out, None, 0, False, training))
    assert killing.leftovers(out) == []
    return killing.outcome(out)


@pytest.fixture(scope="module")
def shorter(tmp_path_factory):
    out = tmp_path_factory.mktemp("shorter") / "out"
    finished(out, "shorter")
    return out


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return finished(tmp_path_factory.mktemp("longer") / "out", "longer")


@pytest.fixture
def out(shorter, tmp_path):
    return shutil.copytree(shorter, tmp_path / "out")


def test_it_ends_as_one_that_began_with_as_many_epochs(out, undisturbed):
    assert finished(out, "longer") == undisturbed


CALLS = {"sync": (1, 9, 30), "replace": (1, 2, 5, 9), "tensors": (1, 12, 30), "remove": (1, 3, 6)}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", [name for name in killing.PLACES if name != "level"])
def test_a_kill_around_any_change_loses_nothing(place, after, out, undisturbed):
    for call in CALLS.get(place, (1, 2, 3)):
        assert killing.kills_itself(out, place, call, after, "longer")
        RunResult.load(out / "best").model(killing.Net)  # what was best is of use all the while
    assert finished(out, "longer") == undisturbed


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_random_moments_lose_nothing(seed, out, undisturbed):
    moments = random.Random(seed)
    for _ in range(4):
        killing.kill_somewhen(killing.start(out, None, 0, False, "longer"), out, moments, 3)
    assert finished(out, "longer") == undisturbed
