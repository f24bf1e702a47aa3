"""`c2f runs`."""

import json
import shutil

import pytest


@pytest.fixture
def runs(tmp_path, comparison):
    """A folder with a comparison, one that is damaged, and one without any run."""
    shutil.copytree(comparison, tmp_path / "runs" / "first")
    shutil.copytree(comparison, tmp_path / "runs" / "second")
    (tmp_path / "runs" / "second" / "seed-0" / "baseline" / "result.json").write_text("{")
    (tmp_path / "runs" / "notes").mkdir()
    return tmp_path / "runs"


@pytest.mark.usefixtures("runs")
def test_there_is_a_line_for_each_and_what_is_wrong_below(c2f):
    code, out, err = c2f("runs")
    assert (code, err) == (0, "")
    head, first, second, *others = out.splitlines()
    assert head.split() == [
        "run", "data", "model", "methods", "seeds", "best", "validation", "test", "gain",
        "verdict", "epochs", "time", "state",
    ]  # fmt: skip
    assert first.split()[:6] == ["first", "shapes:300", "cnn", "baseline,", "continuous", "1/1"]
    assert "one seed" in first
    assert first.endswith(" finished")
    assert second.split()[:6] == ["second", "shapes:300", "cnn", "baseline,", "continuous", "0/1"]
    assert second.endswith(" damaged")
    assert others[0] == "runs/notes: it holds no run"
    assert others[1].startswith("runs/second: runs/second/seed-0/baseline/result.json is damaged")


def test_the_figures_are_those_of_the_comparison(c2f, runs):
    from coarse2fine import Result

    result = Result.load(runs / "first")
    cells = c2f("runs")[1].splitlines()[1].split()
    best = result.best
    assert cells[6:9] == [
        best.method,
        f"{100 * best.val_accuracy:.2f}",
        f"{100 * best.accuracy:.2f}",
    ]
    assert cells[9] == f"{100 * result.gains('continuous')[0]:+.2f}"


def test_json_has_a_line_for_each(c2f, runs):
    code, out, err = c2f("runs", runs, "--json")
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["state"] for line in lines] == ["finished", "foreign", "damaged"]
    assert lines[0]["path"] == str(runs / "first")
    assert lines[0]["verdicts"] == {"continuous": "one seed"}


def test_nothing_to_list_is_said(c2f, tmp_path):
    assert c2f("runs") == (
        2,
        "",
        "error: there is no folder runs; c2f train keeps its runs in the folder runs.\n",
    )
    (tmp_path / "runs").mkdir()
    assert c2f("runs") == (0, "", "runs holds no run\n")
    assert c2f("runs", "--json") == (0, "", "")
