"""What the pages call yours: small real objects, for the pages that do not make them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from local_hub import LocalHub
from pages import DOCS, read
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from coarse2fine import fit
from coarse2fine.cli.app import run
from coarse2fine.runs.best import find_best

CLASSES = 12


def samples(count: int = 120) -> tuple[torch.Tensor, torch.Tensor]:
    """Return points of 12 classes, in four groups of three."""
    rng = torch.Generator().manual_seed(0)
    groups = 4 * torch.randn(4, 16, generator=rng)
    centres = groups.repeat_interleave(3, dim=0) + torch.randn(CLASSES, 16, generator=rng)
    targets = torch.arange(count) % CLASSES
    return centres[targets] + torch.randn(count, 16, generator=rng), targets


def make_model(num_classes: int = CLASSES) -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, num_classes))


def all_things() -> dict[str, Any]:
    inputs, targets = samples()
    val_inputs, val_targets = samples(60)
    model = make_model()
    return {
        "baseline": make_model(),
        "model": model,
        "make_model": make_model,
        "optimiser": torch.optim.Adam(model.parameters()),
        "loader": DataLoader(TensorDataset(inputs, targets), batch_size=32),
        "epochs": 4,
        "T": 3,
        "inputs": inputs,
        "targets": targets,
        "val_inputs": val_inputs,
        "val_targets": val_targets,
    }


def some(*names: str) -> dict[str, Any]:
    things = all_things()
    return {name: things[name] for name in names}


def exported() -> dict[str, Any]:
    """Run the commands that the page has before its code, and return the model's architecture."""
    train = (
        "train shapes:600 --image-size 24 --epochs 12 --batch-size 64 --seeds 2 --out runs/small"
    )
    for command in (train, "export runs/small --out model.safetensors"):
        assert f"c2f {command}\n" in read(DOCS / "command-line.md")
        assert run(command.split()) == 0
    return {"model": find_best(Path("runs/small")).model()}


def stored_runs() -> dict[str, Any]:
    """Leave a run where those of an experiment on Shapes would be."""
    fit(samples(), epochs=6, curriculum_epochs=2, out="runs/paper/shapes-cnn-4500-small")
    return {}


def local_hub() -> dict[str, Any]:
    """Have a folder take the place of the hub."""
    for name, replacement in LocalHub(Path("elsewhere")).replacements().items():
        mock.patch(name, replacement).start()
    return {}


LOOP = ("baseline", "model", "optimiser", "loader")
YOURS: dict[str, Callable[[], dict[str, Any]]] = {
    "README.md": partial(
        some, *LOOP, "T", "epochs", "inputs", "targets", "val_inputs", "val_targets", "make_model"
    ),
    "command-line.md": exported,
    "deploy.md": local_hub,
    "hierarchies.md": partial(some, "baseline"),
    "method-card.md": partial(some, "baseline", "model", "loader"),
    "results.md": stored_runs,
}
"""What a page is given, by its name; most are given nothing."""
