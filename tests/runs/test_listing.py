"""What is listed of a folder of runs."""

import json
import shutil
from pathlib import Path

import pytest
from made_runs import make_run

from coarse2fine import Config, Hierarchy, Result, RunError
from coarse2fine.runs.comparison import ComparisonWriter
from coarse2fine.runs.guards import is_locked, locked
from coarse2fine.runs.listing import list_runs

TREE = Hierarchy.from_levels([[0, 0, 1, 1]], ["cat", "dog", "car", "bus"])
TARGETS = [0, 1, 2, 3] * 25
OLD = Path(__file__).parents[1] / "old_runs" / "0.1.0"


def right(count):
    """Predictions of which so many of the 100 are right."""
    return [t if place < count else (t + 1) % 4 for place, t in enumerate(TARGETS)]


def made(path, method, seed, accuracy, val, **options):
    return make_run(
        path / f"seed-{seed}" / options.pop("name", method),
        method=method,
        seed=seed,
        hierarchy=None if method == "baseline" else TREE,
        predictions=right(accuracy),
        targets=TARGETS,
        val_accuracy=val,
        data="animals.csv",
        **options,
    )


def begun(path, seeds=(0,), methods=("continuous",), **settings):
    config = Config("animals.csv", model="mlp", methods=methods, seeds=seeds, epochs=4, **settings)
    path.mkdir(parents=True, exist_ok=True)
    ComparisonWriter(path, config, is_writer=True).begin()
    return path


def finished(path, gains=(4, 5, 6), **settings):
    """A comparison in which the curriculum gains so many points, seed by seed."""
    begun(path, seeds=tuple(range(len(gains))), **settings)
    for seed, gain in enumerate(gains):
        made(path, "baseline", seed, 50, 0.5)
        made(path, "continuous", seed, 50 + gain, 0.5 + gain / 100, hierarchy_seconds=3.0)
    writer = ComparisonWriter(path, Config("animals.csv", model="mlp", epochs=4), is_writer=True)
    writer.config = Config("animals.csv", model="mlp", epochs=4, seeds=tuple(range(len(gains))))
    writer.finish(Result.load(path))
    return path


def only(folder):
    (found,) = list_runs(folder)
    return found


def test_a_finished_comparison(tmp_path):
    path = finished(tmp_path / "photos")
    found = only(tmp_path)
    assert (found.path, found.state, found.reason) == (path, "finished", "")
    assert (found.data, found.model) == ("animals.csv", "mlp")
    assert found.methods == ("baseline", "continuous")
    assert found.planned == found.done == (0, 1, 2)
    assert found.result.best.method == "continuous"
    assert found.validation("continuous") == pytest.approx(0.55)
    method, verdict = found.judged
    assert (method, verdict.word) == ("continuous", "helped")
    assert verdict.gain.mean == pytest.approx(5)
    assert found.seconds == 6 * 10 + 3 * 3  # a hierarchy is made once a seed


def test_as_plain_values(tmp_path):
    finished(tmp_path / "photos")
    content = json.loads(json.dumps(only(tmp_path).to_dict()))
    assert content["path"] == str(tmp_path / "photos")
    assert (content["state"], content["reason"]) == ("finished", None)
    assert content["seeds"] == {"planned": [0, 1, 2], "done": [0, 1, 2]}
    assert (content["best"]["method"], content["best"]["seed"]) == ("continuous", 2)
    assert content["summary"]["continuous"]["gain"]["mean"] == pytest.approx(0.05)
    assert content["verdicts"] == {"continuous": "helped"}
    assert content["epochs"] == {"baseline": [4, 4, 4], "continuous": [4, 4, 4]}


def test_seeds_and_methods_that_are_still_to_come(tmp_path):
    path = begun(tmp_path / "photos", seeds=(0, 1, 4), methods=("continuous", "staged"))
    for method in ("baseline", "continuous", "staged"):
        made(path, method, 0, 50, 0.5)
    made(path, "baseline", 1, 50, 0.5)
    made(path, "continuous", 1, 60, 0.6, is_done=False)
    found = only(tmp_path)
    assert (found.state, found.planned, found.done) == ("interrupted", (0, 1, 4), (0,))
    assert found.methods == ("baseline", "continuous", "staged")
    assert len(found.result.runs) == 4


def test_one_that_has_only_been_begun(tmp_path):
    begun(tmp_path / "photos", seeds=(0, 1))
    found = only(tmp_path)
    assert (found.state, found.planned, found.done) == ("interrupted", (0, 1), ())
    assert found.result is None
    assert found.judged is None
    assert found.to_dict()["best"] is None


def test_what_a_process_has_locked_is_being_trained(tmp_path):
    path = begun(tmp_path / "photos")
    with locked(path):
        assert only(tmp_path).state == "training"
        assert only(tmp_path).state == "training"  # looking at it does no harm
    assert only(tmp_path).state == "interrupted"
    assert not is_locked(path)


def test_of_a_sweep_it_is_the_run_that_is_locked(tmp_path):
    path = tmp_path / "sweep" / "animals-mlp"
    made(path, "baseline", 0, 50, 0.5)
    made(path, "continuous", 0, 60, 0.6, is_done=False)
    assert only(tmp_path).state == "interrupted"
    with locked(path / "seed-0" / "continuous"):
        assert only(tmp_path).state == "training"


