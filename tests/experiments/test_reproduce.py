"""An experiment from its name to its table, with real trainings in this process."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import animals
import pytest

from coarse2fine import RunError, fit
from coarse2fine.experiments import runner
from coarse2fine.experiments.content import read_results
from coarse2fine.experiments.reproduce import Reproduction, check_errors, redraw
from coarse2fine.experiments.runner import Observer

NAME = "animals:ANIMALS"
RUN_FILES = ("config.json", "metrics.jsonl", "result.json", "predictions.safetensors")


def experiment(**options):
    return Reproduction(NAME, out="runs", **options)


def files(folder):
    """Every file of the runs, and when it was last changed."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("runs/*/*/*/**/*.*")}


def timeless(run):
    return replace(run, seconds=0.0, path=Path())


class Failing(Observer):
    def begin(self, tasks, workers):
        pytest.fail(f"{len(tasks)} trainings begin on {workers} workers")


def test_results_are_those_of_fit(here):
    assert experiment().run() == {}
    (row,) = read_results(here / "runs" / "animals.ANIMALS.json").rows
    methods = ("continuous", "nbdt")
    plain = {name: value for name, value in animals.SETTINGS.items() if name != "data"}
    found = fit(animals.DATA, **plain, methods=methods, seeds=(0, 1), out="fit")
    assert list(map(timeless, row.runs)) == list(map(timeless, found.runs))
    assert len(row.runs) == 6


def test_all_that_is_needed_to_understand_the_results_is_stored(here):
    experiment(seeds=(3,)).run()
    content = json.loads((here / "runs" / "animals.ANIMALS-seeds-3.json").read_text())
    assert (content["experiment"], content["title"]) == (NAME, "Animals")
    assert content["scale"] == {"name": "full", "about": "six kinds"}
    assert content["seeds"] == [3]
    assert {"python", "torch", "coarse2fine"} <= content["versions"].keys()
    (row,) = content["settings"]
    assert row["config"]["learning_rate"] == 0.001  # the recipe's
    assert row["config"]["target"] == "kind"
    assert [variant["label"] for variant in row["variants"]] == ["C2F", "nbdt"]
    for run in row["runs"]:
        folder = here / "runs" / row["folder"] / "seed-3" / run["method"]
        assert all((folder / name).is_file() for name in RUN_FILES)
    text = (here / "runs" / "animals.ANIMALS-seeds-3.md").read_text()
    assert text.startswith("Animals; scale full: six kinds.\n\n| setting | method |")
    assert "|  | nbdt, hard | 1 |" in text


def test_a_second_call_trains_nothing(here, monkeypatch):
    experiment(seeds=(0,)).run()
    before = files(here)
    table = (here / "runs" / "animals.ANIMALS.md").read_bytes()
    monkeypatch.setattr(runner, "workers", None)
    assert experiment(seeds=(0,)).run(observer=Failing()) == {}
    assert len(before) >= 15
    assert files(here) == before
    assert (here / "runs" / "animals.ANIMALS.md").read_bytes() == table


def test_more_seeds_and_more_methods_only_add(here):
    experiment(seeds=(0,), only=("nbdt",)).run()
    before = files(here)
    begun = []

    class Noting(Observer):
        def begin(self, tasks, workers):
            assert workers == 1
            begun.extend(f"{task.name} {task.seed}" for task in tasks)

    assert experiment(seeds=(1, 0)).run(observer=Noting()) == {}
    assert begun == ["baseline 1", "continuous 1", "nbdt 1", "continuous 0"]
    assert files(here).items() >= before.items()


def test_fewer_seeds_leave_the_results_of_more_alone(here):
    stored = [here / "runs" / f"animals.ANIMALS.{kind}" for kind in ("json", "md")]
    more = experiment(seeds=(0, 1))
    more.run()
    assert not more.is_kept
    before = [path.read_bytes() for path in stored]
    fewer = experiment(seeds=(0,))
    fewer.run()
    assert fewer.is_kept
    assert [path.read_bytes() for path in stored] == before
    assert [run.seed for run in fewer.results.rows[0].runs] == [0, 0, 0]
    assert fewer.table().splitlines()[1].split()[2] == "1"


