"""The model card of an export, in the format of the Hugging Face hub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from .._util.text import brief, printable
from ..data import Kind
from ..prediction import LevelPredictor
from ..runs.result import Result
from .folder import LEVELS, ONNX, PROGRAM, TOKENS, WEIGHTS

_TASKS: dict[Kind, str] = {
    "image": "image-classification",
    "text": "text-classification",
    "table": "tabular-classification",
}
_CALLED = {"image": "images", "text": "sentences", "table": "rows of a table", "other": "samples"}
_SHOWN = 10  # so many class names or columns


def model_card(
    name: str,
    facts: Mapping[str, Any],
    comparison: Result | None,
    missing: Sequence[str],
    license: str | None,
    levels: LevelPredictor | None = None,
) -> str:
    """Return the model card of an export.

    Args:
        name: Of the model.
        facts: What the export's config holds.
        comparison: That the model was chosen from; None for a run by itself.
        missing: A sentence for each file that could not be made.
        license: Of the model; None where nobody has said.
        levels: What answers at any level. Defaults to None: nothing does.
    """
    parts = [
        _front_matter(name, facts, license),
        f"# {_code(name)}\n\n{_summary(facts)}",
        f"## Data\n\n{_data(facts['data'], facts['config'])}",
        f"## Figures\n\n{_figures(facts['run'], comparison)}",
        f"## Training\n\n{_training(facts)}",
        f"## How to use it\n\n{_use(facts, missing)}",
        *([] if levels is None else [f"## Answers at any level\n\n{_answers(levels)}"]),
        f"## Licence\n\n{_licence(license)}",
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(name: str, facts: Mapping[str, Any], license: str | None) -> str:
    """Return what the hub reads; strings are JSON, which YAML contains."""
    task = _TASKS.get(facts["data"]["kind"])
    data = _data_name(facts["config"])
    result = {
        "task": {"type": task or "other"},
        "dataset": {"name": data, "type": PurePath(data).name or data},
        "metrics": [
            {"type": "accuracy", "value": value, "name": f"{part} accuracy"}
            for part, value in _accuracies(facts["run"]).items()
        ],
    }
    fields: dict[str, Any] = {
        "library_name": "coarse2fine",
        "tags": ["coarse2fine", "curriculum-learning", "model_hub_mixin"],
        "metrics": ["accuracy"],
        **({"pipeline_tag": task} if task else {}),
        **({"license": license} if license else {}),
        "model-index": [{"name": printable(name), "results": [result]}],
    }
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in fields.items()]
    return "\n".join(["---", *lines, "---"])


def _summary(facts: Mapping[str, Any]) -> str:
    data = facts["data"]
    return (
        f"A classifier of {_CALLED.get(data['kind'], 'samples')} into "
        f"{len(data['class_names'])} classes: the model {_code(facts['model'])}, trained by "
        f"coarse2fine with the method {_code(facts['method'])}."
    )


def _data(data: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    lines = [f"Trained on {_code(_data_name(config))}."]
    if len(data["samples"]) == 3:
        train, val, test = data["samples"]
        lines.append(f"{train} samples were trained on, {val} validated on and {test} tested on.")
    lines.append(f"The classes: {_listed(data['class_names'])}.")
    if data["columns"]:
        lines.append(f"The columns: {_listed(data['columns'])}.")
    return "\n".join(lines)


def _figures(run: Mapping[str, Any], comparison: Result | None) -> str:
    rows = [f"| {part} | {100 * value:.2f} % |" for part, value in _accuracies(run).items()]
    table = "\n".join(["| samples | accuracy |", "|---|---|", *rows])
    if comparison is None:
        return table
    about = "It is one of these, test accuracies in percent; which to use was decided by the"
    return f"{table}\n\n{about} validation samples alone:\n\n{_fenced(str(comparison), 'text')}"


def _training(facts: Mapping[str, Any]) -> str:
    run, versions = facts["run"], facts["versions"]
    length = run["curriculum_epochs"]
    curriculum = f", a curriculum of {length} epochs" if length else ""
    epochs = f"{run['epochs']} epochs{curriculum}"
    best = f"the weights are those of epoch {run['best_epoch']}"
    lines = [f"Method {_code(run['method'])}, seed {run['seed']}, {epochs}; {best}."]
    if versions:
        shown = ", ".join(f"{brief(n, 40)} {brief(v, 40)}" for n, v in versions.items())
        lines.append(f"With {shown}.")
    if facts["command"]:
        lines.append(f"\n{_fenced(facts['command'], 'sh')}")
    return "\n".join(lines)


def _use(facts: Mapping[str, Any], missing: Sequence[str]) -> str:
    is_own = ":" in facts["model"] and not facts["model"].startswith("coarse2fine.")
    named = ', model="package.module:callable"' if is_own else ""
    example = _EXAMPLES.get(facts["data"]["kind"], "inputs")
    inputs = _inputs(facts["data"]["kind"], **facts["inputs"])
    takes = _takes(facts["data"]["kind"], **facts["inputs"])
    ways = {
        "": ("With coarse2fine, in this folder:", _LIBRARY.format(named=named, example=example)),
        PROGRAM: (f"With PyTorch alone. {takes}", _PYTORCH.format(inputs=inputs, file=PROGRAM)),
        ONNX: ("With onnxruntime:", _RUNTIME.format(inputs=inputs, file=ONNX)),
    }
    parts = [
        f"{about}\n\n{_fenced(code, 'python')}"
        for file, (about, code) in ways.items()
        if not (file and any(f"no {file}" in sentence for sentence in missing))
    ]
    return "\n\n".join([*parts, *missing, f"{_code(WEIGHTS)} is the plain state dict."])


def _answers(levels: LevelPredictor) -> str:
    return (
        f"`classifier.answer` gives the finest class or cluster that the model is sure of. With a "
        f"confidence of {levels.confidence:.6g} at least a share of {levels.accuracy:.6g} of the "
        f"answers is right, to samples from the same source as the {levels.num_samples_} that it "
        f"was calibrated by, of which {levels.accuracy_:.2%} were. In {_code(LEVELS)} are the "
        f"temperature that logits are divided by and the least probability of an answer."
    )


_LIBRARY = """from coarse2fine import load_classifier