def test_a_sweep_has_no_settings_of_its_own(tmp_path):
    path = tmp_path / "sweep" / "animals-mlp"
    for seed in (0, 2):
        made(path, "staged", seed, 60, 0.6)
        made(path, "baseline", seed, 50, 0.5)
    found = only(tmp_path)
    assert (found.path, found.state) == (path, "finished")
    assert (found.data, found.model) == ("animals.csv", "cnn")
    assert (found.methods, found.done) == (("baseline", "staged"), (0, 2))


def test_of_a_baseline_that_went_on_the_longer_one_counts(tmp_path):
    path = finished(tmp_path / "photos", gains=(10,))
    made(path, "baseline", 0, 55, 0.5, name="baseline-9", epochs=9, own_epochs=4)
    found = only(tmp_path)
    assert found.done == (0,)
    assert [run.epochs for run in found.result.of("baseline")] == [9]
    assert found.judged[1].gain.mean == pytest.approx(5)


def test_if_the_baseline_is_best_the_gain_is_that_of_the_best_other_method(tmp_path):
    path = begun(tmp_path / "photos", methods=("staged", "continuous"))
    made(path, "baseline", 0, 50, 0.9)
    made(path, "staged", 0, 45, 0.5)
    made(path, "continuous", 0, 48, 0.6)
    found = only(tmp_path)
    assert found.result.best.method == "baseline"
    assert (found.judged[0], found.judged[1].word) == ("continuous", "one seed")


# ---------------------------------------------------------------- damage, and what is no run


@pytest.mark.parametrize("name", ["config.json", "result.json", "seed-1/baseline/result.json"])
@pytest.mark.parametrize("content", ["", "{", "[]"])
def test_damage_is_named_and_ends_nothing(tmp_path, name, content):
    finished(tmp_path / "first")
    (tmp_path / "first" / name).write_text(content)
    finished(tmp_path / "second")
    first, second = list_runs(tmp_path)
    assert second.state == "finished"
    assert first.state == "damaged"
    assert str(tmp_path / "first" / name) in first.reason
    assert len(first.result.runs) == (5 if name.startswith("seed") else 6)
    assert first.done == ((0, 2) if name.startswith("seed") else (0, 1, 2))


def test_weights_and_predictions_are_not_looked_at(tmp_path):
    path = finished(tmp_path / "photos")
    for name in ("checkpoint/model.safetensors", "predictions.safetensors", "metrics.jsonl"):
        (path / "seed-0" / "baseline" / name).unlink()
    assert only(tmp_path).state == "finished"


def test_a_folder_without_runs_is_named_but_not_what_is_in_it_or_hidden(tmp_path):
    finished(tmp_path / "b")
    for name in ("a/deep/deeper", ".hidden", "sweep/notes"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "file.txt").write_text("no folder")
    finished(tmp_path / "sweep" / "c")
    assert [
        (each.path.relative_to(tmp_path).as_posix(), each.state) for each in list_runs(tmp_path)
    ] == [
        ("a", "foreign"),
        ("b", "finished"),
        ("sweep/c", "finished"),
    ]


def test_numbers_in_names_are_ordered_by_their_size(tmp_path):
    for name in ("run-10", "run-9", "a", "run"):
        begun(tmp_path / name)
    assert [found.path.name for found in list_runs(tmp_path)] == ["a", "run", "run-9", "run-10"]


def test_a_comparison_itself_and_a_run_in_none(tmp_path):
    path = finished(tmp_path / "photos")
    assert only(path).path == path
    baseline, continuous = list_runs(path / "seed-1")
    assert (baseline.methods, baseline.done, baseline.state) == (("baseline",), (1,), "finished")
    assert continuous.result.best.accuracy == 0.55
    shutil.copytree(path / "best", tmp_path / "copied")
    copied = list_runs(tmp_path)[0]
    assert (copied.path.name, copied.methods, copied.judged) == ("copied", ("continuous",), None)


def test_runs_of_an_older_version(tmp_path):
    for name in ("finished", "unfinished"):
        shutil.copytree(OLD / name, tmp_path / "old" / name)
    done, unfinished = list_runs(tmp_path / "old")
    assert (done.path.name, done.state, done.planned) == ("finished", "finished", (0, 1))
    assert set(done.result.verdicts) == {"continuous", "staged"}
    assert unfinished.state == "interrupted"
    assert unfinished.reason == "coarse2fine 0.1 began it, so it cannot be resumed"


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(RunError, match="there is no folder .*nowhere; c2f train keeps its runs"):
        list_runs(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "settings", [{"seeds": 5, "methods": 7}, {"seeds": ["a", None], "methods": [3], "data": [1]}]
)
def test_settings_of_any_kind_end_nothing(tmp_path, settings):
    path = begun(tmp_path / "photos")
    content = json.loads((path / "config.json").read_text())
    (path / "config.json").write_text(json.dumps({**content, "config": settings}))
    found = only(tmp_path)
    assert (found.state, found.planned) == ("interrupted", ())
