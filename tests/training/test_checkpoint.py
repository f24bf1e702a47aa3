"""Checkpoints: what comes back, and what happens where one is damaged."""

import shutil

import pytest
import torch
from studies import same_tensors

from coarse2fine import RunError
from coarse2fine.checkpoints import load_tensors
from coarse2fine.runs import checkpoint as module
from coarse2fine.runs.checkpoint import (
    Checkpoint,
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
    save_tensors,
)


def numbered(number):
    """A checkpoint that differs from others by its number."""
    weights = torch.full((4, 3), float(number))
    tensors = {
        "model": {"head.weight": weights, "steps": torch.tensor(number)},
        "best": {},
        "optimiser": {"head.weight/exp_avg": -weights},
    }
    return Checkpoint(number, {"progress": {"epoch": number, "best": 0.1 + 0.2}}, tensors)


@pytest.fixture
def folder(tmp_path):
    """A folder with the checkpoints 3 and 7."""
    for number in (3, 7):
        save_checkpoint(tmp_path / "checkpoint", numbered(number))
    return tmp_path / "checkpoint"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def assert_is(found, number):
    wanted = numbered(number)
    assert (found.number, found.state) == (number, wanted.state)
    assert found.tensors.keys() == wanted.tensors.keys()
    for group, tensors in wanted.tensors.items():
        assert same_tensors(found.tensors[group], tensors)


def flip_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-7])


def empty(path):
    path.write_bytes(b"")


def change_state(path):
    path.write_text(path.read_text().replace('"epoch": 7', '"epoch": 8'))


# ------------------------------------------------------------------------- what comes back


def test_the_newest_checkpoint_comes_back_as_it_was(folder):
    assert_is(load_checkpoint(folder), 7)


def test_there_is_none_at_first(tmp_path):
    assert load_checkpoint(tmp_path / "checkpoint") is None
    (tmp_path / "checkpoint").mkdir()
    assert load_checkpoint(tmp_path / "checkpoint") is None


def test_only_the_newest_and_the_one_before_are_kept(folder):
    assert names(folder) == ["000003", "000007"]
    save_checkpoint(folder, numbered(12))
    assert names(folder) == ["000007", "000012"]


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(3, 3).to(torch.bfloat16),
        torch.randn(5, 4).t(),
        torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last),
        torch.tensor([True, False]),
        torch.tensor(5),
        torch.zeros(0, 3),
    ],
    ids=["bfloat16", "transposed", "channels-last", "bool", "scalar", "empty"],
)
def test_tensors_of_every_kind_come_back(tensor, tmp_path):
    save_tensors(tmp_path / "x.safetensors", {"a": tensor, "b": tensor})
    found = load_tensors(tmp_path / "x.safetensors")
    assert same_tensors(found, {"a": tensor, "b": tensor})
    assert found["a"].dtype == tensor.dtype


# --------------------------------------------------------------------------------- damage


@pytest.mark.parametrize(
    "damage", [flip_bit, cut_short, empty, type(None)], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("file", ["model.safetensors", "optimiser.safetensors", "state.json"])
def test_a_damaged_newest_is_named_and_the_one_before_it_used(folder, file, damage):
    path = folder / "000007" / file
    path.unlink() if damage is type(None) else damage(path)
    with pytest.warns(
        UserWarning, match=f"newest checkpoint is damaged: .*000007.*{folder}/000003"
    ):
        assert_is(load_checkpoint(folder), 3)


def test_a_changed_state_is_damage_even_where_it_can_be_read(folder):
    change_state(folder / "000007" / "state.json")
    with pytest.warns(UserWarning, match="state.json has changed since it was written"):
        assert_is(load_checkpoint(folder), 3)


def test_where_all_are_damaged_it_says_what_to_do(folder):
    flip_bit(folder / "000007" / "model.safetensors")
    (folder / "000003" / "state.json").unlink()
    with pytest.raises(RunError, match=f"000007.*model.safetensors.*000003.*Remove {folder} to"):
        load_checkpoint(folder)


def test_training_on_after_damage_leaves_two_good_ones(folder):
    flip_bit(folder / "000007" / "model.safetensors")
    with pytest.warns(UserWarning, match="damaged"):
        load_checkpoint(folder)
    save_checkpoint(folder, numbered(5))
    assert names(folder) == ["000003", "000005"]
    assert_is(load_checkpoint(folder), 5)
    save_checkpoint(folder, numbered(7))
    assert names(folder) == ["000005", "000007"]


def test_a_damaged_one_is_replaced_by_its_successor_of_the_same_number(folder):
    flip_bit(folder / "000007" / "model.safetensors")
    save_checkpoint(folder, numbered(7))
    assert_is(load_checkpoint(folder), 7)
    assert names(folder) == ["000003", "000007"]


# ------------------------------------------------------------------------ killed in between


class KilledError(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize("step", range(13))
def test_a_kill_at_any_step_of_a_write_leaves_one_to_go_on_from(folder, step, monkeypatch):
    """The steps are all that changes the disk: files, syncs, renaming, removing."""
    done = 0

    def counted(function):
        def count(*args, **options):
            nonlocal done
            if done == step:
                raise KilledError
            done += 1
            return function(*args, **options)

        return count

    for owner, name in (
        (module, "save_file"),
        (module, "_sync"),
        (module.shutil, "rmtree"),
        (module.Path, "write_text"),
        (module.Path, "rename"),
    ):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))
    try:
        save_checkpoint(folder, numbered(12))
        assert step >= done
    except KilledError:
        pass
    monkeypatch.undo()
    found = load_checkpoint(folder)
    assert found.number in (7, 12)
    assert_is(found, found.number)
    save_checkpoint(folder, numbered(13))
    assert names(folder) == [f"{found.number:06d}", "000013"]


def test_what_a_kill_left_is_no_checkpoint_and_goes_with_the_next(folder):
    shutil.copytree(folder / "000007", folder / ".000009")
    assert_is(load_checkpoint(folder), 7)
    save_checkpoint(folder, numbered(9))
    assert names(folder) == ["000007", "000009"]


def test_when_the_run_is_done_all_are_removed_but_the_model(folder):
    (folder / "model.safetensors").touch()
    (folder / ".000009").mkdir()
    remove_checkpoints(folder)
    assert names(folder) == ["model.safetensors"]


def test_a_file_that_is_no_safetensors_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"PK\x03\x04 something else")
    with pytest.raises(ValueError, match="x.safetensors: not readable as safetensors"):
        load_tensors(tmp_path / "x.safetensors")


def test_weights_are_as_readable_as_any_new_file(tmp_path):
    path, other = tmp_path / "weights.safetensors", tmp_path / "other"
    save_tensors(path, {"a": torch.ones(2)})
    other.touch()
    assert path.stat().st_mode == other.stat().st_mode
