"""`c2f paper`."""

import json
import shlex
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from coarse2fine.cli import paper
from coarse2fine.executors import Workers
from coarse2fine.experiments import EXPERIMENTS, runner

MODULE = """
from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant

def setting(data):
    settings = {"data": data, "model": "mlp", "epochs": 3, "curriculum_epochs": 1}
    return Setting(data, settings, (Variant("continuous", label="C2F"), Variant("spl")))

ZOO = Experiment(
    "A zoo",
    {
        "full": Scale("all there is", (setting("zoo.csv"),)),
        "with-lost": Scale("more than there is", (setting("lost.csv"), setting("zoo.csv"))),
    },
    num_seeds=1,
)
"""
NAME = "zoo:ZOO"


@contextmanager
def one_thread(_):
    with ThreadPoolExecutor(1) as executor:
        yield Workers(executor, 1, 1, CancelledError)


@pytest.fixture
def zoo(c2f, write, monkeypatch):
    """`c2f paper` for a small experiment in the current folder, without further processes."""
    monkeypatch.setattr(runner, "workers", one_thread)
    rows = [[n % 7, n % 5, f"animal {n % 3}"] for n in range(60)]
    write("zoo.csv", [["size", "speed", "label"], *rows])
    write("zoo.py", MODULE)
    return lambda *arguments: c2f("paper", NAME, *arguments)


def test_a_dry_run_lists_the_trainings_and_does_nothing(zoo, tmp_path):
    code, out, err = zoo("--dry-run", "--seeds", "0,4", "--only", "spl")
    assert (code, err) == (0, "A zoo; scale full: all there is.\n")
    assert out.splitlines() == [
        f"zoo.csv-mlp, seed {seed}, {name}: to do"
        for seed in (0, 4)
        for name in ("baseline", "spl")
    ]
    assert not (tmp_path / "runs").exists()


def test_it_ends_with_the_table_and_where_it_lies(zoo, tmp_path):
    code, out, err = zoo()
    assert code == 0
    assert err.splitlines()[:2] == ["A zoo; scale full: all there is.", "3 runs to do, 1 at a time"]
    assert err.splitlines()[2].startswith("1 of 3: zoo.csv-mlp, seed 0, baseline: test accuracy ")
    lines = out.splitlines()
    assert lines[0] == "A zoo; scale full: all there is"
    assert lines[1].split() == [
        *("setting", "method", "runs", "epochs", "accuracy", "gain", "95%", "interval"),
        *("wins", "paper"),
    ]
    assert [line.split()[:2] for line in lines[2:5]] == [
        ["zoo.csv", "baseline"],
        ["C2F", "1"],
        ["spl", "1"],
    ]
    folder = tmp_path / "runs" / "paper"
    assert lines[-2:] == ["", f"Table and figure are in {folder}."]
    assert {path.name for path in folder.iterdir()} >= {"zoo.ZOO.json", "zoo.ZOO.md"}

    done, _, progress = zoo()
    assert (done, progress) == (0, "A zoo; scale full: all there is.\n")
    code, out, _ = zoo("--dry-run")
    assert [line.rpartition(": ")[2] for line in out.splitlines()] == ["done"] * 3


def test_fewer_seeds_show_their_table_and_leave_the_file_of_more_alone(zoo, tmp_path):
    zoo("--seeds", "2")
    path = tmp_path / "runs" / "paper" / "zoo.ZOO.json"
    before = path.read_bytes()
    code, out, err = zoo("--seeds", "1")
    assert code == 0
    assert err.splitlines()[1:] == [
        f"{path} is left as it is, as it has results of more runs or seeds than these."
    ]
    lines = out.splitlines()
    assert [line.split()[1] for line in lines[3:5]] == ["1", "1"]
    assert "Table and figure" not in out
    assert path.read_bytes() == before


def test_json_is_all_that_is_written(zoo, tmp_path):
    code, out, _ = zoo("--json", "--out", "here", "--epochs", "2", "--seeds", "2")
    assert code == 0
    content = json.loads(out)
    assert content == json.loads((tmp_path / "here" / "zoo.ZOO-2-epochs.json").read_text())
    (row,) = content["settings"]
    assert [(run["method"], run["seed"]) for run in row["runs"]] == [
        (name, seed) for seed in (0, 1) for name in ("baseline", "continuous", "spl")
    ]
    assert all(run["epochs"] == 2 for run in row["runs"])


