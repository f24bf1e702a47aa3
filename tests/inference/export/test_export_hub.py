"""To the hub and back, without a network."""

import json
import shutil
import sys

import pytest
import torch
from local_hub import LocalHub
from trainings import Branching, rows, trained

from coarse2fine import MissingExtraError, RunError, export_model, load_classifier, load_export
from coarse2fine.inference.hub import HubClassifier

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


@pytest.fixture
def remote(monkeypatch, tmp_path):
    """A folder that takes the place of the hub."""
    local = LocalHub(tmp_path)
    for name, replacement in local.replacements().items():
        monkeypatch.setattr(name, replacement)
    return local.repositories


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_goes_to_the_hub_as_it_is_and_comes_back(made, remote):
    _, export = made("image")
    assert HubClassifier(export.path).push_to_hub("me/photos") == "the commit of me/photos"
    assert files_of(remote / "me" / "photos") == files_of(export.path)
    found = HubClassifier.from_pretrained("me/photos")
    assert files_of(found.folder) == files_of(export.path)
    states = found.classifier.model.state_dict(), load_export(export.path).model.state_dict()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[1])


def test_it_predicts_as_the_run(made):
    result, export = made("table")
    found = HubClassifier.from_pretrained(export.path)
    wanted = load_classifier(result.path)
    assert found.predict(rows().numpy()) == wanted.predict(rows().numpy())
    probabilities = found.predict_proba(rows().numpy())
    assert (probabilities == wanted.predict_proba(rows().numpy())).all()
    with pytest.raises(ValueError, match="the model is not calibrated yet"):
        found.answer(rows().numpy())


def test_only_files_of_an_export_are_downloaded(made, remote):
    _, export = made("table")
    HubClassifier(export.path).push_to_hub("me/rows")
    (remote / "me" / "rows" / "pytorch_model.bin").write_bytes(b"a pickle")
    found = HubClassifier.from_pretrained("me/rows")
    assert files_of(found.folder) == files_of(export.path)


def test_a_local_folder_is_read_where_it_lies(made, tmp_path):
    _, export = made("text")
    found = HubClassifier.from_pretrained(export.path)
    assert found.folder == export.path
    found.save_pretrained(tmp_path / "copy")
    assert files_of(tmp_path / "copy") == files_of(export.path)


def test_no_pickle_is_loaded(made, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("something was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", refuse)
    monkeypatch.setattr(torch, "load", refuse)
    monkeypatch.setattr(torch.export, "load", refuse)
    assert HubClassifier.from_pretrained(made("table")[1].path).classifier.class_names


@pytest.mark.parametrize("name", ["folder", "model", "_factory"])
def test_a_config_from_the_hub_neither_imports_nor_leads_elsewhere(
    made, tmp_path, monkeypatch, name
):
    (tmp_path / "theirs.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    folder = shutil.copytree(made("table")[1].path, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    settings = {**config["config"], "model": "theirs:make"}
    content = {**config, name: "theirs:make", "config": settings}
    (folder / "config.json").write_text(json.dumps(content))
    found = HubClassifier.from_pretrained(folder)
    assert found.folder == folder
    with pytest.raises(RunError, match="imported only if you say so"):
        _ = found.classifier


@pytest.mark.usefixtures("without_programs")
def test_a_model_of_ones_own_is_named(tmp_path):
    result = trained("table", tmp_path / "run", model=Branching, methods=())
    folder = export_model(result, tmp_path / "model").path
    found = HubClassifier.from_pretrained(folder, model=Branching)
    assert isinstance(found.classifier.model, Branching)


def test_what_is_no_export_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a folder that c2f export wrote"):
        HubClassifier(tmp_path)


def test_without_the_library_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "coarse2fine.inference.hub")
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[hub\]'"):
        import coarse2fine.inference.hub  # noqa: F401
