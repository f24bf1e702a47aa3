"""Where `c2f train` keeps what it trains: found again, gone on with, and not left behind."""

import json
import sys

import pytest
import torch
from PIL import Image
from torch import nn

from coarse2fine import Hierarchy, RunResult
from coarse2fine.methods.plain import Plain
from coarse2fine.runs.writer import RunWriter

SHORT = ("--epochs", "3", "--curriculum-epochs", "1", "--max-levels", "2", "--out", "here")


class Narrow(nn.Linear):
    """Takes three columns, where there are four."""

    def __init__(self, num_classes):
        super().__init__(3, num_classes)


class TwoHeads(nn.Module):
    """Could be meant to have either layer as its final one."""

    def __init__(self, num_classes):
        super().__init__()
        self.head, self.classifier = nn.Linear(4, num_classes), nn.Linear(4, num_classes)

    def forward(self, inputs):
        return self.head(inputs)


@pytest.fixture
def table(tmp_path):
    """A table of four columns and six classes."""
    rng = torch.Generator().manual_seed(3)
    inputs = torch.randn(120, 4, generator=rng)
    classes = (inputs @ torch.randn(4, 6, generator=rng)).argmax(1).tolist()
    rows = [[f"{x:.3f}" for x in row] for row in inputs.tolist()]
    lines = [",".join([*row, f"class {label}"]) for row, label in zip(rows, classes, strict=True)]
    (tmp_path / "table.csv").write_text("\n".join(["a,b,c,d,label", *lines]) + "\n")
    return tmp_path / "table.csv"


@pytest.fixture
def photos(tmp_path):
    """A folder of class folders."""
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (24, 24), (number, 0, 0)).save(
                tmp_path / "photos" / name / f"{number}.png"
            )
    return tmp_path / "photos"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------ one and the same


@pytest.mark.usefixtures("photos")
def test_a_path_means_the_same_however_it_is_written(c2f):
    written = ("photos", "photos/", "./photos", "photos/../photos", ".//photos/.")
    found = {c2f("train", path, "--dry-run")[1].splitlines()[-1] for path in written}
    assert len(found) == 1
    assert found.pop().startswith("in runs/photos-cnn-")


@pytest.mark.usefixtures("photos")
def test_the_current_folder_has_its_own_name(c2f, monkeypatch):
    monkeypatch.chdir("photos")
    assert c2f("train", ".", "--dry-run")[1].splitlines()[-1].startswith("in runs/photos-cnn-")


def test_more_epochs_have_the_same_directory(c2f, table):
    found = {c2f("train", table, "--dry-run", "--epochs", n)[1].splitlines()[-1] for n in (3, 40)}
    assert len(found) == 1


@pytest.mark.parametrize("before", ["table.csv", "./table.csv"])
def test_a_path_written_in_another_way_goes_on(before, c2f, table):
    assert c2f("train", before, *SHORT)[0] == 0
    for path in ("./table.csv", "table.csv", table):
        code, _, err = c2f("train", path, *SHORT)
        assert code == 0, err
        assert "seed 0 continuous: taken over, as it is done.\n" in err


def test_other_data_of_the_same_name_are_refused(c2f, table):
    assert c2f("train", "table.csv", *SHORT)[0] == 0
    table.write_text(table.read_text().replace("class 1", "class 2"))
    code, _, err = c2f("train", "./table.csv", *SHORT)
    assert code == 2
    assert "here/seed-0/baseline was begun with " in err


# --------------------------------------------------------------------- nothing is left behind

NARROW, TWO = f"{__name__}:Narrow", f"{__name__}:TwoHeads"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (("--target", "nothing"), "nothing"),
        (("--model", NARROW), "cannot take inputs of shape (2, 4)"),
        (("--model", TWO), "could be any of"),
        (("--model", "cnn"), "'cnn' is for data of kind 'image'"),
        (("--curriculum-epochs", "50"), "--curriculum-epochs 50 is beyond the 3 epochs"),
        (("--epochs", "1"), "from epoch 2 on, but the training has only 1"),
        (("--accelerator", "tpu"), "this machine cannot train with"),
        (("--val-share", "0", "--metric", "confusion"), "needs validation samples"),
        (("--hierarchy", "levels.json"), "with 4 levels the classes are trained from epoch 4 on"),
        (("--learning-rate", "1e38", "--optimiser", "sgd"), "epoch 1"),
    ],
    ids=[
        "target",
        "model",
        "head",
        "kind",
        "length",
        "one-epoch",
        "machine",
        "validation",
        "levels",
        "nan",
    ],
)
def test_a_command_that_fails_before_training_leaves_nothing(wrong, message, c2f, table, tmp_path):
    levels = [[0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 1, 2], [0, 0, 0, 1, 2, 3]]
    Hierarchy.from_levels(levels).save(tmp_path / "levels.json")
    options = [each for each in SHORT if each not in ("--max-levels", "2")]
    before = names(tmp_path)
    code, _, err = c2f("train", table, *options, *wrong)
    assert code == 2
    assert message in err.splitlines()[-1]
    assert names(tmp_path) == before
    assert c2f("train", table, *SHORT)[0] == 0


