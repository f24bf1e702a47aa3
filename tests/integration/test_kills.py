"""A run that is killed at any moment ends, when it is resumed, as if it had not been."""

import random

import killing
import pytest


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    killing.finish(killing.start(out))
    return killing.outcome(out)


def resume_to_the_end(out):
    killing.finish(killing.start(out))
    assert killing.leftovers(out) == []
    return killing.outcome(out)


def kill_and_resume(out, place, calls, *, after):
    """Kill at each of the calls in turn, counted anew every time, and go on to the end."""
    for call in calls:
        assert killing.kills_itself(out, place, call, after)
    return resume_to_the_end(out)


# A comparison has 27 epochs with one checkpoint each, 50 small files, 129 of tensors; the
# kills lie far enough apart to fall into different methods.
CALLS = {"sync": (1, 50, 80, 100), "replace": (1, 9, 16, 20), "tensors": (1, 25, 40, 50)}
OWN_TESTS = ("stage", "level")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", [name for name in killing.PLACES if name not in OWN_TESTS])
def test_a_kill_around_any_change_loses_nothing(place, after, tmp_path, undisturbed):
    calls = CALLS.get(place, (1, 5, 9, 11))
    assert kill_and_resume(tmp_path, place, calls, after=after) == undisturbed


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_every_beginning_of_a_stage_loses_nothing(after, tmp_path, undisturbed):
    """Two of the staged method, one of the others; a resumed process begins its own again.

    After the second stage's beginning, that is both: the first, which is over, comes first.
    """
    calls = (1, 2, 2, 2, 3, 2, 2, 2, 2)
    assert kill_and_resume(tmp_path, "stage", calls, after=after) == undisturbed


def test_a_kill_before_the_last_epoch_of_every_method_loses_nothing(tmp_path, undisturbed):
    """Each is in its third epoch, so that what it has learned or chosen so far matters."""
    calls = (3, *[4] * len(killing.METHODS), 4)
    assert kill_and_resume(tmp_path, "epoch", calls, after=False) == undisturbed


def test_what_methods_have_learned_is_part_of_what_is_compared(undisturbed):
    state = {
        name.split("/")[1]: tensors
        for name, tensors in undisturbed.items()
        if name.endswith("checkpoint/method.safetensors")
    }
    assert state.keys() == {"spl", "dp-l", "dp-li", "nbdt"}
    values = state["dp-li"]["instances.values"]
    assert len(set(values)) > 0.9 * len(values)
    assert state["spl"]["threshold"] > 0
    assert not state["spl"]["is_complete"]


@pytest.mark.parametrize("seed", range(3))
def test_kills_at_random_moments_lose_nothing(seed, tmp_path, undisturbed):
    moments = random.Random(seed)
    out, kills = tmp_path / "0", 0
    for attempt in range(40):
        process = killing.start(out)
        kills += killing.kill_somewhen(process, out, moments)
        if kills == 6:
            break
        if process.exitcode == 0:  # it was too quick; what it made counts all the same
            assert killing.outcome(out) == undisturbed
            out = tmp_path / str(attempt + 1)
    assert kills == 6
    assert resume_to_the_end(out) == undisturbed
