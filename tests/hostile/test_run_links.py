"""Links in a run directory lead nothing that is written or removed out of it."""

import os

import pytest
import torch

from coarse2fine import RunError, fit
from coarse2fine.runs.guards import locked
from coarse2fine.runs.writer import RunWriter

INPUTS = torch.randn(40, 5, generator=torch.Generator().manual_seed(0))
DATA = (INPUTS, (INPUTS[:, 0] > 0).long())


@pytest.fixture
def mine(tmp_path):
    """What a stranger would like to have written over or removed."""
    (tmp_path / "mine" / ".private").mkdir(parents=True)
    (tmp_path / "mine" / "000001").mkdir()
    for name in ("notes", ".private/key", "000001/kept"):
        (tmp_path / "mine" / name).write_text("mine")
    return tmp_path / "mine"


def held(folder):
    return {
        str(path.relative_to(folder)): path.read_text() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("link", "to"),
    [
        (".lock", "notes"),
        ("seed-0", ""),
        ("seed-0/baseline", ""),
        ("seed-0/baseline/.lock", "notes"),
        ("seed-0/baseline/metrics.jsonl", "notes"),
        ("seed-0/baseline/metrics.jsonl", "made by writing to it"),
        ("seed-0/baseline/checkpoint", ""),
        ("seed-0/baseline/tensorboard", ""),
    ],
)
def test_training_in_a_folder_with_links_is_refused_and_touches_nothing(link, to, mine, tmp_path):
    before = held(mine)
    place = tmp_path / "run" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(mine / to)
    with pytest.raises(RunError, match=r"is a link or a device, so what is written would end up"):
        fit(DATA, DATA, epochs=1, methods=(), out=tmp_path / "run")
    assert held(mine) == before


def test_a_finished_run_with_a_linked_checkpoint_is_not_tidied(mine, tmp_path):
    before = held(mine)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(mine)
    with pytest.raises(RunError, match=r"run/checkpoint is a link"):
        RunWriter(tmp_path / "run").tidy()
    assert held(mine) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "metrics.jsonl")
    with pytest.raises(RunError, match=r"metrics.jsonl is a link or a device"), locked(tmp_path):
        pass


def test_a_run_directory_may_itself_be_reached_by_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    with locked(tmp_path / "runs"):
        RunWriter(tmp_path / "runs" / "seed-0" / "baseline").log({"epoch": 1})
    assert (tmp_path / "disk" / "seed-0" / "baseline" / "metrics.jsonl").is_file()