def test_a_missing_extra_leaves_nothing(c2f, table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "filelock", None)
    code, _, err = c2f("train", table, *SHORT[:-2])
    assert code == 2
    assert "pip install 'coarse2fine[train]'" in err
    assert names(tmp_path) == ["table.csv"]


def test_a_folder_that_was_there_stays_with_all_in_it(c2f, table, tmp_path):
    (tmp_path / "here" / "mine").mkdir(parents=True)
    (tmp_path / "here" / "mine" / "notes.txt").write_text("mine")
    assert c2f("train", table, *SHORT, "--model", NARROW)[0] == 2
    assert [
        str(path.relative_to(tmp_path / "here")) for path in (tmp_path / "here").rglob("*")
    ] == [
        "mine",
        "mine/notes.txt",
    ]


def test_what_a_kill_before_training_has_left_takes_other_settings(c2f, table, tmp_path):
    """A kill removes nothing, so the settings are there, and nothing that was trained."""
    assert c2f("train", table, *SHORT)[0] == 0
    for run in (tmp_path / "here" / "seed-0").iterdir():
        RunWriter(run).clear()
        (run / "config.json").write_text(json.dumps({"format": "coarse2fine run", "version": 2}))
    (tmp_path / "here" / "result.json").unlink()
    code, _, err = c2f("train", table, *SHORT, "--learning-rate", "0.02")
    assert code == 0, err


class Failing(Plain):
    """A method that cannot be made."""

    def __init__(self, plan):  # noqa: ARG002
        raise ValueError("it does not work yet")


def test_what_fails_after_the_baseline_may_be_corrected_too(c2f, table, tmp_path):
    """The baseline does not depend on the methods, so it is taken over."""
    code, _, err = c2f("train", table, *SHORT, "--method", f"{__name__}:Failing")
    assert (code, err.splitlines()[-1]) == (2, "error: it does not work yet")
    assert names(tmp_path / "here" / "seed-0") == ["baseline"]
    code, _, err = c2f("train", table, *SHORT, "--max-levels", "2")
    assert code == 0, err
    assert "seed 0 baseline: taken over, as it is done.\n" in err
    code, _, err = c2f("train", table, *SHORT, "--method", "staged")
    assert code == 2
    assert "was begun with --method = " in err


# ---------------------------------------------------------------------------- to go on


def test_more_epochs_and_seeds_go_on_and_say_so(c2f, table, tmp_path):
    assert c2f("train", table, *SHORT)[0] == 0
    code, _, err = c2f("train", table, *SHORT, "--epochs", "5", "--seeds", "2")
    assert code == 0
    assert "seed 0 baseline: goes on from epoch 3.\n" in err
    assert "\nseed 0 continuous: " in err
    assert RunResult.load(tmp_path / "here" / "seed-1" / "baseline").epochs == 5


def test_programs_are_told_too(c2f, table):
    assert c2f("train", table, *SHORT)[0] == 0
    lines = [json.loads(line) for line in c2f("train", table, *SHORT, "--json")[1].splitlines()]
    assert [line["event"] for line in lines] == ["note", "end", "note", "end", "result"]
    assert lines[0]["text"] == "seed 0 baseline: taken over, as it is done."


# ----------------------------------------------------------------------------- unwritable


@pytest.mark.parametrize("out", ["taken", "taken/deeper/still"])
def test_a_file_where_a_folder_should_be_is_told_before_the_data_is_read(out, c2f, tmp_path):
    (tmp_path / "taken").write_text("mine")
    code, _, err = c2f("train", "nothing.csv", "--out", out)
    assert (code, err) == (
        2,
        "error: taken: a file is where a folder should be; choose another\n",
    )
    assert (tmp_path / "taken").read_text() == "mine"
