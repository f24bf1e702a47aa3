"""The experiment of benchmarks/shapes_scaled_twice.py: one division is all that it changes."""

from pathlib import Path

import pytest
import torch

from coarse2fine.experiments import find_experiment
from coarse2fine.models import build_model

ROOT = Path(__file__).parents[2]
NAME = "benchmarks.shapes_scaled_twice"


@pytest.fixture(autouse=True)
def _in_the_repository(monkeypatch):
    monkeypatch.chdir(ROOT)


def test_the_network_is_the_papers_for_images_divided_once_more():
    images = torch.rand(2, 3, 20, 20)
    torch.manual_seed(0)
    plain = build_model("cnn", 4, (3, 20, 20))
    torch.manual_seed(0)
    scaled = build_model(f"{NAME}:ScaledCNN", 4, (3, 20, 20))
    assert all(map(torch.equal, plain.parameters(), scaled.parameters()))
    assert torch.equal(scaled(images), plain(images / 255))
    assert not torch.allclose(scaled(images), plain(images), atol=1e-3)


@pytest.mark.parametrize("scale", ["full", "small"])
def test_all_else_is_as_in_the_experiment_beside_it(scale):
    (plain,) = find_experiment("shapes-metrics").scale(scale).settings
    (twice,) = find_experiment(f"{NAME}:TWICE").scale(scale).settings
    for variant in (None, *twice.variants):
        one, other = (row.config(variant, (0,)).to_dict() for row in (plain, twice))
        assert {name for name in one if one[name] != other[name]} == {"model"}
    assert twice.folder != plain.folder
    assert [variant.name for variant in twice.variants] == ["continuous"]
    assert twice.paper == {name: plain.paper[name] for name in ("baseline", "continuous")}
