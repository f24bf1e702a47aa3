"""Which runs a report is about, what they are called and compared with."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from made_runs import older

from coarse2fine import Hierarchy, Result, RunError, RunResult
from coarse2fine.report.runs import gather


def labels(*sources):
    return [entry.label for entry in gather(sources).entries]


def compared(*sources):
    """The folders of each run and of its baseline."""
    return [
        (Path(run.folder), Path(run.baseline.folder) if run.baseline else None)
        for entry in gather(sources).entries
        for run in entry.runs
        if entry.method != "baseline"
    ]


# ----------------------------------------------------------------------- where the runs are


def test_a_comparison_has_an_entry_a_method_with_a_run_a_seed(made, tmp_path):
    for seed in (10, 2):
        for method in ("staged", "baseline", "continuous"):
            made(method, seed, methods=("staged", "continuous"))
    entries, remarks = gather([tmp_path / "run"])
    assert remarks == ()
    assert [entry.label for entry in entries] == ["baseline", "staged", "continuous"]
    assert [entry.method for entry in entries] == ["baseline", "staged", "continuous"]
    for entry in entries:
        assert [run.seed for run in entry.runs] == [2, 10]
    assert entries[0].runs[0].folder == str(tmp_path / "run" / "seed-2" / "baseline")


def test_the_same_runs_may_be_given_in_any_form_and_count_once(made, tmp_path, monkeypatch):
    paths = [made("baseline"), made("continuous")]
    results = [RunResult.load(path) for path in paths]
    result = Result(tuple(results), (), tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    forms = (["run"], ["run/seed-0"], [tmp_path / "run", *paths], results, [result, *results])
    for form in forms:
        entries = gather(form).entries
        assert [(entry.label, len(entry.runs)) for entry in entries] == [
            ("baseline", 1),
            ("continuous", 1),
        ]
    assert gather(["run"]).entries[0].runs[0].folder == "run/seed-0/baseline"
    for folder in ("run", "run/seed-0"):
        monkeypatch.chdir(tmp_path / folder)
        assert labels(".") == ["baseline", "continuous"]


def test_models_for_the_hierarchy_and_searches_for_t_are_no_methods(made, tmp_path):
    made("baseline"), made("continuous")
    made("hierarchy-cnn")
    for folder in ("search", "search-continuous"):
        shutil.copytree(made("baseline"), tmp_path / "run" / "seed-0" / folder / "baseline")
    assert labels(tmp_path / "run") == ["baseline", "continuous"]


def test_what_is_not_finished_is_left_out_of_a_comparison_with_a_remark(made, tmp_path):
    made("baseline")
    path = made("continuous", is_done=False)
    entries, remarks = gather([tmp_path / "run"])
    assert [entry.label for entry in entries] == ["baseline"]
    assert remarks == (f"{path} is not finished, so it is left out.",)


def test_a_comparison_of_which_nothing_is_finished_is_an_error(made, tmp_path):
    path = made("baseline", is_done=False)
    with pytest.raises(RunError, match=f"{path} is not finished, nor is any other run"):
        gather([tmp_path / "run"])


def test_a_run_that_is_given_by_itself_must_be_done(made):
    path = made("continuous", is_done=False)
    with pytest.raises(RunError, match=f"{path} has no result.json: it is not a run, or not done"):
        gather([path])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "there is no run .*nothing; give the folder of a run or of a comparison"),
        ("run/seed-0/baseline/config.json", "there is no run .*config.json; give the folder"),
        ("empty", "empty holds no run: there is neither a config.json of a run nor a seed-0"),
    ],
)
def test_a_source_without_runs_is_named(made, tmp_path, name, message):
    made("baseline")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match=message):
        gather([tmp_path / name])


def test_no_sources_make_no_report():
    with pytest.raises(RunError, match="there is no run to make a report of"):
        gather([])


# ------------------------------------------------------------------------- what it is called


def test_a_method_of_several_comparisons_has_the_folder_in_front(made, tmp_path):
    for folder in ("one", "two"):
        made("baseline", folder=folder)
        made("continuous", folder=folder)
    made("staged", folder="two")
    assert labels(tmp_path / "two", tmp_path / "one") == [
        "two: baseline",
        "one: baseline",
        "two: continuous",
        "staged",
        "one: continuous",
    ]


def test_folders_of_the_same_name_are_told_apart_by_those_above(made, tmp_path):
    made("continuous", folder="one/run"), made("continuous", folder="two/run")
    assert labels(tmp_path / "one" / "run", tmp_path / "two" / "run") == [
        "one/run: continuous",
        "two/run: continuous",
    ]


def test_a_copied_run_is_called_by_its_folder(made, tmp_path):
    baseline, first = made("baseline"), made("continuous")
    old = first.with_name("continuous-old")
    shutil.copytree(first, old)
    shutil.copytree(baseline, baseline.with_name("older"))
    assert labels(tmp_path / "run") == ["baseline", "older", "continuous", "continuous-old"]
    assert compared(tmp_path / "run") == [(first, baseline), (old, baseline)]


def test_runs_outside_of_a_comparison_are_compared_within_their_folder(made, tmp_path):
    for seed in (0, 1):
        for method in ("baseline", "continuous"):
            shutil.move(made(method, seed), tmp_path / f"{method} {seed}")
    paths = [tmp_path / f"{m} {seed}" for seed in (0, 1) for m in ("continuous", "baseline")]
    assert labels(*paths) == ["baseline", "continuous"]
    assert compared(*paths) == [(paths[0], paths[1]), (paths[2], paths[3])]


# ----------------------------------------------------------------------- what it is compared with


def test_a_run_is_compared_with_the_baseline_of_its_seed_and_comparison(made, tmp_path):
    pairs = []
    for folder in ("one", "two"):
        for seed in (0, 1):
            baseline = made("baseline", seed, folder)
            pairs.append((made("continuous", seed, folder), baseline))
    assert compared(tmp_path / "one", tmp_path / "two") == pairs


def test_without_one_it_is_compared_with_the_only_other_baseline_of_its_seed(made, tmp_path):
    zero, one = made("baseline", 0, "one"), made("baseline", 1, "one")
    first, second, third = (made("continuous", seed, "two") for seed in (0, 1, 2))
    sources = [tmp_path / "one", tmp_path / "two"]
    assert compared(*sources) == [(first, zero), (second, one), (third, None)]
    made("baseline", 0, "three")
    found = dict(compared(*sources, tmp_path / "three"))
    assert found == {first: None, second: one, third: None}  # of two it is neither


def test_different_classes_are_an_error_that_names_both(made, tmp_path):
    first = made("baseline")
    second = made("baseline", folder="other", class_names=("a", "b", "c", "e"))
    with pytest.raises(RunError, match=f"{first} and {second} have different classes; make a rep"):
        gather([tmp_path / "run", tmp_path / "other"])


def test_different_test_samples_are_an_error_that_names_both(made, tmp_path):
    first = made("baseline")
    second = made("continuous", predictions=[0, 1, 2], targets=[0, 1, 2])
    message = f"{first} and {second} were tested on different samples, so they cannot be compared"
    with pytest.raises(RunError, match=message):
        gather([tmp_path / "run"])


# ------------------------------------------------------------------------------ damaged files


DATA = '{"kind": "image", "fingerprint": "", "class_names": ["a"]}'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "config.json: not readable as JSON"),
        ('{"format": "coarse2fine run"}', "config.json is damaged: it has no 'data'"),
        (
            '{"format": "coarse2fine run", "method": "plain", "data": [], "config": {}}',
            "config.json is damaged: it does not hold what a run has",
        ),
        (
            f'{{"format": "coarse2fine run", "method": "plain", "config": 3, "data": {DATA}}}',
            "config.json is damaged: it does not hold what a run has",
        ),
    ],
)
def test_a_damaged_config_is_named(made, tmp_path, content, message):
    path = made("baseline")
    (path / "config.json").write_text(content)
    for source in (path, tmp_path / "run"):
        with pytest.raises(RunError, match=message):
            gather([source])


def test_a_result_without_its_config_is_named(made):
    path = made("baseline")
    result = RunResult.load(path)
    (path / "config.json").unlink()
    with pytest.raises(RunError, match=f"{path} has no config.json, so it is not a run"):
        gather([result])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"accuracy": 0.375', '"accuracy": null', "result.json is damaged: accuracy is None"),
        ('"accuracy": 0.375', '"accuracy"', "result.json is damaged: "),
    ],
)
def test_a_damaged_result_is_named(made, before, after, message):
    file = older(made("baseline")) / "result.json"
    file.write_text(file.read_text().replace(before, after))
    with pytest.raises(RunError, match=message):
        gather([file.parent])


def run_of(path):
    return gather([path]).entries[0].runs[0]


def test_damaged_predictions_are_named(made):
    path = older(made("baseline"))
    (path / "predictions.safetensors").write_bytes(b"no")
    with pytest.raises(RunError, match="predictions.safetensors: not readable as safetensors"):
        _ = run_of(path).predictions
    (path / "predictions.safetensors").unlink()
    with pytest.raises(RunError, match="predictions.safetensors: not readable as safetensors"):
        _ = run_of(path).predictions


def test_predictions_of_other_classes_are_named(made):
    path = made("baseline", predictions=[0, 0, 0, 0, 0, 0, 0, 7])
    message = r"predictions.safetensors is damaged: labels must lie in 0\.\.3\. Got 7"
    with pytest.raises(RunError, match=message):
        _ = run_of(path).predictions


def test_a_hierarchy_of_other_classes_or_without_its_file_is_named(made):
    path = older(made("continuous"))
    Hierarchy.from_levels([[0, 0, 1]]).save(path / "hierarchy.json")
    with pytest.raises(RunError, match="hierarchy.json is damaged: .*3 classes"):
        _ = run_of(path).hierarchy
    (path / "hierarchy.json").write_text("[")
    with pytest.raises(RunError, match="hierarchy.json: not readable as JSON"):
        _ = run_of(path).hierarchy
    (path / "hierarchy.json").unlink()
    with pytest.raises(RunError, match="there is no .*hierarchy.json, which belongs to the run"):
        _ = run_of(path).hierarchy


def test_damaged_metrics_are_named(made):
    path = older(made("continuous"))
    (path / "metrics.jsonl").write_text('{"epoch": 1}\n')
    with pytest.raises(RunError, match="metrics.jsonl is damaged: KeyError"):
        run_of(path).curve()
    (path / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match="there is no .*metrics.jsonl, which belongs to the run"):
        run_of(path).curve()


def test_neither_training_nor_drawing_is_imported_to_read_runs():
    code = "import sys, coarse2fine.report.content; print(*sys.modules)"
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    imported = set(finished.stdout.split())
    assert "coarse2fine.report.content" in imported
    assert not {"lightning_fabric", "matplotlib", "plotly", "PIL", "datasets"} & imported
