"""One training, as a worker carries it out."""

import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import animals
import filelock
import pytest
from made_runs import make_run

from coarse2fine import Hierarchy, RunError, fit
from coarse2fine.experiments import tasks as experiments_tasks
from coarse2fine.experiments.declaration import Setting, Variant
from coarse2fine.experiments.results import collect
from coarse2fine.experiments.tasks import carry_out, expand, longer_baselines
from coarse2fine.runs.directory import parse_json

TREE = Hierarchy.from_levels([[0, 0, 1, 1, 1, 0]], animals.KINDS)
PLAIN = {name: value for name, value in animals.SETTINGS.items() if name != "data"}


def tasks(folder, *variants, store="runs", **changes):
    row = replace(animals.SETTING, variants=variants, settings={**animals.SETTINGS, **changes})
    return expand((row,), (0,), folder / store)


def accuracies(runs):
    return {run.method: run.accuracy for run in runs}


def test_a_task_survives_the_way_to_another_process(here):
    for task in tasks(here, Variant("spl")):
        again = pickle.loads(pickle.dumps(task))
        assert again == task
        assert hash(again) == hash(task)
        assert again.path == task.path


def test_progress_is_read_from_the_run(here):
    baseline, _ = tasks(here, Variant("spl"))
    assert (baseline.is_done, baseline.epochs_done) == (False, 0)
    carry_out(baseline)
    assert (baseline.is_done, baseline.epochs_done) == (True, 3)


def test_a_baseline_goes_on_for_as_many_epochs_as_the_longest_variant(here):
    baseline, spl, staged = tasks(here, Variant("spl"), Variant("staged"))
    settings, store = (baseline.setting,), here / "runs"
    first, _ = carry_out(baseline), carry_out(spl)
    assert longer_baselines(settings, (0, 1), store) == []  # as none took more epochs
    epochs = carry_out(staged).epochs
    assert epochs > first.epochs
    (longer,) = longer_baselines(settings, (0, 1), store)
    assert (str(longer), longer.epochs) == ("animals.csv-mlp, seed 0, longer baseline", epochs)
    assert longer.baseline == baseline
    assert collect(*settings, (0,), store).of("baseline") == (first,)
    result = carry_out(longer)
    assert (result.epochs, result.own_epochs, longer.epochs_done) == (epochs, first.epochs, epochs)
    assert longer_baselines(settings, (0, 1), store) == []
    assert collect(*settings, (0,), store).of("baseline") == (result,)
    assert baseline.result == first


@pytest.mark.parametrize(
    ("curve", "rule", "cut"),
    [
        # By its rule T is 3, as long as it was; in the second curve 4.
        ([0.1, 0.2, 0.9, 0.9, 0.9, 0.9], "reach-90", 0),
        ([0.1, 0.2, 0.3, 0.9, 0.9, 0.9], "reach-90", 1),
        ([0.1, 0.2, 0.3, 0.9, 0.9, 0.9], "best-epoch", 1),
        ([0.1, 0.2, 0.3, 0.9, 0.9, 0.9], 3, 0),
    ],
)
def test_a_t_is_cut_where_its_rule_would_have_it_longer(here, curve, rule, cut):
    baseline, _ = found = tasks(here, Variant("continuous"), curriculum_epochs=rule, epochs=9)
    for task in found:
        made = {"predictions": [0, 1], "targets": [0, 1], "curve": curve, "epochs": 6}
        result = make_run(task.path, method=task.name, **made)
    assert result.curriculum_epochs == 3
    row = collect(baseline.setting, (0,), here / "runs")
    assert (row.cut, len(row.runs)) == (cut, 2)


def test_a_variant_has_the_hierarchy_that_it_is_given(here):
    TREE.save(here / "tree.json")
    given = Variant("given", "continuous", {"hierarchy": "tree.json"})
    results = [carry_out(task) for task in tasks(here, Variant("continuous"), given)]
    assert results[2].hierarchy() == TREE
    assert results[1].hierarchy() != TREE
    alone = fit(animals.DATA, **PLAIN, hierarchy="tree.json", out="fit")
    assert results[2].accuracy == alone.of("continuous")[0].accuracy


def test_a_smaller_model_for_the_hierarchy_is_trained_by_its_own_recipe(here):
    changes = {"model": "animals:net", "hierarchy_model": "mlp", "batch_size": None}
    results = [carry_out(task) for task in tasks(here, Variant("continuous"), **changes)]
    config = parse_json(results[0].path.parent / "hierarchy-mlp" / "config.json")["config"]
    assert (config["model"], config["batch_size"]) == ("mlp", 64)
    alone = fit(animals.DATA, **{**PLAIN, **changes}, out="fit")
    assert accuracies(results) == accuracies(alone.runs)