def test_more_runs_of_fewer_seeds_do_not_replace_a_file(here):
    experiment(seeds=(0, 1), only=("nbdt",)).run()
    both = here / "runs" / "animals.ANIMALS.json"
    (here / "runs" / "animals.ANIMALS-only-nbdt.json").rename(both)
    before = both.read_bytes()
    assert read_results(both).extent == (4, 2)
    one = experiment(seeds=(0,))
    one.settings += one.settings  # as if more were declared by now
    one.run()
    assert one.results.extent == (6, 1)
    assert one.is_kept
    assert both.read_bytes() == before


def test_later_seeds_have_a_file_of_their_own_and_are_drawn_with_the_others(here):
    experiment(seeds=(0,)).run()
    other = experiment(seeds=(1,))
    other.run()
    assert not other.is_kept
    assert read_results(here / "runs" / "animals.ANIMALS.json").seeds == (0,)
    assert read_results(other.path).seeds == (1,)
    found = redraw(NAME, "full", here / "runs")
    assert [run.seed for run in found.rows[0].runs] == [0, 0, 0, 1, 1, 1]


@pytest.mark.usefixtures("here")
def test_a_damaged_file_is_replaced():
    one = experiment(seeds=(1,))
    one.run()
    one.path.write_text("{")
    one.store()
    assert not one.is_kept
    assert read_results(one.path).seeds == (1,)


def test_data_that_are_missing_fail_alone_and_the_rest_is_stored(here):
    errors = experiment(scale="with-lost", seeds=(0,)).run()
    names = [(task.setting.label, task.name) for task in errors]
    assert names == [("lost", "baseline"), ("lost", "continuous"), ("lost", "nbdt")]
    with pytest.raises(RunError) as error:
        check_errors(errors, 6)
    assert str(error.value).startswith(
        "3 of 6 runs could not be done; the first is lost.csv-mlp, seed 0, baseline: there is no "
        "data 'lost.csv'"
    )
    lost, found = read_results(here / "runs" / "animals.ANIMALS-with-lost.json").rows
    assert (len(lost.runs), len(found.runs)) == (0, 3)
    text = (here / "runs" / "animals.ANIMALS-with-lost.md").read_text()
    assert "note: lost: 3 of 3 runs are missing." in text
    check_errors({}, 6)


def test_a_damaged_result_is_told_before_anything_is_trained(here):
    experiment(seeds=(0,), only=("nbdt",)).run()
    (path,) = here.glob("runs/*/seed-0/nbdt/result.json")
    path.write_text('{"result": {"method"')
    with pytest.raises(RunError, match=r"nbdt/result.json is damaged: ") as error:
        experiment(seeds=(0, 1)).run(observer=Failing())
    assert "\n" not in str(error.value)


def test_without_workers_nothing_is_lost_and_the_reason_is_told(here, monkeypatch):
    def nobody(name):
        raise ValueError(f"nobody is at {name}")

    monkeypatch.setattr(runner, "workers", nobody)
    with pytest.raises(ValueError, match="nobody is at tcp://x"):
        experiment().run("tcp://x")
    assert (here / "runs" / "animals.ANIMALS.json").is_file()


def test_results_are_drawn_again_without_runs_or_data(here):
    experiment(seeds=(0,)).run()
    text = (here / "runs" / "animals.ANIMALS.md").read_text()
    results = read_results(here / "runs" / "animals.ANIMALS.json")
    for path in (here / "runs").iterdir():
        if path.name != "animals.ANIMALS.json":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert redraw(NAME, "full", here / "runs") == results
    assert (here / "runs" / "animals.ANIMALS.md").read_text() == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": "huge"}, "there is no scale 'huge' here. Must be one of full, with-lost."),
        ({"only": ["spl"]}, "nothing here is called 'spl'."),
        ({"seeds": ()}, "seeds must be different numbers from 0 on. Got ()."),
        ({"seeds": (1, 1)}, "seeds must be different numbers from 0 on. Got (1, 1)."),
        ({"epochs": 0}, "epochs must be at least 1. Got 0."),
    ],
)
def test_what_cannot_be_done_is_refused_at_once(here, options, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        experiment(**options)
    assert str(error.value).startswith(message)
    assert not (here / "runs").exists()
