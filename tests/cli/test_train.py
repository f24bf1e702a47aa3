"""`c2f train` and `c2f demo`."""

import json
import re
import traceback
from dataclasses import fields
from pathlib import Path

import pytest
import typer

from coarse2fine import Config, Hierarchy
from coarse2fine.cli import app, demo
from coarse2fine.runs.parsers import seeds, shares, size

from .calls import SHORT, SMALL


def test_every_setting_is_an_option():
    command = typer.main.get_command(app.app).commands["train"]
    options = {parameter.name for parameter in command.params} - {"help"}
    others = {"folder", "out", "peer_seconds", "tensorboard", "as_json", "dry_run"}
    assert options - others == {field.name for field in fields(Config)}


def test_options_reach_fit_as_what_they_mean(c2f, monkeypatch):
    given = {}

    def note(data, **options):
        given.update(options, data=data)
        del given["watcher"]
        raise ValueError("noted")

    monkeypatch.setattr("coarse2fine.training.fit.fit", note)
    options = (
        "--data d --model cnn --method staged --method continuous --train-size 5% --seeds 3 "
        "--curriculum-epochs 7 --devices 2 --no-augment --milestones 0.5,0.75 --clip 0.5 "
        "--hierarchy h.json --no-baseline --peer-seconds 30 --out o"
    )
    assert c2f("train", "photos/", *options.split())[2] == "error: noted\n"
    assert {name: str(given.pop(name)) for name in ("folder", "out")} == {"folder": "d", "out": "o"}
    assert given == {
        "data": "photos/",
        "model": "cnn",
        "methods": ["staged", "continuous"],
        "train_size": 0.05,
        "seeds": (0, 1, 2),
        "curriculum_epochs": 7,
        "devices": 2,
        "augment": False,
        "milestones": (0.5, 0.75),
        "clip": 0.5,
        "hierarchy": "h.json",
        "baseline": False,
        "peer_seconds": 30.0,
    }


def test_the_way_to_the_loss_is_as_short_as_the_design_says(c2f, monkeypatch):
    found = []

    def noted(*_):
        names = [frame.name for frame in traceback.extract_stack()]
        found.extend(names[names.index("run", names.index("c2f")) :])
        raise ValueError("noted")

    monkeypatch.setattr("coarse2fine.loss.level_cross_entropy", noted)
    assert c2f("train", *SHORT, "--out", "here")[2].endswith("error: noted\n")
    design = (Path(__file__).parents[2] / "docs" / "design.md").read_text()
    said = int(re.search(r"a traceback has (\d+) frames", design)[1])
    assert len(found) + 1 == said  # with `main`, which calls `run`
    assert (found[0], *found[-2:]) == ("run", "forward", "noted")


@pytest.mark.parametrize("meaning", [seeds, size, shares])
def test_values_that_mean_nothing_are_refused(meaning):
    with pytest.raises(ValueError, match=r"Got '1,x'."):
        meaning("1,x")


@pytest.mark.parametrize("text", ["", ",", "0 1", "-1"])
def test_seeds_are_a_number_or_a_list(text):
    with pytest.raises(ValueError, match="seeds must be a number, or a list such as 0,1,2"):
        seeds(text)


def test_it_ends_with_the_comparison_the_levels_and_where_it_lies(c2f):
    code, out, err = c2f("train", *SHORT, "--out", "here", "--method", "staged")
    assert code == 0
    assert "\nin here:\nseed 0 baseline: test accuracy " in err
    assert "stage_epochs" not in err
    assert "batch_size         64\n" in err
    told, comparison, levels, place = out.split("\n\n")
    assert [line.split()[0] for line in told.splitlines()] == ["use", "Whether"]
    assert levels.splitlines()[1].split()[0] == "clusters"
    assert comparison.splitlines()[1].strip().split("  ") == [
        "seed",
        "baseline",
        "staged",
        "gain of staged",
    ]
    assert comparison.splitlines()[4].split()[0] == "epochs"
    assert "note: seed 0: staged was best at epoch" in comparison
    assert place == (
        "here holds it all; c2f report here shows it, c2f predict here … uses the best model.\n"
    )


def test_json_is_all_that_is_written(c2f):
    code, out, err = c2f("train", *SHORT, "--out", "here", "--json")
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    once = ["begin", "epoch", "epoch", "end"]
    assert [line["event"] for line in lines] == ["config", *once, *once, "result"]
    assert lines[0]["config"]["optimiser"] == "adam"
    assert lines[-1]["path"] == "here"
    assert [run["method"] for run in lines[-1]["runs"]] == ["baseline", "continuous"]


