"""The whole method in one call."""

import json

import numpy as np
import pytest
from hierarchies import METRICS
from studies import (
    NAMES,
    Interrupting,
    InterruptionError,
    Net,
    SmallNet,
    compare,
    hierarchy,
    metrics,
    outcome,
    same_tensors,
    table,
    weights,
)

from coarse2fine import (
    Hierarchy,
    RunError,
    RunResult,
)
from coarse2fine.runs.guards import locked

DISTANCES = np.abs(np.subtract.outer([0, 1, 5, 6, 20, 21], [0, 1, 5, 6, 20, 21])).astype(float)


def names(path):
    return sorted(entry.name for entry in path.iterdir() if not entry.name.startswith("."))


def trained_net(run):
    model = Net(6)
    model.load_state_dict(weights(run))
    return model


# ------------------------------------------------------------------------- the comparison


def test_baseline_and_methods_are_trained_and_compared(tmp_path):
    result = compare(tmp_path / "out", methods=("continuous", "staged"), seeds=(0, 3))
    assert result.methods == ("baseline", "continuous", "staged")
    assert [(run.method, run.seed) for run in result.runs] == [
        (method, seed) for seed in (0, 3) for method in result.methods
    ]
    assert names(tmp_path / "out") == ["best", "config.json", "result.json", "seed-0", "seed-3"]
    runs = ["baseline", "baseline-10", "continuous", "staged"]  # staged took 10 epochs
    assert names(tmp_path / "out" / "seed-3") == runs
    for run in result.runs:
        folder = "baseline-10" if run.method == "baseline" else run.method
        assert RunResult.load(result.path / f"seed-{run.seed}" / folder) == run
    stored = json.loads((tmp_path / "out" / "result.json").read_text())
    assert stored["summary"]["staged"]["gain"]["mean"] == pytest.approx(
        np.mean(result.gains("staged"))
    )
    assert stored["config"]["learning_rate"] == 0.02
    assert stored["config"]["optimiser"] == "adam"


def test_methods_see_the_samples_of_the_baseline_and_take_as_many_epochs(tmp_path):
    result = compare(tmp_path, methods=("continuous", "staged"), stage_epochs=2)
    stored = [json.loads((run.path / "config.json").read_text()) for run in result.runs]
    assert len({content["data"]["fingerprint"] for content in stored}) == 1
    assert [run.epochs for run in result.runs] == [7, 5, 7]
    assert stored[0]["data"]["samples"] == [160, 40, 60]


def test_seeds_can_be_added_and_what_is_done_is_kept(tmp_path):
    first = compare(tmp_path, seeds=1)
    both = compare(tmp_path, seeds=(1, 2))
    assert both.runs[:2] == first.runs
    assert [run.seed for run in both.runs] == [1, 1, 2, 2]
    assert not same_tensors(weights(both.runs[0]), weights(both.runs[2]))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return compare(tmp_path_factory.mktemp("undisturbed"), seeds=(0, 1))


@pytest.mark.parametrize(("seed", "name"), [(0, "baseline"), (0, "continuous"), (1, "baseline")])
def test_the_same_call_goes_on_where_an_interrupted_one_was(seed, name, undisturbed, tmp_path):
    class Stopping(Interrupting):
        def begin(self, path, method, seed, epochs):  # noqa: ARG002
            self.at = 3 if (seed, method) == self.where else 0

    watcher = Stopping(0)
    watcher.where = (seed, name)
    with pytest.raises(InterruptionError):
        compare(tmp_path, seeds=(0, 1), watcher=watcher, checkpoint_seconds=0.0)
    assert not (tmp_path / "result.json").exists()
    for a, b in zip(compare(tmp_path, seeds=(0, 1)).runs, undisturbed.runs, strict=True):
        assert outcome(a) == outcome(b)
        assert metrics(a.path) == metrics(b.path)
        assert same_tensors(weights(a), weights(b))


def test_a_directory_in_use_is_refused(tmp_path):
    with locked(tmp_path), pytest.raises(RunError, match="in use by another process"):
        compare(tmp_path)


def test_validation_samples_can_be_given(tmp_path):
    given = table(30, seed=2)
    result = compare(tmp_path, val=(given.inputs, given.targets), methods=())
    assert result.runs[0].predictions("val")[1].tolist() == given.targets.tolist()
    assert len(result.runs) == 1


def test_without_test_samples_a_share_is_held_out(tmp_path):
    result = compare(tmp_path, test=None, test_share=0.25, methods=())
    assert len(result.runs[0].predictions("test")[0]) == 50


# ----------------------------------------------------------------------- the hierarchy


@pytest.mark.parametrize("method", ["continuous", "staged"])
@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_makes_the_hierarchy_of_every_method(metric, method, tmp_path):
    baseline, run = compare(tmp_path, metric=metric, methods=method, max_levels=None, epochs=4).runs
    options = {"linkage": "single", "class_names": NAMES}
    if metric.startswith("confusion"):
        wanted = Hierarchy.from_confusion(
            baseline.predictions("val"), metric, num_classes=6, **options
        )
    else:
        wanted = Hierarchy.from_classifier(trained_net(baseline), metric, seed=0, **options)
    assert run.hierarchy() == wanted


