"""The model card of an exported folder."""

import json

import pytest
from huggingface_hub import ModelCard
from trainings import (
    KINDS,
    SETTINGS,
    rows,
    targets,
    without_this_package,
)

from coarse2fine import export_model, fit

pytestmark = pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning")


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