classifier = load_classifier("."{named})
classifier.predict({example})"""
_EXAMPLES = {"image": '"new-photos/"', "text": '"a sentence"', "table": '"new.csv"'}
_PYTORCH = """import torch
{inputs}

program = torch.export.load("{file}").module()
with torch.no_grad():
    probabilities = program(inputs).softmax(dim=1)"""
_RUNTIME = """import onnxruntime
import torch
{inputs}

session = onnxruntime.InferenceSession("{file}")
(logits,) = session.run(["logits"], {{"inputs": inputs.numpy()}})"""


def _inputs(kind: Kind, dtype: str, shape: Sequence[int]) -> str:
    """Return code that makes inputs, once torch is imported."""
    if kind == "text":
        return f'from {PurePath(TOKENS).stem} import tokens\n\ninputs = tokens(["a sentence"])'
    return f"\ninputs = torch.zeros({_sizes(1, *shape)}, dtype=torch.{dtype})"


def _takes(kind: Kind, dtype: str, shape: Sequence[int]) -> str:
    """Return a sentence on what a program takes."""
    if kind == "text":
        return f"The program takes tokens, which {_code(TOKENS)} makes of sentences."
    what = {"image": "images", "table": "rows", "other": "inputs"}[kind]
    columns = ", in the order of the columns in the config, where `a=b` is 1 for an `a` that is `b`"
    order = f"{columns} and 0 for another" if kind == "table" else ""
    return (
        f"The program takes {dtype} {what} of shape ({_sizes('N', *shape)}) as the data has "
        f"them{order}: scaling and normalisation are part of it."
    )


def _sizes(*sizes: int | str) -> str:
    return ", ".join(map(str, sizes))


def _licence(license: str | None) -> str:
    if license:
        return f"{_code(license)}."
    return "Not stated; add `license:` to the lines at the top."


def _accuracies(run: Mapping[str, Any]) -> dict[str, float]:
    found = {"validation": run["val_accuracy"], "test": run["accuracy"]}
    return {part: value for part, value in found.items() if value is not None}


def _data_name(config: Mapping[str, Any]) -> str:
    return brief(config.get("data") or "data given in Python", 200)


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(_code, names[:_SHOWN]))
    return f"{shown} and {len(names) - _SHOWN} more" if len(names) > _SHOWN else shown


def _code(text: str) -> str:
    """Return a name as code, in which nothing is markup."""
    return f"`{brief(text, 100).replace('`', chr(39))}`"


def _fenced(text: str, language: str) -> str:
    """Return a block of code that no text can leave."""
    longest = max(map(len, re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{printable(text, keep=chr(10))}\n{fence}"
