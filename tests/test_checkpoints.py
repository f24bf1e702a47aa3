"""Weights and the final layer of anyone's checkpoint, read without unpickling anything else."""

import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from model_zoo import FOUND, K, Parts, each_of
from safetensors.torch import save_file
from torch import nn

from coarse2fine.checkpoints import (
    read_class_vectors,
    read_lightning_checkpoint,
    read_state_dict,
)
from coarse2fine.heads import class_vectors

# What weights alone do not tell; then several layers are named. Safetensors are in no order.
UNTOLD = {"a 1×1 convolution before flattening", "a sequence with a hidden layer named like a head"}
UNTOLD_BY = {
    "pt": UNTOLD | {"timm, a layer", "timm, a sequence", "timm, one part of another"},
    "safetensors": UNTOLD | {"numbered layers with a gap between"},
}


def small():
    return nn.Sequential(nn.Linear(10, 8), nn.Linear(8, 6))


def save(model, path):
    state = {name: x.clone().contiguous() for name, x in model.state_dict().items()}
    save_file(state, path) if path.suffix == ".safetensors" else torch.save(state, path)
    return path


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
@each_of(*FOUND)
def test_the_final_layer_of_a_checkpoint_is_that_of_the_model(tmp_path, case, kind):
    model = FOUND[case][0]()
    path = save(model, tmp_path / f"model.{kind}")
    if case in UNTOLD_BY[kind]:
        with pytest.raises(ValueError, match="model.* the final layer could be any of"):
            read_class_vectors(path)
        return
    vectors, names = read_class_vectors(path)
    assert torch.equal(vectors, class_vectors(model))
    assert names is None


@pytest.mark.parametrize("head", ["a", "a.weight"])
def test_the_final_layer_can_be_named(tmp_path, head):
    model = Parts(body=nn.Linear(4, 8), a=nn.Linear(8, K), b=nn.Linear(8, 3))
    path = save(model, tmp_path / "model.safetensors")
    assert read_class_vectors(path, head)[0].equal(model.a.weight)
    with pytest.raises(ValueError, match=r"could be any of 'a', 'b', 'body'; say which"):
        read_class_vectors(path)
    with pytest.raises(ValueError, match="model.safetensors: the model has no layer 'c'"):
        read_class_vectors(path, "c")


def test_without_an_order_a_first_layer_called_like_a_head_is_not_taken_for_it(tmp_path):
    path = save(Parts(fc=nn.Linear(4, 8), answer=nn.Linear(8, K)), tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="the final layer could be any of 'answer', 'fc'"):
        read_class_vectors(path)


@pytest.mark.parametrize(
    "norm",
    [nn.utils.parametrizations.weight_norm, nn.utils.parametrizations.spectral_norm],
    ids=["weight norm", "spectral norm"],
)
def test_a_normed_layer_gives_the_directions_of_its_weight(tmp_path, norm):
    model = nn.Sequential(nn.Linear(4, 8), norm(nn.Linear(8, K))).eval()
    vectors, _ = read_class_vectors(save(model, tmp_path / "model.pt"))
    torch.testing.assert_close(
        nn.functional.normalize(vectors), nn.functional.normalize(class_vectors(model).detach())
    )


@pytest.mark.parametrize("wrap", [lambda s: s, *(lambda s, n=n: {n: s, "epoch": 1} for n in (
    "state_dict", "model", "model_state_dict"))])  # fmt: skip
def test_a_state_dict_is_found_where_training_scripts_put_it(tmp_path, wrap):
    state = small().state_dict()
    torch.save(wrap(state), tmp_path / "c.pth")
    assert list(read_state_dict(tmp_path / "c.pth")) == list(state)


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_but_tensors_is_unpickled(tmp_path):
    touched = tmp_path / "touched"
    torch.save({"fc.weight": torch.eye(2), "x": Malicious(touched)}, tmp_path / "zip.pt")
    (tmp_path / "old.bin").write_bytes(pickle.dumps(Malicious(touched), protocol=2))
    for name in ("zip.pt", "old.bin"):
        with pytest.raises(ValueError, match=rf"{name}: not readable as tensors alone; save model"):
            read_state_dict(tmp_path / name)
    assert not touched.exists()


def test_a_checkpoint_without_a_state_dict_is_refused(tmp_path):
    torch.save({"weights": {"a": torch.eye(2)}, "epoch": 2}, tmp_path / "c.pt")
    with pytest.raises(ValueError, match=r"c.pt holds no state dict, .* Got weights, epoch."):
        read_state_dict(tmp_path / "c.pt")
    torch.save([1, 2], tmp_path / "c.pt")
    with pytest.raises(ValueError, match=r"Got list."):
        read_state_dict(tmp_path / "c.pt")


def test_a_checkpoint_that_claims_more_than_it_holds_is_refused(tmp_path):
    path = save(small(), tmp_path / "c.pt")
    with zipfile.ZipFile(path) as stored:
        parts = {name: stored.read(name) for name in stored.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in parts.items():
            packed.writestr(name, bytes(1 << 20) if "/data/" in name else data)
    with pytest.raises(ValueError, match=r"c.pt: .*\(it claims to hold more than there is\)"):
        read_state_dict(path)


def test_a_checkpoint_cut_short_is_refused(tmp_path):
    path = save(small(), tmp_path / "c.pt")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="c.pt: not readable as tensors alone"):
        read_state_dict(path)


@pytest.mark.parametrize("read", [read_state_dict, read_lightning_checkpoint])
def test_of_a_torch_that_is_too_old_it_is_said_and_not_that_the_file_is_bad(
    read, tmp_path, monkeypatch
):
    torch.save({"state_dict": small().state_dict()}, tmp_path / "c.ckpt")
    assert read(tmp_path / "c.ckpt").keys() == small().state_dict().keys()
    monkeypatch.setattr(torch, "__version__", "2.6.0")
    with pytest.raises(ValueError, match=r"c.ckpt is not read, as torch 2.6.0 has known holes"):
        read(tmp_path / "c.ckpt")
