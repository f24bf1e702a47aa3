"""An editor that is killed at any moment of a save leaves the old file or the new one."""

import random

import pytest
from editor_kills import PLACES, Editing

from coarse2fine import Hierarchy

BEFORE_AND_AFTER = pytest.mark.parametrize("after", [False, True], ids=["before", "after"])


def save_once_more(editing):
    """A restarted editor opens the file and saves, and nothing strange is left beside it."""
    assert not editing.session(saves=1)
    assert Hierarchy.load(editing.path).cluster_names[0][0] == f"version {editing.tried}"
    assert editing.strays() == []


@BEFORE_AND_AFTER
@pytest.mark.parametrize("place", [name for name in PLACES if name != "touch"])
def test_a_kill_around_any_step_of_a_save_loses_nothing(place, after, tmp_path):
    """In the first save of a session, which keeps the old file, and in later ones."""
    editing = Editing(tmp_path / "animals.json")
    for call in (1, 1, 1) if place == "link" else (1, 2, 3):
        assert editing.session(3, place, call, after)
    save_once_more(editing)


@BEFORE_AND_AFTER
@pytest.mark.parametrize("place", ["touch", "sync", "mode", "replace", "unlink"])
def test_nor_where_the_old_file_must_be_copied(place, after, tmp_path):
    editing = Editing(tmp_path / "animals.json", has_links=False)
    assert editing.session(1, place, 1, after)
    if place != "touch":
        assert editing.session(1, place, 2, after)
    save_once_more(editing)


@pytest.mark.parametrize("seed", range(2))
def test_kills_at_random_moments_of_saving_lose_nothing(seed, tmp_path):
    editing, moments = Editing(tmp_path / "animals.json"), random.Random(seed)
    for first in range(8):  # so that some saves are answered, however long one takes
        assert editing.session(100_000, seconds=moments.uniform(0, 0.15), first=first % 3)
    save_once_more(editing)
    assert editing.count > 1
