"""Training by the hierarchy that the data brings."""

from pathlib import Path

import pytest
import torch
from studies import NAMES, table

from coarse2fine import Config, Hierarchy, RunError, fit
from coarse2fine.data import Groups, Source
from coarse2fine.training import fit as fitting

GROUPS = ("animal", "vehicle")
OF_CLASS = (0, 0, 0, 1, 1, 1)
TREE = Hierarchy.from_taxonomy({"animal": list(NAMES[:3]), "vehicle": list(NAMES[3:])}, NAMES)


@pytest.fixture(autouse=True)
def _named(monkeypatch):
    """A named set of six classes, which are in two groups unless it is called another way."""
    train, test = table(120), table(60)

    def load(data, *_, **__):
        labels = torch.tensor(OF_CLASS)[train.targets]
        groups = Groups(labels, GROUPS) if data == "grouped" else None
        return Source("table", train, test, groups=groups)

    monkeypatch.setattr(fitting, "load_data", load)


def train(out, data="grouped", **settings):
    options = {"methods": ("hxe",), "baseline": False, "epochs": 2, "model": "mlp", **settings}
    return fit(data, out=out, accelerator="cpu", devices=1, **options)


def test_methods_train_by_the_hierarchy_of_the_data(tmp_path):
    (run,) = train(tmp_path / "own", hierarchy="own").runs
    (same,) = train(tmp_path / "given", hierarchy=TREE).runs
    assert run.hierarchy() == TREE
    assert run.num_clusters == (2, 6)
    assert run.accuracy == same.accuracy
    assert all(torch.equal(a, b) for a, b in zip(*map(weights, (run, same)), strict=True))


def weights(run):
    return [weight for _, weight in sorted(run.model().state_dict().items())]


def test_what_has_been_begun_goes_on_by_it_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train("own", hierarchy=TREE)  # a run of that name
    (run,) = train("out", hierarchy="own").runs
    (again,) = train("out", hierarchy="own").runs
    assert again == run
    for given in ("./own", Path("own")):
        with pytest.raises(RunError, match=r'begun with hierarchy = "own", now it is "\./own"'):
            train("out", hierarchy=given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": "plain"}, "the data has no hierarchy of its own, as cifar100 has; give hierarch"),
        ({"metric": "random"}, "the hierarchy of the data leaves no choice of metric, so 'random'"),
        ({"linkage": "average"}, "leaves no choice of linkage, so 'average' has no effect"),
    ],
)
def test_what_cannot_be_is_refused_before_training(settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "out", hierarchy="own", **settings)
    assert not (tmp_path / "out").exists()


def test_it_needs_no_encoder_and_takes_none():
    assert Config(hierarchy="own", baseline=False, methods="hxe").why_baseline is None
    with pytest.raises(ValueError, match="encoder= has no use unless"):
        Config(hierarchy="own", encoder="my_encoder:embed")
