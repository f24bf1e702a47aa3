"""`c2f export`."""

import json
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from huggingface_hub import ModelCard
from onnx.reference import ReferenceEvaluator
from safetensors import safe_open
from safetensors.torch import load_file

from coarse2fine import load_export
from coarse2fine.models import build_model
from coarse2fine.runs.best import described, find_best
from coarse2fine.runs.restore import load_trained


def test_safetensors_hold_the_plain_weights_and_what_is_needed_to_use_them(c2f, comparison):
    code, out, _ = c2f("export", comparison, "--out", "model.safetensors")
    assert (code, out) == (0, "model.safetensors\n")
    trained = load_trained(find_best(comparison).path)
    model = build_model("cnn", 30, (3, 24, 24)).eval()
    model.load_state_dict(load_file("model.safetensors"))
    inputs = torch.rand(2, 3, 24, 24)
    assert torch.equal(model(inputs), trained.model(inputs))
    with safe_open("model.safetensors", "pt") as file:
        notes = file.metadata()
    assert (notes["model"], notes["kind"]) == ("cnn", "image")
    assert json.loads(notes["input_shape"]) == [3, 24, 24]
    assert json.loads(notes["class_names"]) == list(trained.class_names)
    assert json.loads(notes["transform"]) == {"mean": [], "std": []}


def test_a_hierarchy_made_of_the_export_has_the_class_names(c2f, comparison):
    c2f("export", comparison, "--method", "baseline", "--out", "model.safetensors")
    made = c2f("hierarchy", "model.safetensors")[1]
    assert "cyan circle" in made
    assert made == c2f("hierarchy", comparison / "seed-0" / "baseline")[1]


def test_without_a_name_it_is_a_folder_in_the_run(c2f, comparison):
    for run in (comparison, comparison / "seed-0" / "continuous"):
        assert c2f("export", run)[:2] == (0, f"{run}/export\n")
        assert load_export(run / "export").class_names[0] == "cyan circle"


def test_an_onnx_file_without_a_name_lies_in_the_run(c2f, comparison):
    run = comparison / "seed-0" / "continuous"
    assert c2f("export", run, "--onnx")[1] == f"{run}/model.onnx\n"
    assert {path.name for path in run.glob("*model*")} == {"model.onnx"}


def test_the_best_is_exported_and_named(c2f, comparison):
    best = find_best(comparison)
    for out in ("folder", "model.safetensors", "model.onnx"):
        _, printed, err = c2f("export", comparison, "--out", out)
        assert printed == f"{out}\n"
        assert err == f"exported {described(best)}\n"
    other = "continuous" if best.method == "baseline" else "baseline"
    _, _, err = c2f("export", comparison, "--method", other, "--out", "folder")
    assert f"{other} of seed 0, validation accuracy " in err


def test_a_name_that_ends_in_onnx_asks_for_onnx(c2f, comparison):
    assert c2f("export", comparison, "--out", "model.onnx")[0] == 0
    onnx.checker.check_model(onnx.load("model.onnx"))


def test_a_folder_has_a_card_with_the_licence(c2f, comparison):
    assert c2f("export", comparison, "--out", "photos", "--license", "apache-2.0")[0] == 0
    assert ModelCard(Path("photos/README.md").read_text()).data.license == "apache-2.0"
    code, _, err = c2f("export", comparison, "--out", "m.safetensors", "--license", "mit")
    assert (code, err) == (
        2,
        "error: --license is for a folder; let --out name a folder.\n",
    )
    _, _, err = c2f("export", comparison, "--out", "photos", "--license", "a\nb")
    assert err.startswith("error: license must be an identifier such as apache-2.0.")


def test_a_folder_that_is_no_export_is_refused(c2f, comparison):
    Path("photos").mkdir()
    Path("photos/cat.jpg").write_bytes(b"")
    code, _, err = c2f("export", comparison, "--out", "photos")
    what = "photos exists and holds cat.jpg, which is not of an export"
    assert (code, err) == (2, f"error: {what}; choose another folder, or remove it.\n")
    assert [path.name for path in Path().iterdir()] == ["photos"]


def test_onnx_gives_the_same_logits_for_any_number_of_samples(c2f, comparison):
    code, out, err = c2f("export", comparison, "--onnx", "--out", "model.onnx")
    assert (code, out) == (0, "model.onnx\n")
    assert err == f"exported {described(find_best(comparison))}\n"
    exported = onnx.load("model.onnx")
    onnx.checker.check_model(exported, full_check=True)
    trained = load_trained(find_best(comparison).path)
    for count in (1, 5):
        inputs = torch.rand(count, 3, 24, 24)
        (logits,) = ReferenceEvaluator(exported).run(["logits"], {"inputs": inputs.numpy()})
        np.testing.assert_allclose(logits, trained.model(inputs).detach().numpy(), atol=1e-4)
    notes = {note.key: note.value for note in exported.metadata_props}
    assert json.loads(notes["class_names"]) == list(trained.class_names)


@pytest.mark.parametrize("library", ["onnx", "onnxscript"])
def test_without_onnx_the_error_says_how_to_install_it(c2f, comparison, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    code, _, err = c2f("export", comparison, "--onnx")
    assert code == 2
    assert err.startswith(f"error: {library} is needed here")
    assert err.endswith("pip install 'coarse2fine[onnx]'.\n")


def test_a_folder_that_does_not_exist_is_named(c2f, comparison):
    _, _, err = c2f("export", comparison, "--out", "no/model.safetensors")
    assert err == "error: no/model.safetensors: there is no folder no; make it first.\n"


def test_a_run_that_does_not_exist_is_named(c2f):
    assert c2f("export", "nothing") == (2, "", "error: there is no run nothing.\n")
