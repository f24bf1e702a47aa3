"""What coarse2fine 0.1.0 has left: finished runs can be used, unfinished ones are refused."""

import re
import shutil
from pathlib import Path

import pytest
import torch

from coarse2fine import Hierarchy, RunError, RunResult, fit, load_classifier
from coarse2fine.cli.app import run
from coarse2fine.models import MODELS, build_model
from coarse2fine.runs.listing import list_runs
from coarse2fine.runs.restore import load_trained

OLD = Path(__file__).parents[1] / "old_runs" / "0.1.0"
SETTINGS = {
    "model": "net:make",
    "learning_rate": 0.02,
    "epochs": 12,
    "patience": 4,
    "batch_size": 16,
    "curriculum_epochs": 3,
    "accelerator": "cpu",
    "devices": 1,
    "stratify": False,
}


@pytest.fixture(autouse=True)
def _in_a_copy(tmp_path, monkeypatch):
    shutil.copytree(OLD, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("method", ["baseline", "continuous", "staged"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_finished_run_gives_its_result_and_its_model(method, seed):
    path = Path("finished") / f"seed-{seed}" / method
    result = RunResult.load(path)
    trained = load_trained(path, "net:make")
    assert (result.method, result.seed, result.own_epochs) == (method, seed, None)
    assert trained.class_names == ("bus", "car", "cat", "dog", "fox", "van")
    assert bool(result.num_clusters) == (method != "baseline")


# Runs on a table, on images and on sentences: the model, the data, and each method with its number
# of test samples.
KINDS = {
    "finished": ("net:make", "animals.csv", ("baseline", "continuous", "staged"), 36),
    "images": ("net:look", "photos", ("baseline", "continuous"), 6),
    "sentences": ("net:read", "sentences.csv", ("baseline", "continuous", "nbdt"), 12),
}
PHOTOS = {path.relative_to(OLD).as_posix() for path in OLD.rglob("*.png")}
TRAINED = [(name, method) for name, (_, _, methods, _) in KINDS.items() for method in methods]


@pytest.mark.parametrize(("name", "method"), TRAINED)
def test_it_is_evaluated_on_its_own_test_samples(name, method, capsys):
    model, data, _, samples = KINDS[name]
    code = run(["evaluate", name, data, "--model", model, "--method", method, "--seed", "0"])
    out = capsys.readouterr().out
    accuracy = RunResult.load(Path(name, "seed-0", method)).accuracy
    assert code == 0
    assert f"{samples} samples" in out
    assert f"{100 * accuracy:.2f}" in out


@pytest.mark.parametrize("name", ["images", "sentences"])
def test_it_predicts_what_it_predicted(name):
    rows = [line.split(",") for line in Path("predicted.csv").read_text().splitlines()[1:]]
    rows = [row for row in rows if (row[0] in PHOTOS) == (name == "images")]
    inputs, classes = [row[0] for row in rows], [row[1] for row in rows]
    classifier = load_classifier(name, "continuous", model=KINDS[name][0])
    assert len(set(classes)) > 2
    assert classifier.predict(inputs) == classes


@pytest.mark.parametrize(
    "command",
    [
        ["export", "finished", "--model", "net:make", "--out", "net.safetensors"],
        ["export", "images", "--model", "net:look", "--out", "look.safetensors"],
        ["report", "finished", "--out", "report.html"],
        ["report", "images", "--model", "net:look", "--out", "report.html"],
        ["report", "sentences", "--model", "net:read", "--out", "report.html"],
        ["figure", "curves", "finished", "--out", "curves.svg"],
        ["hierarchy", "finished"],
        ["paper", "small:CURVES", "--from", "results"],
    ],
)
def test_commands_take_it(command, capsys):
    assert run(command) == 0, capsys.readouterr().err


def test_it_is_listed():
    listed = {x.path.name: x.state for x in list_runs(Path()) if x.state != "foreign"}
    assert listed == dict.fromkeys(KINDS, "finished") | {"unfinished": "interrupted"}


def test_a_hierarchy_and_exported_weights_are_read(capsys):
    groups = ((0, 1, 5), (2, 3, 4))
    assert Hierarchy.load("tree.json").clusters(0) == groups
    assert RunResult.load(Path("finished/seed-0/continuous")).hierarchy().clusters(0) == groups
    assert run(["hierarchy", "weights.safetensors"]) == 0
    assert "bus, car, van" in capsys.readouterr().out


def layouts():
    """The weights that the models of 0.1.0 have, with ten classes: a line for each."""
    for part in (OLD / "models.txt").read_text().split("# ")[1:]:
        name, *lines = part.splitlines()
        yield pytest.param(name, lines, id=name)


@pytest.mark.parametrize(("name", "lines"), list(layouts()))
def test_our_models_take_the_weights_that_they_had(name, lines):
    kind = MODELS[name][0]
    shape = {"image": (3, 32, 32), "text": (16,), "table": (20,)}[kind]
    with torch.device("meta"):
        weights = build_model(name, 10, shape, kind).state_dict()
    assert [" ".join(map(str, (key, *value.shape))) for key, value in weights.items()] == lines


@pytest.mark.parametrize("name", ["finished", "unfinished"])
def test_it_is_not_gone_on_with(name):
    with pytest.raises(RunError, match=f"^{name} was made by coarse2fine 0.1, .* another folder.$"):
        fit("animals.csv", out=name, **SETTINGS)


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "unfinished", "animals.csv"],
        ["export", "unfinished", "--out", "net.safetensors"],
        ["predict", "unfinished", "animals.csv"],
    ],
)
def test_what_is_not_done_cannot_be_used_and_nobody_is_told_to_resume_it(command, capsys):
    assert run(command) == 2
    assert capsys.readouterr().err == (
        "error: unfinished/seed-0/baseline has no result.json: it is not a run, or not done; "
        "coarse2fine 0.1 began it, with other random numbers, so it cannot be resumed: train again "
        "in another folder.\n"
    )


def test_a_run_by_itself_is_not_gone_on_with_either():
    Path("unfinished/config.json").unlink()
    with pytest.raises(RunError, match="baseline was made by coarse2fine 0.1, which drew other"):
        fit("animals.csv", out="unfinished", **SETTINGS)


@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "finished", "animals.csv", "--model", "net:make"],
        ["predict", "finished", "animals.csv", "--model", "net:make"],
        ["export", "finished", "--model", "net:make", "--out", "net.safetensors"],
        ["report", "finished"],
    ],
)
def test_runs_of_a_later_release_are_refused(command, capsys):
    for path in Path("finished").rglob("config.json"):
        path.write_text(path.read_text().replace('"version": 1,', '"version": 3,'))
    assert run(command) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch(
        r"error: finished/[\w/-]+/config.json cannot be used: a later release of coarse2fine wrote "
        r"it, in version 3 of its format, and this release reads versions up to 2; update "
        r"coarse2fine.",
        message,
    )


def test_a_later_release_is_not_gone_on_with(tmp_path):
    path = tmp_path / "unfinished" / "config.json"
    path.write_text(path.read_text().replace('"version": 1,', '"version": 3,'))
    with pytest.raises(RunError, match="^unfinished/config.json cannot be used: a later release"):
        fit("animals.csv", out="unfinished", **SETTINGS)
