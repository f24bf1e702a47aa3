"""`c2f export`."""

import json
import sys

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from safetensors import safe_open
from safetensors.torch import load_file

from coarse2fine.models import build_model
from coarse2fine.runs.restore import load_trained


def test_safetensors_hold_the_plain_weights_and_what_is_needed_to_use_them(c2f, comparison):
    code, out, _ = c2f("export", comparison, "--out", "model.safetensors")
    assert (code, out) == (0, "model.safetensors\n")
    trained = load_trained(comparison / "seed-0" / "continuous")
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


def test_without_a_name_it_lies_in_the_run(c2f, comparison):
    run = comparison / "seed-0" / "continuous"
    assert c2f("export", run)[1] == f"{run}/model.safetensors\n"
    assert {path.name for path in run.glob("*model*")} == {"model.safetensors"}


def test_onnx_gives_the_same_logits_for_any_number_of_samples(c2f, comparison):
    code, out, err = c2f("export", comparison, "--onnx", "--out", "model.onnx")
    assert (code, out, err) == (0, "model.onnx\n", "")
    exported = onnx.load("model.onnx")
    onnx.checker.check_model(exported, full_check=True)
    trained = load_trained(comparison / "seed-0" / "continuous")
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
