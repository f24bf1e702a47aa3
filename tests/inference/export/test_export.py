"""A folder that stands by itself: its config, reading it again, and writing it."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from trainings import (
    KINDS,
    Branching,
    inputs_of,
    raw_inputs,
    trained,
)

from coarse2fine import Hierarchy, RunError, export_model, load_classifier, load_export
from coarse2fine.inference import export as exporting
from coarse2fine.inference.folder import is_export
from coarse2fine.runs.best import described
from coarse2fine.runs.restore import load_trained

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


# ---------------------------------------------------------------------- config and hierarchy


@pytest.mark.parametrize("kind", KINDS)
def test_the_config_says_what_the_model_is(made, kind):
    result, export = made(kind)
    best, config = result.best, json.loads((export.path / "config.json").read_text())
    model = load_trained(best.path)
    assert config["format"] == "coarse2fine export"
    assert config["data"]["kind"] == kind
    assert config["data"]["class_names"] == list(model.class_names)
    assert config["data"]["columns"] == list(model.columns)
    assert config["data"]["input_shape"] == list(model.input_shape)
    assert config["data"]["transform"]["mean"] == list(model.transform.mean)
    assert config["model"] == model.config.model
    assert config["run"] == json.loads(json.dumps(best.to_dict()))
    assert config["versions"]["torch"] == torch.__version__


def test_the_command_does_not_tell_where_the_program_lies(made):
    config = json.loads((made("table")[1].path / "config.json").read_text())
    assert not config["command"].startswith("/")


@pytest.mark.usefixtures("without_programs")
def test_the_hierarchy_is_that_of_the_seed_whatever_the_method(made, tmp_path):
    result, _ = made("table")
    wanted = result.of("continuous")[0].hierarchy()
    for method in ("baseline", "continuous"):
        export = export_model(result, tmp_path / method, method=method)
        assert Hierarchy.load(export.path / "hierarchy.json") == wanted
    alone = export_model(result.of("baseline")[0], tmp_path / "alone")
    assert Hierarchy.load(alone.path / "hierarchy.json") == wanted
    assert load_classifier(alone.path).hierarchy == wanted


@pytest.mark.usefixtures("without_programs")
def test_the_best_is_exported_unless_another_is_named(made, tmp_path):
    result, export = made("table")
    assert export.run == result.best
    for run in result.runs:
        export = export_model(result.path, tmp_path / run.method, method=run.method, seed=0)
        assert (export.run.method, export.run.seed) == (run.method, 0)
        assert export_model(run, tmp_path / "one").run == run


# ---------------------------------------------------------------------------- reading it again


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_is_read_as_the_run_itself(made, kind):
    result, export = made(kind)
    found, wanted = load_export(export.path), load_trained(result.best.path)
    for name in ("kind", "class_names", "columns", "input_shape", "transform", "config"):
        assert getattr(found, name) == getattr(wanted, name)
    states = found.model.state_dict(), wanted.model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])
    assert not found.model.training


@pytest.mark.parametrize("kind", KINDS)
def test_a_classifier_of_an_export_is_that_of_the_run(made, kind):
    result, export = made(kind)
    found, wanted = load_classifier(export.path), load_classifier(result.path)
    inputs = raw_inputs(kind) if kind != "text" else inputs_of(kind)
    inputs = inputs.numpy() if kind != "text" else inputs
    assert (found.predict_proba(inputs) == wanted.predict_proba(inputs)).all()
    assert found.hierarchy == wanted.hierarchy
    assert found.description == described(replace(result.best, path=export.path))
    with pytest.raises(RunError):
        load_classifier(export.path, method="baseline")


def test_a_folder_that_is_no_export_is_not_read(made, tmp_path):
    result, export = made("table")
    for folder in (result.best.path, tmp_path / "none"):
        with pytest.raises(RunError, match=f"{folder} is not a folder that c2f export wrote."):
            load_export(folder)
    (shutil.copytree(export.path, tmp_path / "part") / "model.safetensors").unlink()
    with pytest.raises(RunError, match="has no model.safetensors; export it again."):
        load_export(tmp_path / "part")


def test_an_export_of_a_later_release_is_refused(made, tmp_path):
    folder = shutil.copytree(made("table")[1].path, tmp_path / "later")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "version": 2}))
    with pytest.raises(RunError, match="a later release of coarse2fine wrote it, in version 2 of"):
        load_export(folder)


def test_weights_of_another_model_are_refused(made, tmp_path):
    folder = shutil.copytree(made("table")[1].path, tmp_path / "model")
    save_file({"x": torch.zeros(2)}, folder / "model.safetensors")
    with pytest.raises(RunError, match="the weights are those of another model"):
        load_export(folder)


@pytest.mark.usefixtures("without_programs")
def test_a_model_of_ones_own_is_imported_only_if_named(made, tmp_path, monkeypatch):
    folder = shutil.copytree(made("table")[1].path, tmp_path / "model")
    (tmp_path / "theirs.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    config["config"]["model"] = config["model"] = "theirs:make"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(RunError, match="imported only if you say so"):
        load_export(folder)
    result = trained("table", tmp_path / "run", model=Branching, methods=())
    export = export_model(result, tmp_path / "own")
    assert isinstance(load_export(export.path, Branching).model, Branching)


def test_the_weights_have_the_names_of_the_classes(made):
    result, export = made("image")
    with safe_open(export.path / "model.safetensors", "pt") as file:
        names = json.loads(file.metadata()["class_names"])
    assert names == list(load_trained(result.best.path).class_names)


# ------------------------------------------------------------------------- writing the folder


@pytest.mark.usefixtures("without_programs")
def test_an_earlier_export_is_replaced(made, tmp_path):
    result, _ = made("table")
    folder = tmp_path / "model"
    for run in result.runs:
        export_model(run, folder)
        assert json.loads((folder / "config.json").read_text())["method"] == run.method
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.usefixtures("without_programs")
def test_an_empty_folder_is_taken(made, tmp_path):
    (tmp_path / "model").mkdir()
    assert is_export(export_model(made("table")[0], tmp_path / "model").path)


@pytest.mark.usefixtures("without_programs")
@pytest.mark.parametrize("other", ["a file", "a link", "a run", "a stranger's", "more than ours"])
def test_what_is_not_an_export_is_refused_and_stays(made, tmp_path, other):
    result, export = made("table")
    folder = tmp_path / "model"
    if other == "a file":
        folder.write_text("mine")
    elif other == "a link":
        folder.symlink_to(export.path)
    elif other == "a run":
        shutil.copytree(result.best.path, folder)
    elif other == "a stranger's":
        folder.mkdir()
        (folder / "config.json").write_text('{"model_type": "bert"}')
    else:
        (shutil.copytree(export.path, folder) / ".git").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(FileExistsError, match=f"{folder} exists and .*; choose another folder"):
        export_model(result, folder)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.usefixtures("without_programs")
def test_a_failure_leaves_the_old_folder_as_it_was(made, tmp_path, monkeypatch):
    result, export = made("table")
    folder = shutil.copytree(export.path, tmp_path / "model")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "model_card", fail)
    with pytest.raises(OSError, match="No space left on device; free some") as caught:
        export_model(result, folder)
    assert caught.value.filename == str(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


@pytest.mark.usefixtures("without_programs")
def test_a_folder_may_be_the_current_one(made, tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert export_model(made("table")[0], ".").path == Path(tmp_path / "here")
    assert is_export(tmp_path / "here")
