"""Trainings of a second or two, one of each kind of data, each exported."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run
from typing import Any

import torch
from torch import nn

from coarse2fine import Result, fit
from coarse2fine.data.sources.text import tokens
from coarse2fine.runs.restore import load_trained

SETTINGS: dict[str, Any] = {"epochs": 2, "curriculum_epochs": 1, "batch_size": 16}
WORDS = ("card", "cash", "rate", "fee", "pin", "loan")
KINDS = ("image", "text", "table")
FILES = {"README.md", "config.json", "hierarchy.json", "model.onnx", "model.safetensors",
         "program.pt2"}  # fmt: skip
# What a program finds where this package is not: neither it nor what it needs but for torch.
PREAMBLE = "import sys\nsys.modules['coarse2fine'] = None\n"


def targets(count: int = 96, classes: int = 6) -> torch.Tensor:
    return torch.arange(count) % classes


def images(dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    pixels = torch.randint(256, (96, 3, 20, 20), generator=torch.Generator().manual_seed(0))
    return pixels.to(dtype) if dtype == torch.uint8 else pixels.to(dtype) / 255


def sentences() -> list[str]:
    return [f"where is my {WORDS[k]} number {row}?" for row, k in enumerate(targets().tolist())]


def rows() -> torch.Tensor:
    noise = torch.randn(96, 5, generator=torch.Generator().manual_seed(0))
    return 100 + 10 * noise + targets()[:, None]


def inputs_of(kind: str) -> Any:
    makers: dict[str, Any] = {"image": images, "text": sentences, "table": rows}
    return makers[kind]()


def raw_inputs(kind: str, count: int = 7) -> Any:
    """Inputs as the data has them, before anything is normalised."""
    found = inputs_of(kind)[:count]
    return tokens(found) if kind == "text" else found


def logits_of(result: Result, raw: torch.Tensor) -> torch.Tensor:
    model = load_trained(result.best.path)
    with torch.no_grad():
        logits: torch.Tensor = model.model(model.transform.normalise(raw.clone()))
    return logits


def trained(kind: str, folder: Path, **settings: Any) -> Result:
    return fit((inputs_of(kind), targets()), out=folder, **{**SETTINGS, **settings})


class Branching(nn.Module):
    """A model whose way depends on its inputs, which `torch.export` cannot follow."""

    def __init__(self, num_classes: int, in_features: int) -> None:
        super().__init__()
        self.head = nn.Linear(in_features, num_classes)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.sum() > 0:
            inputs = 2 * inputs
        logits: torch.Tensor = self.head(inputs)
        return logits


def without_this_package(code: str, folder: Path) -> str:
    """Return what a program prints in a folder, where importing coarse2fine fails."""
    command = [sys.executable, "-c", PREAMBLE + code]
    ended = run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
