"""The same call with more epochs goes on from what there is, to the bits of a fresh one."""

import shutil

import pytest
from studies import (
    Interrupting,
    InterruptionError,
    compare,
    metrics,
    outcome,
    same_tensors,
    weights,
)

from coarse2fine import Hierarchy, Result, RunError, RunResult
from coarse2fine.methods.plain import Plain
from coarse2fine.training.progress import Watcher

CONTINUOUS = {"curriculum_epochs": 2, "hierarchy": Hierarchy.from_levels([[0, 0, 0, 1, 1, 1]])}


class Listening(Watcher):
    """Keeps what is said, and which epochs of which runs are trained."""

    def __init__(self):
        self.said, self.trained = [], {}

    def note(self, text):
        self.said.append(text)

    def begin(self, path, method, seed, epochs):  # noqa: ARG002
        self.name = path.name

    def epoch(self, found):
        self.trained.setdefault(self.name, []).append(found["epoch"])


def assert_same(found, wanted):
    assert [outcome(run) for run in found.runs] == [outcome(run) for run in wanted.runs]
    for one, other in zip(found.runs, wanted.runs, strict=True):
        assert one.path.name == other.path.name
        assert metrics(one.path) == metrics(other.path)
        assert same_tensors(weights(one), weights(other))
    assert outcome(found.best) == outcome(wanted.best)
    assert same_tensors(weights(RunResult.load(found.path / "best")), weights(wanted.best))


def lengthened(path, fewer, more, **options):
    """Train for fewer epochs, then for more, and compare with more from the start."""
    compare(path / "out", epochs=fewer, **options)
    watcher = Listening()
    found = compare(path / "out", epochs=more, watcher=watcher, **options)
    assert_same(found, compare(path / "fresh", epochs=more, **options))
    assert Result.load(path / "out").runs == tuple(sorted(found.runs, key=lambda run: run.seed))
    return watcher


# ------------------------------------------------------------------------ what goes on


def test_baseline_and_curriculum_go_on_to_the_same_bits(tmp_path):
    watcher = lengthened(tmp_path, 4, 9, **CONTINUOUS)
    assert watcher.trained == {"baseline": [5, 6, 7, 8, 9], "continuous": [5, 6, 7, 8, 9]}
    assert watcher.said == [
        "seed 0 baseline: goes on from epoch 4.",
        "seed 0 continuous: goes on from epoch 4.",
    ]


@pytest.mark.parametrize("method", ["multitask", "spl", "dp-l", "dp-li"])
def test_other_methods_go_on_to_the_same_bits(method, tmp_path):
    watcher = lengthened(tmp_path, 3, 5, **CONTINUOUS, methods=(method,))
    assert watcher.trained == {"baseline": [4, 5], method: [4, 5]}


def test_without_validation_samples_it_goes_on_to_the_same_bits(tmp_path):
    watcher = lengthened(tmp_path, 3, 5, **CONTINUOUS, val_share=0.0)
    assert watcher.trained == {"baseline": [4, 5], "continuous": [4, 5]}


def test_several_seeds_and_a_further_one(tmp_path):
    compare(tmp_path / "out", epochs=3, seeds=(0, 1), **CONTINUOUS)
    watcher = Listening()
    options = {"epochs": 4, "seeds": (0, 1, 2), **CONTINUOUS}
    found = compare(tmp_path / "out", watcher=watcher, **options)
    assert_same(found, compare(tmp_path / "fresh", **options))
    assert watcher.trained["baseline"] == [4, 4, 1, 2, 3, 4]


def test_one_that_lost_its_patience_is_taken_over(tmp_path):
    options = {**CONTINUOUS, "patience": 2, "learning_rate": 0.05}
    watcher = lengthened(tmp_path, 20, 40, **options)
    assert not watcher.trained
    assert all("taken over, as it ended by itself after" in text for text in watcher.said)
    assert len(watcher.said) >= 2


def test_a_longer_baseline_of_before_is_not_taken_for_the_new_one(tmp_path):
    """Staged took 10 epochs, the baseline 5; then the baseline itself is allowed 12."""
    options = {**CONTINUOUS, "methods": ("staged",), "stage_epochs": 5}
    compare(tmp_path, epochs=5, **options)
    assert (tmp_path / "seed-0" / "baseline-10").is_dir()
    found = compare(tmp_path, epochs=12, **options)
    assert found.of("baseline")[0].epochs == 17
    assert [run.name for run in (tmp_path / "seed-0").glob("baseline-*")] == ["baseline-17"]
    assert Result.load(tmp_path).runs == found.runs


def test_a_learning_rate_that_would_not_have_fallen_yet_goes_on(tmp_path):
    """Half of three epochs and half of five are both two."""
    watcher = lengthened(tmp_path, 3, 5, **CONTINUOUS, milestones=(0.5,), methods=())
    assert watcher.trained == {"baseline": [4, 5]}


def test_staged_goes_on_where_its_coarse_stages_take_as_long(tmp_path):
    watcher = lengthened(tmp_path, 3, 5, **CONTINUOUS, methods=("staged",), stage_epochs=2)
    assert watcher.trained["staged"] == [6, 7]