def test_from_draws_again_without_training_there_or_elsewhere(zoo, tmp_path, monkeypatch):
    _, out, _ = zoo("--out", "here", "--only", "spl")
    name = "zoo.ZOO-only-spl.md"
    table = (tmp_path / "here" / name).read_text()
    (tmp_path / "here" / name).unlink()
    monkeypatch.setattr(runner, "workers", None)
    code, again, err = zoo("--from", "here", "--only", "spl")
    assert (code, err) == (0, "")
    assert again.splitlines()[:-1] == out.splitlines()[:-1]
    assert (tmp_path / "here" / name).read_text() == table
    code, elsewhere, _ = zoo("--from", "here", "--only", "spl", "--out", "there")
    assert (code, elsewhere.splitlines()[-1]) == (0, "Table and figure are in there.")
    assert (tmp_path / "there" / name).read_text() == table
    as_json = zoo("--from", "here", "--only", "spl", "--json")[1]
    assert json.loads(as_json)["settings"][0]["key"] == "zoo.csv-mlp"


def test_what_fails_is_code_2_after_the_table_of_the_rest(zoo, tmp_path):
    code, out, err = zoo("--scale", "with-lost", "--out", "here")
    assert code == 2
    assert "note: lost.csv: 3 of 3 runs are missing." in out
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith(
        "error: 3 of 6 runs could not be done; the first is lost.csv-mlp, seed 0, baseline: there "
        "is no data 'lost.csv'"
    )
    assert "6 of 6: zoo.csv-mlp, seed 0, spl: test accuracy " in err
    content = json.loads((tmp_path / "here" / "zoo.ZOO-with-lost.json").read_text())
    assert [len(row["runs"]) for row in content["settings"]] == [0, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", "huge"], "there is no scale 'huge' here. Must be one of full, with-lost."),
        (["--only", "nbdt"], "nothing here is called 'nbdt'. The settings are zoo.csv-mlp; the "),
        (["--seeds", "0"], "--seeds must be different numbers from 0 on."),
        (["--seeds", "x"], "--seeds must be a number, or a list such as 0,1,2."),
        (["--epochs", "0"], "--epochs must be at least 1."),
        (["--from", "nowhere", "--seeds", "3"], "--from draws what is stored: --seeds, --data"),
        (["--from", "nowhere"], "there is no nowhere/zoo.ZOO.json: run the experiment first"),
    ],
)
def test_what_cannot_be_done_is_one_line(zoo, arguments, message):
    code, out, err = zoo(*arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {message}")


def test_an_executor_that_is_none_is_refused(zoo, tmp_path):
    code, out, err = zoo("--executor", "threads")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("error: executor must be processes, processes:N, or ")
    assert not (tmp_path / "runs").exists()


def test_an_experiment_that_is_none_is_one_line(c2f):
    for name, message in (
        ("table-7", "there is no experiment 'table-7'. Must be one of shapes-size, "),
        ("nowhere:ZOO", "experiment 'nowhere:ZOO' cannot be imported: "),
        ("math:pi", "experiment 'math:pi' must be a coarse2fine.experiments.declaration.Exper"),
    ):
        code, out, err = c2f("paper", name)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"error: {message}")


def test_the_summary_shows_all_rows_and_writes_table_and_figure(zoo, c2f, tmp_path):
    zoo("--out", "here")
    code, out, err = c2f("paper", "summary", "--from", "here")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split()[:3] == ["setting", "method", "seeds"]
    assert sum("--only" in line for line in lines) == 17
    assert lines[-1] == "Table and figure are in here."
    assert {path.suffix for path in (tmp_path / "here").glob("summary.*")} == {
        ".md",
        ".svg",
        ".png",
    }
    found = json.loads(c2f("paper", "summary", "--from", "here", "--json")[1])
    assert (len(found), found[0]["remark"], found[0]["gain"]) == (37, "not yet run", None)
    assert found[0]["paper"] == {"baseline": [70.92, 0.37], "staged": [0.92, 0.32]}


@pytest.mark.parametrize(
    "arguments",
    [[], ["--from", "here", "--seeds", "2"], ["--from", "here", "--scale", "small"],
     ["--from", "here", "--only", "continuous"], ["--from", "here", "--dry-run"]],
)  # fmt: skip
def test_a_summary_is_of_a_folder_and_of_all_of_it(c2f, arguments):
    code, out, err = c2f("paper", "summary", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: summary takes --from, the folder of the stored results")


def test_a_summary_of_no_folder_is_one_line(c2f):
    code, out, err = c2f("paper", "summary", "--from", "nowhere")
    assert (code, out) == (2, "")
    assert err == "error: there is no folder nowhere; name one that holds results.\n"


def test_the_help_names_every_experiment():
    assert paper.NAMES.partition(";")[0].replace(" or ", ", ").split(", ") == list(EXPERIMENTS)


def test_the_examples_in_the_help_name_what_there_is(c2f):
    for example in paper.EXAMPLES:
        words = shlex.split(example)
        if "--from" not in words:
            code, tasks, _ = c2f(*words[1:], "--dry-run")
            assert code == 0
            assert tasks.endswith(": to do\n")
