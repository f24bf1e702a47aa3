"""A folder that stands by itself."""

import importlib.util
import inspect
import json
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors import safe_open
from safetensors.torch import save_file
from trainings import (
    SETTINGS,
    Branching,
    images,
    inputs_of,
    rows,
    targets,
    trained,
    without_this_package,
)

from coarse2fine import Hierarchy, RunError, export_model, fit, load_classifier, load_export
from coarse2fine.data.sources import text as sentences
from coarse2fine.data.sources.text import tokens
from coarse2fine.inference import export as exporting
from coarse2fine.inference.folder import is_export
from coarse2fine.runs.best import described
from coarse2fine.runs.restore import load_trained

KINDS = ("image", "text", "table")
FILES = {"README.md", "config.json", "hierarchy.json", "model.onnx", "model.safetensors",
         "program.pt2"}  # fmt: skip
pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


def raw_inputs(kind, count=7):
    """Inputs as the data has them, before anything is normalised."""
    found = inputs_of(kind)[:count]
    return tokens(found) if kind == "text" else found


def logits_of(result, raw):
    model = load_trained(result.best.path)
    with torch.no_grad():
        return model.model(model.transform.normalise(raw.clone()))


# ---------------------------------------------------------------------------- the programs


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


# ------------------------------------------------------------------------------ the model card


@pytest.mark.parametrize("kind", KINDS)
def test_the_hub_reads_the_card(made, kind):
    result, export = made(kind)
    data = ModelCard((export.path / "README.md").read_text()).data
    assert data.library_name == "coarse2fine"
    assert data.pipeline_tag == {"image": "image", "text": "text", "table": "tabular"}[kind] + (
        "-classification"
    )
    assert data.license is None
    assert data.metrics == ["accuracy"]
    figures = {found.metric_name: found.metric_value for found in data.eval_results}
    best = result.best
    assert figures == {"validation accuracy": best.val_accuracy, "test accuracy": best.accuracy}


def test_the_card_has_data_figures_and_command(made):
    result, export = made("table")
    card = (export.path / "README.md").read_text()
    config = json.loads((export.path / "config.json").read_text())
    train, val, test = config["data"]["samples"]
    assert f"{train} samples were trained on, {val} validated on and {test} tested on." in card
    assert f"| test | {100 * result.best.accuracy:.2f} % |" in card
    assert str(result.choice) in card
    assert f"```sh\n{config['command']}\n```" in card


@pytest.mark.parametrize("kind", KINDS)
def test_the_code_of_the_card_runs_without_this_package(made, kind):
    _, export = made(kind)
    blocks = (export.path / "README.md").read_text().split("```python\n")[1:]
    ours, *others = [block.partition("\n```")[0] for block in blocks]
    assert ours.startswith("from coarse2fine import load_classifier\n")
    check = "assert probabilities.shape == logits.shape == (1, 6)"
    without_this_package("\n".join([*others, check]), export.path)


@pytest.mark.usefixtures("without_programs")
def test_names_in_the_card_are_no_markup(tmp_path):
    names = ["`a` <script>", "b\n# c", "![d](e)", "---", "f|g", "```"]
    result = fit((rows(), targets()), class_names=names, out=tmp_path / "run", **SETTINGS)
    card = (export_model(result, tmp_path / "model").path / "README.md").read_text()
    (line,) = [line for line in card.splitlines() if line.startswith("The classes: ")]
    assert line == ("The classes: `'a' <script>`, `b # c`, `![d](e)`, `---`, `f|g`, `'''`.")
