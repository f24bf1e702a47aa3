"""Comparison methods in one call of `fit`, and what a training does not depend on."""

import json
import shutil
from typing import ClassVar

import pytest
from studies import (
    Interrupting,
    InterruptionError,
    compare,
    fresh,
    hierarchy,
    metrics,
    same_tensors,
    train,
    weights,
)

from coarse2fine import RunError, RunResult
from coarse2fine.checkpoints import load_tensors
from coarse2fine.methods import METHODS
from coarse2fine.methods.base import Plan
from coarse2fine.methods.nbdt import NBDT
from coarse2fine.methods.plain import Plain
from coarse2fine.runs.config import irrelevant_settings
from coarse2fine.training.progress import Watcher


class Noting(Watcher):
    """Notes which trainings there are."""

    def __init__(self):
        self.begun = []

    def begin(self, path, method, seed, epochs):  # noqa: ARG002
        self.begun.append(method if method != "baseline" else path.name)


# ---------------------------------------------------------------------- what methods need


def test_all_methods_can_be_compared_in_one_call(tmp_path):
    result = compare(tmp_path, methods=tuple(METHODS), epochs=3)
    assert result.methods == ("baseline", *METHODS)
    assert {run.method: bool(run.num_clusters) for run in result.runs} == {
        "baseline": False,
        "continuous": True,
        "staged": True,
        "spl": False,
        "dp-l": False,
        "dp-li": False,
        "multitask": True,
        "nbdt": False,
        "hxe": True,
        "soft-labels": True,
        "hace": True,
    }
    lengths = {run.method for run in result.runs if run.curriculum_epochs is not None}
    assert lengths == {"continuous"}


def test_the_decision_tree_is_made_from_the_baselines_final_layer(tmp_path):
    baseline, run = compare(tmp_path, methods=("nbdt",)).runs
    assert run.by_rule.keys() == {"soft", "hard"}
    assert run.accuracy == run.by_rule["soft"]
    assert baseline.by_rule == {}
    vectors = weights(baseline)["head.weight"].numpy()
    wanted = NBDT(Plan(6, 5, 0, class_vectors=vectors)).state_dict()
    assert same_tensors(load_tensors(run.path / "checkpoint" / "method.safetensors"), wanted)
    assert RunResult.load(run.path) == run
    stored = json.loads((tmp_path / "result.json").read_text())
    assert stored["runs"][1]["by_rule"] == run.by_rule


def test_a_method_that_needs_nothing_is_trained_without_baseline_and_hierarchy(tmp_path):
    watcher = Noting()
    options = {"baseline": False, "curriculum_epochs": "reach-90", "watcher": watcher}
    (run,) = compare(tmp_path, methods=("spl",), **options).runs
    assert (run.method, run.num_clusters, run.curriculum_epochs) == ("spl", (), None)
    assert watcher.begun == ["spl"]
    assert not (run.path / "hierarchy.json").exists()


def test_only_what_is_needed_is_trained(tmp_path):
    """A smaller model for the hierarchy is of no use to methods without one."""
    watcher = Noting()
    options = {"hierarchy_model": "studies:SmallNet", "watcher": watcher}
    compare(tmp_path, methods=("spl", "dp-l"), **options)
    assert watcher.begun == ["baseline", "spl", "dp-l"]


class Own(Plain):
    """Takes a setting, and has a loss that teaches nothing."""

    made: ClassVar[list] = []

    def __init__(self, plan, *, scale=1.0):
        super().__init__(plan)
        self.made.append(scale)

    def forward(self, logits, batch):
        return 0 * super().forward(logits, batch)