# --------------------------------------------------------------- what is trained anew


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"methods": ("staged",)}, "its stage 1 took all the 3 epochs it was allowed"),
        ({"milestones": (0.5,)}, "its learning rate falls after shares of all epochs"),
        ({"methods": (f"{__name__}:Mine",)}, "a method of your own may depend on the number"),
    ],
    ids=["staged", "milestones", "own"],
)
def test_what_cannot_go_on_is_trained_anew_and_said(options, reason, tmp_path):
    watcher = lengthened(tmp_path, 3, 7, **{**CONTINUOUS, **options})
    method = options.get("methods", ("continuous",))[0].replace(":", ".")
    assert any(text.startswith(f"seed 0 {method}: trained anew: {reason}") for text in watcher.said)


class Mine(Plain):
    """A method of one's own."""


def test_another_length_of_the_curriculum_is_said(tmp_path):
    """A third of the epochs is the most that the rule gives."""
    options = {**CONTINUOUS, "curriculum_epochs": "best-epoch"}
    with pytest.warns(UserWarning, match="it is cut to a third"):
        watcher = lengthened(tmp_path, 6, 9, **options)
    assert "seed 0 continuous: trained anew: T is 3 instead of 2." in watcher.said
    assert watcher.trained["continuous"] == list(range(1, 10))


def test_another_hierarchy_is_said(tmp_path):
    watcher = lengthened(tmp_path, 1, 12, methods=("multitask",), max_levels=None)
    assert "seed 0 multitask: trained anew: the hierarchy is another." in watcher.said


def test_a_tree_of_another_baseline_is_said(tmp_path):
    watcher = lengthened(tmp_path, 1, 12, methods=("nbdt",))
    assert "seed 0 nbdt: trained anew: the baseline has another final layer." in watcher.said


def test_without_its_last_checkpoint_it_is_trained_anew(tmp_path):
    """As are runs of before such checkpoints were kept."""
    compare(tmp_path / "out", epochs=3, **CONTINUOUS)
    shutil.rmtree(tmp_path / "out" / "seed-0" / "continuous" / "checkpoint" / "000003")
    watcher = Listening()
    found = compare(tmp_path / "out", epochs=5, watcher=watcher, **CONTINUOUS)
    assert_same(found, compare(tmp_path / "fresh", epochs=5, **CONTINUOUS))
    assert watcher.said[-1].endswith("trained anew: there is no checkpoint to go on from.")


# ------------------------------------------------------------------ stopped, refused, kept


@pytest.mark.parametrize("seconds", [0.0, float("inf")], ids=["checkpoints", "none"])
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "on-the-way"])
def test_stopped_it_comes_to_the_same_bits(is_after, seconds, tmp_path):
    options = {**CONTINUOUS, "checkpoint_seconds": seconds}
    stopping = {"epochs": 9, "watcher": Interrupting(7)}
    if is_after:
        compare(tmp_path / "out", epochs=4, **options)
        before = RunResult.load(tmp_path / "out" / "best")
    else:
        stopping = {"epochs": 4, "watcher": Interrupting(3)}
    with pytest.raises(InterruptionError):
        compare(tmp_path / "out", **stopping, **options)
    if is_after:  # what was the best model can still be used
        assert RunResult.load(tmp_path / "out" / "best") == before
    found = compare(tmp_path / "out", epochs=9, **options)
    assert_same(found, compare(tmp_path / "fresh", epochs=9, **options))


def test_fewer_epochs_are_refused(tmp_path):
    compare(tmp_path, epochs=4, **CONTINUOUS)
    with pytest.raises(RunError, match="was begun with epochs = 4, now it is 3"):
        compare(tmp_path, epochs=3, **CONTINUOUS)


def test_seeds_that_are_left_out_are_refused(tmp_path):
    compare(tmp_path, epochs=3, seeds=(0, 1), **CONTINUOUS)
    with pytest.raises(RunError, match="also has the seeds 1, trained for fewer than 4 epochs"):
        compare(tmp_path, epochs=4, **CONTINUOUS)


def test_other_settings_are_refused_with_more_epochs_too(tmp_path):
    compare(tmp_path, epochs=3, **CONTINUOUS)
    with pytest.raises(RunError, match="was begun with learning_rate"):
        compare(tmp_path, epochs=4, learning_rate=0.5, **CONTINUOUS)


def test_a_finished_comparison_is_taken_over_and_said(tmp_path):
    compare(tmp_path, **CONTINUOUS)
    watcher = Listening()
    compare(tmp_path, watcher=watcher, **CONTINUOUS)
    assert watcher.said == [
        "seed 0 baseline: taken over, as it is done.",
        "seed 0 continuous: taken over, as it is done.",
    ]


@pytest.fixture
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_more_epochs_are_found_in_the_same_directory_by_default():
    assert compare(None, epochs=3, methods=()).path == compare(None, epochs=4, methods=()).path