def test_tensorboard_gets_the_metrics_too(c2f, tmp_path):
    assert c2f("train", *SHORT, "--out", "here", "--tensorboard")[0] == 0
    for method in ("baseline", "continuous"):
        assert list((tmp_path / "here" / "seed-0" / method / "tensorboard").iterdir())


def test_a_dry_run_shows_the_settings_and_does_nothing(c2f, tmp_path):
    code, out, _ = c2f("train", *SMALL, "--dry-run")
    assert code == 0
    assert "optimiser          adam\n" in out
    path = out.splitlines()[-1].removeprefix("in ")
    assert path.startswith("runs/shapes-300-cnn-")
    assert not list(tmp_path.iterdir())
    as_json = json.loads(c2f("train", *SMALL, "--dry-run", "--json")[1])
    assert as_json["path"] == path
    assert Config.from_dict(as_json["config"]).batch_size == 64


def test_bad_settings_are_refused_before_the_data_is_looked_for(c2f):
    assert "linkage must be one of" in c2f("train", "nothing.csv", "--linkage", "x")[2]
    assert "there is no data 'nothing.csv'" in c2f("train", "nothing.csv")[2]


def test_a_hierarchy_of_ones_own_needs_no_baseline(c2f, tmp_path):
    Hierarchy.from_levels([[number % 3 for number in range(30)]]).save(tmp_path / "h.json")
    options = ["--hierarchy", "h.json", "--no-baseline", "--out", "here", "--json"]
    code, out, _ = c2f("train", *SHORT, *options)
    assert code == 0
    (run,) = json.loads(out.splitlines()[-1])["runs"]
    assert (run["method"], run["num_clusters"]) == ("continuous", [3, 30])


def test_a_short_training_for_the_hierarchy_needs_no_baseline(c2f, tmp_path):
    options = ["--hierarchy-epochs", "1", "--no-baseline", "--out", "here"]
    code, out, _ = c2f("train", *SHORT, *options)
    assert code == 0
    assert "epochs + those for the hierarchy       2 + 1\n" in out
    runs = {path.parent.name for path in (tmp_path / "here" / "seed-0").glob("*/result.json")}
    assert runs == {"continuous", "hierarchy-1-epochs"}


OWN = """
import numpy as np

def brightness(images):
    return images.mean(2).flatten(1)

def letters(names):
    return np.array([[1 + name.count(letter) for letter in "aeiou"] for name in names])
"""


@pytest.mark.parametrize(
    ("word", "encoder"), [("features", "own_codes:brightness"), ("names", "own_codes:letters")]
)
def test_an_encoder_of_ones_own_makes_the_hierarchy(word, encoder, c2f, tmp_path):
    (tmp_path / "own_codes.py").write_text(OWN)
    options = ["--hierarchy", word, "--encoder", encoder, "--no-baseline"]
    code, out, _ = c2f("train", *SHORT, *options, "--json")
    assert code == 0
    found = json.loads(out.splitlines()[-1])
    (run,) = found["runs"]
    assert run["num_clusters"][-1] == 30
    assert c2f("train", *SHORT, *options, "--dry-run")[1].splitlines()[-1] == f"in {found['path']}"


def test_the_demo_says_that_it_is_reduced_and_shows_the_tree(c2f, monkeypatch):
    small = {"image_size": 24, "epochs": 2, "curriculum_epochs": 1, "max_levels": 2}
    monkeypatch.setattr(demo, "DATA", "shapes:300")
    monkeypatch.setattr(demo, "SETTINGS", small)
    code, out, err = c2f("demo", "--seeds", "0,3")
    assert code == 0
    assert err.startswith("Shapes, reduced: ")
    assert "\n30 classes: " in out
    assert "gain of continuous" in out
    assert re.search(r"(runs/shapes-\S+-cnn-\w{8}) holds it all; c2f report \1 shows it, c2f ", out)


def test_the_demo_says_how_it_is_reduced_as_it_is():
    config, count = Config(demo.DATA, **demo.SETTINGS), int(demo.DATA.partition(":")[2])
    side, of_each, tested = config.image_size, config.train_size // 30, count // 5
    assert (
        f"Shapes, reduced: images of {side}×{side} pixels instead of 64×64, {of_each} of each "
        f"class to train and validate on instead of about 1,300, and {tested:,} to test on "
        f"instead of 10,000."
    ) == demo.REDUCED


def test_the_demo_has_more_seeds_than_of_which_nothing_can_be_told():
    assert len(seeds(demo.SEEDS)) >= 3  # "helped" is never said of fewer