def test_a_method_of_ones_own_is_compared_under_its_name(tmp_path):
    Own.made.clear()
    options = {"method_settings": {"test_fit_methods:Own.scale": 7.0}, "optimiser": "sgd"}
    result = compare(tmp_path, methods=("test_fit_methods:Own",), **options)
    assert result.methods == ("baseline", "test_fit_methods.Own")
    own = result.of("test_fit_methods.Own")[0]
    assert own.path == tmp_path / "seed-0" / "test_fit_methods.Own"
    assert {line["loss"] for line in metrics(own.path)} == {0.0}
    assert same_tensors(weights(own), fresh().state_dict())
    assert set(Own.made) == {7.0}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": "curious"}, "method must be one of .*Got 'curious'"),
        ({"method_settings": {"spl.speed": 2}}, "spl has no setting 'speed'"),
        ({"method_settings": {"spl.growth": 2}}, "spl.growth is of a method that is not trained"),
        ({"methods": "nbdt", "baseline": False}, "needs a baseline, whose final layer"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_made(changes, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        compare(tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_settings_of_a_method_have_a_say_in_the_directory(tmp_path):
    compare(tmp_path, methods=("spl",), method_settings={"spl.growth": 1.5})
    with pytest.raises(RunError, match="was begun with method_settings = .*1.5.*now it is .*1.6"):
        compare(tmp_path, methods=("spl",), method_settings={"spl.growth": 1.6})


# ---------------------------------------------------------------------------- track_test


@pytest.mark.parametrize("method", ["plain", "staged", "nbdt"])
def test_the_test_accuracy_of_every_epoch_is_noted_and_has_no_effect(method, tmp_path):
    tracked = train(tmp_path / "tracked", method, epochs=3, track_test=True)
    silent = train(tmp_path / "silent", method, epochs=3)
    lines, others = metrics(tracked.path), metrics(silent.path)
    assert same_tensors(weights(tracked), weights(silent))
    noted = ("test_accuracy", "test_level_accuracy")
    assert [{k: v for k, v in line.items() if k not in noted} for line in lines] == others
    last = [line["test_accuracy"] for line in lines if line["accuracy"] is not None]
    assert last[tracked.best_epoch - 1] == pytest.approx(tracked.accuracy)
    coarse = [line["test_accuracy"] for line in lines if line["accuracy"] is None]
    assert coarse == [None] * (6 if method == "staged" else 0)
    assert all(line.keys().isdisjoint(noted) for line in others)


def test_a_coarse_stage_is_tested_on_the_clusters_of_its_level(tmp_path):
    run = train(tmp_path, "staged", epochs=3, track_test=True)
    lines = metrics(run.path)
    assert len(lines) == 9
    for line in lines:
        is_coarse = line["level"] < 2
        assert (line["test_accuracy"] is None) == is_coarse
        assert 0 <= line["test_level_accuracy"] <= 1
        if not is_coarse:
            assert line["test_level_accuracy"] == line["test_accuracy"]
    assert lines[2]["test_level_accuracy"] > run.accuracy


# ---------------------------------------------------------- what a baseline depends on


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A comparison whose baseline others may take."""
    return compare(tmp_path_factory.mktemp("trained"))


def with_baseline_of(trained, path):
    shutil.copytree(trained.path / "seed-0" / "baseline", path / "seed-0" / "baseline")
    return path


@pytest.mark.parametrize(
    "changes",
    [
        {"methods": ("staged", "spl")},
        {"metric": "confusion"},
        {"curriculum_epochs": 3},
        {"max_levels": None, "linkage": "complete", "stage_epochs": 1},
        {"hierarchy": hierarchy(), "max_levels": None},
        {"methods": ("nbdt",), "method_settings": {"nbdt.weight": 2.0}},
        {"hierarchy_model": "studies:SmallNet"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_baseline_serves_other_methods_and_hierarchies(changes, trained, tmp_path):
    watcher = Noting()
    result = compare(with_baseline_of(trained, tmp_path), watcher=watcher, **changes)
    assert "baseline" not in watcher.begun
    assert result.runs[0].accuracy == trained.runs[0].accuracy
    assert set(result.methods[1:]) <= set(watcher.begun)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"epochs": 4}, "was begun with epochs = 5, now it is 4"),
        ({"learning_rate": 0.01}, "was begun with learning_rate = 0.02, now it is 0.01"),
        ({"track_test": True}, "was begun with track_test = null, now it is true"),
    ],
    ids=["epochs", "rate", "tracked"],
)
def test_a_baseline_of_other_trainings_is_refused(changes, message, trained, tmp_path):
    with pytest.raises(RunError, match=f"baseline {message}"):
        compare(with_baseline_of(trained, tmp_path), **changes)


def test_a_half_trained_baseline_is_gone_on_with(tmp_path):
    options = {"checkpoint_seconds": 0.0}
    with pytest.raises(InterruptionError):
        compare(tmp_path / "a", watcher=Interrupting(3), **options)
    shutil.copytree(tmp_path / "a" / "seed-0", tmp_path / "b" / "seed-0")
    begun = compare(tmp_path / "b", methods=("multitask",), metric="random", **options)
    whole = compare(tmp_path / "c", methods=("multitask",), metric="random", **options)
    for a, b in zip(begun.runs, whole.runs, strict=True):
        assert same_tensors(weights(a), weights(b))


def test_a_method_depends_on_what_makes_its_hierarchy():
    assert {"metric", "curriculum_epochs", "method_settings"} <= set(irrelevant_settings("plain"))
    for method in METHODS:
        assert set(irrelevant_settings(method)) == {"methods", "baseline"}