def test_linkage_and_the_most_levels_are_those_asked_for(tmp_path):
    baseline, run = compare(tmp_path, linkage="complete", max_levels=2).runs
    made = Hierarchy.from_classifier(trained_net(baseline), linkage="complete", class_names=NAMES)
    assert run.hierarchy() == made.max_levels(2)


def test_lopsided_levels_are_left_out_where_asked_for(tmp_path):
    given = Hierarchy.from_levels([[0] * 5 + [1], [0, 0, 0, 0, 1, 2], [0, 0, 1, 1, 2, 3]], NAMES)
    options = {"hierarchy": given, "baseline": False, "max_levels": None}
    with pytest.raises(ValueError, match="with 4 levels the classes are trained from epoch 4 on"):
        compare(tmp_path / "whole", epochs=3, curriculum_epochs=1, **options)
    (run,) = compare(tmp_path, max_cluster_share=0.5, epochs=3, curriculum_epochs=1, **options).runs
    assert run.hierarchy() == given.keep_levels([2])


def test_a_random_hierarchy_depends_on_the_seed(tmp_path):
    runs = compare(tmp_path, metric="random", seeds=(0, 1), max_levels=None).runs
    assert runs[1].hierarchy() != runs[3].hierarchy()


def test_with_a_hierarchy_no_baseline_is_needed(tmp_path):
    result = compare(
        tmp_path,
        hierarchy=hierarchy(),
        baseline=False,
        methods=("continuous", "staged"),
        max_levels=None,
    )
    assert result.methods == ("continuous", "staged")
    assert {run.hierarchy() for run in result.runs} == {hierarchy()}
    assert names(tmp_path / "seed-0") == ["continuous", "staged"]
    assert "gain" not in str(result)


def test_a_matrix_of_distances_can_be_given(tmp_path):
    *_, run = compare(tmp_path, hierarchy=DISTANCES, baseline=False, max_levels=None).runs
    assert run.hierarchy() == Hierarchy.from_distances(DISTANCES, class_names=NAMES)
    assert run.hierarchy().clusters(0) == ((0, 1), (2, 3), (4, 5))


def test_a_hierarchy_can_be_a_file(tmp_path):
    hierarchy().save(tmp_path / "own.json")
    path = tmp_path / "own.json"
    *_, run = compare(tmp_path / "out", hierarchy=path, baseline=False, max_levels=None).runs
    assert run.hierarchy() == hierarchy()


def test_a_hierarchy_of_the_same_classes_in_another_order_is_matched_by_name(tmp_path):
    groups = [["vehicle", "animal"]]
    shuffled = ["van", "cat", "bus", "dog", "car", "fox"]
    given = Hierarchy.from_levels([[0, 1, 0, 1, 0, 1]], shuffled, groups)
    (run,) = compare(tmp_path, hierarchy=given, baseline=False).runs
    found = run.hierarchy()
    assert found.class_names == NAMES
    assert found.levels[0].tolist() == [1, 1, 1, 0, 0, 0]
    assert found.cluster_names == (("vehicle", "animal"),)


def test_a_hierarchy_without_names_takes_those_of_the_data(tmp_path):
    given = Hierarchy.from_levels([[0, 0, 1, 1, 1, 1]])
    (run,) = compare(tmp_path, hierarchy=given, baseline=False).runs
    assert run.hierarchy().class_names == NAMES
    assert run.hierarchy().levels[0].tolist() == [0, 0, 1, 1, 1, 1]


def test_a_hierarchy_without_coarse_levels_is_matched_too():
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([[0, 1, 2]], ["cat", "dog", "fox"])
    with pytest.warns(UserWarning, match="no level above the classes"):
        found = flat.for_classes(["fox", "cat", "dog"])
    assert (found.class_names, found.num_clusters) == (("fox", "cat", "dog"), (3,))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Hierarchy.from_levels([[0, 0, 1, 1]]), "the hierarchy has 4 classes, the data 6"),
        (
            Hierarchy.from_levels([[0, 0, 0, 1, 1, 1]], ["cat", "dog", "fox", "car", "bus", "cab"]),
            "the hierarchy has no class 'van', which the data has",
        ),
        (DISTANCES[:4, :4], "4|6"),
        (np.zeros((3, 2)), "square"),
    ],
    ids=["classes", "names", "matrix", "rectangle"],
)
def test_a_hierarchy_of_other_classes_is_refused(given, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        compare(tmp_path, hierarchy=given, baseline=False)


@pytest.mark.parametrize("baseline", [True, False])
def test_a_smaller_model_can_make_the_hierarchy(baseline, tmp_path):
    result = compare(
        tmp_path, hierarchy_model="studies:SmallNet", baseline=baseline, max_levels=None
    )
    assert result.methods == (("baseline",) if baseline else ()) + ("continuous",)
    small = RunResult.load(tmp_path / "seed-0" / "hierarchy-studies.SmallNet")
    model = SmallNet(6)
    model.load_state_dict(weights(small))
    assert result.of("continuous")[0].hierarchy() == Hierarchy.from_classifier(
        model, class_names=NAMES
    )


def test_the_name_of_the_final_layer_is_that_of_the_model_and_not_of_the_smaller(tmp_path):
    result = compare(tmp_path, hierarchy_model="studies:SmallNet", head="head", methods="staged")
    assert result.methods == ("baseline", "staged")
