"""A small experiment that trains for real."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from torch import nn

from coarse2fine.experiments.declaration import Experiment, Scale, Setting, Variant

DATA = "animals.csv"
KINDS = ("ant", "bee", "cat", "cow", "dog", "fly")
SETTINGS = {
    "data": DATA,
    "model": "mlp",
    "target": "kind",  # not the column that would be found by itself
    "epochs": 3,
    "patience": 0,
    "batch_size": 32,
    "curriculum_epochs": 1,
}
SETTING = Setting("animals", SETTINGS, (Variant("continuous", label="C2F"), Variant("nbdt")))
LOST = Setting("lost", {**SETTINGS, "data": "lost.csv"}, SETTING.variants)
ANIMALS = Experiment(
    "Animals",
    {
        "full": Scale("six kinds", (SETTING,)),
        "with-lost": Scale("of which some are lost", (LOST, SETTING)),
    },
    num_seeds=2,
)


def net(num_classes: int) -> nn.Module:
    """A model that has no recipe of its own."""
    return nn.Linear(5, num_classes)


def write_data(folder: Path) -> None:
    """Numbers that tell kinds apart, and a column ``label`` that says only how many legs."""
    rng = np.random.default_rng(5)
    numbers = rng.normal(size=(120, 4))
    kinds = (numbers @ rng.normal(size=(4, 6))).argmax(1)
    lines = ["size,weight,speed,sound,kind,label"]
    for row, kind in zip(numbers, kinds, strict=True):
        lines.append(",".join([*map("{:.4f}".format, row), KINDS[kind], "46"[kind in (0, 1, 5)]]))
    (folder / DATA).write_text("\n".join(lines) + "\n")