def test_variants_of_other_short_trainings_share_the_baseline_and_nothing_else(here):
    variants = [
        Variant(f"short-{epochs}", "continuous", {"hierarchy_epochs": epochs}) for epochs in (1, 2)
    ]
    baseline, *results = [carry_out(task) for task in tasks(here, *variants)]
    folder = baseline.path.parent
    assert {path.parent.name for path in folder.glob("*/result.json")} == {
        *("baseline", "short-1", "short-2", "hierarchy-1-epochs", "hierarchy-2-epochs"),
    }
    for epochs, result in zip((1, 2), results, strict=True):
        assert result.hierarchy_epochs == epochs
        alone = fit(animals.DATA, **PLAIN, hierarchy_epochs=epochs, out=f"fit-{epochs}")
        assert alone.of("continuous")[0].accuracy == result.accuracy


def test_a_variant_has_the_hierarchy_that_an_encoder_gives(here):
    (here / "own_vectors.py").write_text(
        "import numpy as np\n"
        "def squares(batch):\n    return batch**2\n"
        "def letters(names):\n"
        "    return np.array([[ord(x) % 7 + 1 for x in name[:3]] for name in names])\n"
    )
    words = {"features": "own_vectors:squares", "names": "own_vectors:letters"}
    variants = [
        Variant(word, "continuous", {"hierarchy": word, "encoder": place})
        for word, place in words.items()
    ]
    _, *results = [carry_out(task) for task in tasks(here, *variants)]
    for result in results:
        word = result.method
        alone = fit(animals.DATA, **PLAIN, hierarchy=word, encoder=words[word], out=f"fit-{word}")
        assert alone.of("continuous")[0].hierarchy() == result.hierarchy()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({}, []),
        ({"hierarchy_model": "mlp"}, ["continuous", "staged"]),
        ({"hierarchy_epochs": 2}, ["continuous", "staged"]),
        ({"curriculum_epochs": "search"}, []),  # each searches in a folder of its own
    ],
)
def test_trainings_that_variants_share_are_known(here, settings, names):
    variants = (Variant("continuous"), Variant("staged"), Variant("spl"))
    found = tasks(here, *variants, **settings)
    assert [task.name for task in found if task.shares_trainings] == names


def test_a_worker_waits_for_another_at_the_same_training_and_takes_its_result(here):
    done = [carry_out(task) for task in tasks(here, Variant("spl"), store="other")]
    baseline, spl = tasks(here, Variant("spl"))
    shutil.copytree(done[0].path, baseline.path)
    with ThreadPoolExecutor(1) as executor:
        with filelock.FileLock(spl.path.parent / ".spl.lock"):
            waiting = executor.submit(carry_out, spl)
            shutil.copytree(done[1].path, spl.path)
        found = waiting.result()
    assert found == replace(done[1], path=spl.path)  # also in the seconds that it took


@pytest.mark.parametrize(
    ("settings", "is_shared"), [({}, False), ({"hierarchy_model": "mlp"}, True)]
)
def test_while_a_worker_is_at_a_training_no_other_can_be(here, monkeypatch, settings, is_shared):
    task = tasks(here, Variant("continuous"), **settings)[1]
    found = []

    def is_kept(name):
        try:
            with filelock.FileLock(task.path.parent / name, timeout=0):
                return False
        except filelock.Timeout:
            return True

    def look(*_, **__):
        found.extend([is_kept(".continuous.lock"), is_kept(".baseline.lock"), is_kept(".lock")])
        raise InterruptedError

    monkeypatch.setattr(experiments_tasks, "SeedRuns", look)
    with pytest.raises(InterruptedError):
        carry_out(task)
    assert found == [True, False, is_shared]
    assert not is_kept(".continuous.lock")


def test_a_run_that_was_made_with_other_settings_is_refused(here):
    """Even where it is done, so that a table never shows what it does not say."""
    task = tasks(here, Variant("own", "continuous", {"linkage": "average"}))[1]
    for each in (task.baseline, task):
        carry_out(each)
        each.check()
    other = tasks(here, Variant("own", "continuous", {"linkage": "complete"}))[1]
    assert other.path == task.path
    with pytest.raises(RunError, match='own was begun with linkage = "average", now it is "comp'):
        other.check()


def test_settings_that_would_share_a_directory_by_different_settings_are_refused(here):
    rows = [
        Setting(metric, {**animals.SETTINGS, "metric": metric}, (Variant("continuous"),))
        for metric in ("embedding", "random")
    ]
    assert rows[0].folder == rows[1].folder
    with pytest.raises(
        ValueError, match="'embedding' and 'random' would train 'continuous' in one"
    ):
        expand(tuple(rows), (0,), here)
