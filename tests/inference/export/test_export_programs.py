"""The programs of an exported folder give what the model gives."""

import importlib.util
import inspect
import json
import re
import shutil
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from trainings import (
    FILES,
    KINDS,
    SETTINGS,
    Branching,
    images,
    logits_of,
    raw_inputs,
    rows,
    targets,
    trained,
    without_this_package,
)

from coarse2fine import export_model, fit
from coarse2fine.data.sources import text as sentences
from coarse2fine.data.sources.text import tokens
from coarse2fine.inference.folder import is_export
from coarse2fine.runs.restore import load_trained

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_holds_what_it_should(made, kind):
    _, export = made(kind)
    extra = {"tokens.py"} if kind == "text" else set()
    assert {path.name for path in export.path.iterdir()} == FILES | extra
    assert export.missing == ()
    assert is_export(export.path)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_pytorch_runs_the_program_where_this_package_cannot_be_imported(made, kind, tmp_path):
    result, export = made(kind)
    folder, raw = shutil.copytree(export.path, tmp_path / "elsewhere"), raw_inputs(kind)
    np.save(folder / "raw.npy", raw.numpy(), allow_pickle=False)
    without_this_package(
        "import torch, numpy\n"
        "raw = torch.from_numpy(numpy.load('raw.npy'))\n"
        "program = torch.export.load('program.pt2').module()\n"
        "logits = torch.cat([program(raw[:1]), program(raw[1:])])\n"
        "numpy.save('logits.npy', logits.detach().numpy())",
        folder,
    )
    found = torch.from_numpy(np.load(folder / "logits.npy", allow_pickle=False))
    assert found.shape == (7, 6)
    torch.testing.assert_close(found, logits_of(result, raw), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_gives_the_same_logits(made, kind):
    result, export = made(kind)
    session = onnxruntime.InferenceSession(export.path / "model.onnx")
    for count in (1, 7):
        raw = raw_inputs(kind, count)
        (found,) = session.run(["logits"], {"inputs": raw.numpy()})
        wanted = logits_of(result, raw)
        torch.testing.assert_close(torch.from_numpy(found), wanted, atol=1e-4, rtol=1e-4)


def test_normalisation_has_a_say(made):
    """What the programs are compared with differs from the model's own inputs."""
    result, _ = made("table")
    model, raw = load_trained(result.best.path), rows()[:7]
    assert model.transform.mean
    assert not torch.allclose(model.model(raw), logits_of(result, raw), atol=1e-2)


def test_images_of_floats_stay_floats(tmp_path):
    result = fit((images(torch.float32), targets()), out=tmp_path / "run", **SETTINGS)
    export = export_model(result, tmp_path / "model")
    config = json.loads((export.path / "config.json").read_text())
    assert config["inputs"] == {"dtype": "float32", "shape": [3, 20, 20]}
    raw = images(torch.float32)[:3]
    program = torch.export.load(export.path / "program.pt2").module()
    torch.testing.assert_close(program(raw), logits_of(result, raw), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("model", ["bag", "transformer"])
def test_sentences_of_any_length_go_through_a_program_of_text(tmp_path, model):
    result = trained("text", tmp_path / "run", model=model, methods=())
    export = export_model(result, tmp_path / "model")
    program = torch.export.load(export.path / "program.pt2").module()
    session = onnxruntime.InferenceSession(export.path / "model.onnx")
    for text in (["card"], ["my card"], ["my card " * 32, ""]):
        raw = tokens(text)
        wanted = logits_of(result, raw)
        torch.testing.assert_close(program(raw), wanted, atol=1e-5, rtol=1e-4)
        (found,) = session.run(["logits"], {"inputs": raw.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), wanted, atol=1e-4, rtol=1e-4)


def test_the_tokens_of_a_folder_are_those_of_the_training(made):
    _, export = made("text")
    text = ["Where's my CARD?", "我的卡", "größer\u2019s", ""]
    source = (export.path / "tokens.py").read_text()
    assert source.endswith(inspect.getsource(sentences))
    imported = re.findall(r"^(?:from|import) (\S+)", source, re.MULTILINE)
    assert {name.partition(".")[0] for name in imported} <= {
        *sys.stdlib_module_names,
        "numpy",
        "torch",
    }
    spec = importlib.util.spec_from_file_location("tokens_of_the_folder", export.path / "tokens.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert torch.equal(module.tokens(text), tokens(text))


def test_a_model_that_torch_cannot_export_has_no_program_and_a_sentence_says_so(tmp_path):
    result = trained("table", tmp_path / "run", model=Branching, methods=())
    export = export_model(result, tmp_path / "model")
    names = {path.name for path in export.path.iterdir()}
    assert names == {"README.md", "config.json", "model.safetensors"}
    (sentence,) = export.missing
    assert sentence.startswith("There is no program.pt2 and no model.onnx: torch.export cannot")
    assert sentence.count("\n") == 0
    card = (export.path / "README.md").read_text()
    assert sentence in card
    assert "torch.export.load" not in card
    assert "onnxruntime" not in card


@pytest.mark.parametrize("library", ["onnx", "onnxscript", "onnxruntime"])
def test_without_the_extra_there_is_no_onnx(made, tmp_path, monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    export = export_model(made("table")[0], tmp_path / "model")
    assert not (export.path / "model.onnx").exists()
    assert (export.path / "program.pt2").exists()
    (sentence,) = export.missing
    assert sentence.startswith("There is no model.onnx: ")
    assert sentence.endswith("pip install 'coarse2fine[onnx]'.")


def test_a_program_with_other_logits_is_left_out(made, tmp_path, monkeypatch):
    axes = ({0: torch.export.Dim("batch")},)
    other = torch.export.export(torch.nn.Linear(5, 6), (torch.zeros(3, 5),), dynamic_shapes=axes)
    monkeypatch.setattr(torch.export, "export", lambda *_, **__: other)
    export = export_model(made("table")[0], tmp_path / "model")
    assert "its logits differ by " in export.missing[0]
    assert not (export.path / "program.pt2").exists()
