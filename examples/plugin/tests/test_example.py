"""The names work once this package is installed: pip install --editable '.' pytest."""

from pathlib import Path

import torch

from coarse2fine import fit
from coarse2fine.data import load_data
from coarse2fine.methods.base import Plan
from coarse2fine_example.methods import Fading


def test_the_smoothing_fades() -> None:
    method = Fading(Plan(num_classes=4, epochs=10, patience=0), start=0.2)
    smoothings = []
    for epoch in (0, 5, 9):
        method.begin_epoch(0, epoch, lambda: torch.zeros(1))
        smoothings.append(round(method.smoothing, 6))
    assert smoothings == [0.2, 0.1, 0.02]


def test_rings_have_as_many_points_in_each_class() -> None:
    source = load_data("rings")
    assert source.train.targets.bincount().tolist() == [100, 100, 100, 100]
    assert source.columns == ("x", "y")


def test_everything_is_found_by_its_name(tmp_path: Path) -> None:
    result = fit(
        "rings",
        model="two-layers",
        methods=("continuous", "fading"),
        method_settings={"fading.start": 0.2},
        epochs=30,
        learning_rate=0.02,
        batch_size=32,
        out=tmp_path / "runs",
    )
    assert result.methods == ("baseline", "continuous", "fading")
    assert min(result.accuracies("fading")) > 0.9
