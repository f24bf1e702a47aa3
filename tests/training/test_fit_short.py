"""A hierarchy from a short training: what it is made from, and what it costs."""

import json
import math

import pytest
from studies import (
    NAMES,
    Interrupting,
    InterruptionError,
    Net,
    SmallNet,
    compare,
    metrics,
    outcome,
    same_tensors,
    weights,
)

from coarse2fine import Hierarchy, Result, RunResult

ALONE = {"baseline": False, "max_levels": None}
SHORT = "hierarchy-2-epochs"


def names(path):
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))


def trained(make, run):
    model = make(6)
    model.load_state_dict(weights(run))
    return model


def test_a_short_training_makes_the_hierarchy_and_methods_begin_anew(tmp_path):
    result = compare(tmp_path, hierarchy_epochs=2, **ALONE)
    assert names(tmp_path / "seed-0") == ["continuous", SHORT]
    short = RunResult.load(tmp_path / "seed-0" / SHORT)
    (run,) = result.runs
    assert run.hierarchy() == Hierarchy.from_classifier(trained(Net, short), class_names=NAMES)
    given = compare(tmp_path / "given", hierarchy=run.hierarchy(), **ALONE)
    assert same_tensors(weights(run), weights(given.runs[0]))  # nothing of the short one is in it


def test_the_short_training_is_the_beginning_of_the_baseline_without_early_stopping(tmp_path):
    options = {"hierarchy_epochs": 6, "epochs": 8, "learning_rate": 0.1, "patience": 1}
    compare(tmp_path, **options)
    baseline, short = (tmp_path / "seed-0" / name for name in ("baseline", "hierarchy-6-epochs"))
    assert (len(metrics(baseline)), len(metrics(short))) == (3, 6)
    assert metrics(short)[:3] == metrics(baseline)
    best, result = max(metrics(short), key=lambda line: line["accuracy"]), RunResult.load(short)
    assert (result.best_epoch, result.val_accuracy) == (best["epoch"], best["accuracy"])
    assert result.best_epoch == 5  # of the six, by validation


def test_a_short_training_and_an_adaptive_curriculum_need_no_baseline(tmp_path):
    options = {"curriculum_epochs": "adaptive", "baseline": False, "max_levels": 2}
    (run,) = compare(tmp_path, hierarchy_epochs=2, epochs=8, **options).runs
    assert names(tmp_path / "seed-0") == ["continuous", SHORT]
    assert (run.all_epochs, run.num_clusters[-1]) == (10, 6)


def test_another_model_can_have_the_short_training(tmp_path):
    result = compare(tmp_path, hierarchy_epochs=2, hierarchy_model="studies:SmallNet", **ALONE)
    short = RunResult.load(tmp_path / "seed-0" / "hierarchy-studies.SmallNet-2-epochs")
    assert short.epochs == 2
    made = Hierarchy.from_classifier(trained(SmallNet, short), class_names=NAMES)
    assert result.runs[0].hierarchy() == made


def test_the_price_of_a_short_training_is_told(tmp_path):
    result = compare(tmp_path, hierarchy_epochs=2, methods=("continuous", "spl"))
    baseline, run, spl = result.runs
    short = RunResult.load(tmp_path / "seed-0" / SHORT)
    assert (run.hierarchy_epochs, run.hierarchy_seconds) == (2, short.seconds)
    assert (run.all_epochs, run.all_seconds) == (7, run.seconds + short.seconds)
    assert baseline.hierarchy_epochs is spl.hierarchy_epochs is None  # neither has a hierarchy
    assert (spl.all_epochs, spl.all_seconds) == (5, spl.seconds)
    last = result.table().splitlines()[-1]
    assert last == "epochs + those for the hierarchy         5       5 + 2      5"
    stored = json.loads((run.path / "result.json").read_text())["result"]
    assert stored["hierarchy_epochs"] == 2
    assert RunResult.load(run.path) == run


def test_results_without_that_price_are_still_read(tmp_path):
    (run,) = compare(tmp_path, hierarchy_epochs=2, **ALONE).runs
    content = run.to_dict()
    del content["hierarchy_epochs"], content["hierarchy_seconds"]
    older = RunResult.from_dict(content, run.path)
    assert (older.hierarchy_epochs, older.all_epochs, older.all_seconds) == (None, 5, run.seconds)


@pytest.mark.parametrize(("name", "value"), [("hierarchy_epochs", "2"), ("hierarchy_seconds", [1])])
def test_a_damaged_price_is_named(name, value, tmp_path):
    (run,) = compare(tmp_path, hierarchy_epochs=2, **ALONE).runs
    with pytest.raises(ValueError, match=f"{name} is "):
        RunResult.from_dict({**run.to_dict(), name: value}, run.path)
    with pytest.raises(ValueError, match="it lacks numbers"):
        RunResult.from_dict({**run.to_dict(), "hierarchy_seconds": math.inf}, run.path)


def test_that_a_short_training_has_not_levelled_off_is_no_remark(tmp_path):
    result = compare(tmp_path, hierarchy_epochs=1, **ALONE)
    assert not RunResult.load(tmp_path / "seed-0" / "hierarchy-1-epochs").levelled_off
    assert not [remark for remark in result.remarks if "hierarchy-1-epochs" in remark]


def test_the_short_training_is_not_compared_with_anything(tmp_path):
    result = compare(tmp_path, hierarchy_epochs=2)
    assert Result.load(tmp_path).methods == result.methods == ("baseline", "continuous")


def test_an_interrupted_short_training_goes_on_to_the_same_numbers(tmp_path):
    class Stopping(Interrupting):
        def begin(self, path, method, seed, epochs):  # noqa: ARG002
            self.at = 2 if method == "hierarchy-3-epochs" else 0

    options = {"hierarchy_epochs": 3, **ALONE}
    undisturbed = compare(tmp_path / "undisturbed", **options)
    with pytest.raises(InterruptionError):
        compare(tmp_path / "out", watcher=Stopping(0), checkpoint_seconds=0.0, **options)
    assert names(tmp_path / "out" / "seed-0") == ["hierarchy-3-epochs"]
    (run,) = compare(tmp_path / "out", **options).runs
    assert outcome(run) == outcome(undisturbed.runs[0])
    assert same_tensors(weights(run), weights(undisturbed.runs[0]))


def test_a_longer_comparison_keeps_the_short_training(tmp_path):
    before = compare(tmp_path, hierarchy_epochs=2, **ALONE).runs[0].hierarchy()
    written = (tmp_path / "seed-0" / SHORT / "result.json").stat().st_mtime_ns
    (run,) = compare(tmp_path, hierarchy_epochs=2, epochs=7, **ALONE).runs
    assert (run.hierarchy(), run.epochs) == (before, 7)
    assert (tmp_path / "seed-0" / SHORT / "result.json").stat().st_mtime_ns == written
