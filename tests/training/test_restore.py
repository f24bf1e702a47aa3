"""The model of a finished run, and the final layer of anyone's checkpoint."""

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
import torch
from model_zoo import FOUND, K, Parts, each_of
from safetensors.torch import save_file
from studies import NAMES, Net, SmallNet, table, train, weights
from torch import nn

from coarse2fine import RunError
from coarse2fine.heads import class_vectors
from coarse2fine.training.restore import (
    find_run,
    load_trained,
    read_class_vectors,
    read_state_dict,
)

# ----------------------------------------------------------------------------------- runs


def test_a_finished_run_gives_its_model_and_what_it_needs(tmp_path):
    run = train(tmp_path / "run", normalise=True)
    trained = load_trained(run.path)
    assert trained.class_names == NAMES
    assert (trained.kind, trained.input_shape, trained.columns) == ("table", (10,), ())
    assert trained.config.seeds == (run.seed,)
    assert not trained.model.training
    assert weights(run)["head.bias"].equal(trained.model.state_dict()["head.bias"])


def test_its_logits_are_those_of_the_training(tmp_path):
    run = train(tmp_path / "run", normalise=True)
    predictions, _ = run.predictions("test")
    logits = load_trained(run.path).logits(table(60, seed=1), batch_size=7)
    assert logits.shape == (60, 6)
    assert logits.argmax(1).tolist() == predictions.tolist()
    assert load_trained(run.path).logits(table(0)).shape == (0, 6)


def test_a_model_that_cannot_be_made_again_is_a_run_error(tmp_path):
    run = train(tmp_path / "run")
    with pytest.raises(RunError, match=r"cannot be made again .*studies has no Gone.* load the w"):
        load_trained(run.path, "studies:Gone")
    with pytest.raises(RunError, match=r"(?s)cannot be made again .*Missing key"):
        load_trained(run.path, SmallNet)


@pytest.mark.parametrize("content", ["{}", "[", '{"config": {"color": 1}, "data": {}}'])
def test_a_damaged_config_is_a_run_error(tmp_path, content):
    run = train(tmp_path / "run")
    (run.path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config.json cannot be used"):
        load_trained(run.path)


def test_a_run_that_is_not_done_is_a_run_error(tmp_path):
    with pytest.raises(RunError, match="it is not a run, or not done"):
        load_trained(tmp_path)


@pytest.mark.parametrize("name", ["mlp", "coarse2fine.models.table:TableMLP"])
def test_a_model_of_ours_that_no_memory_holds_is_not_made(tmp_path, name):
    run = train(tmp_path / "run")
    content = json.loads((run.path / "config.json").read_text())
    content["config"]["model"], content["data"]["input_shape"] = name, [10**11]
    (run.path / "config.json").write_text(json.dumps(content))
    result = json.loads((run.path / "result.json").read_text())
    (run.path / "result.json").write_text(json.dumps({"result": result["result"]}))
    with pytest.raises(RunError, match=r"the weights are those of another model"):
        load_trained(run.path)


def test_a_run_says_not_how_many_processes_are_started(tmp_path, monkeypatch):
    run = train(tmp_path / "run")
    content = json.loads((run.path / "config.json").read_text())
    content["config"]["workers"] = 10**6
    (run.path / "config.json").write_text(json.dumps(content))
    asked = []

    def batches(*_, workers, **__):
        asked.append(workers)
        raise InterruptedError

    monkeypatch.setattr("coarse2fine.training.restore.Batches", batches)
    with pytest.raises(InterruptedError):
        load_trained(run.path).logits(table(10))
    assert asked == [os.cpu_count()]


@pytest.fixture
def comparison(tmp_path):
    for run in ("seed-10/staged", "seed-2/baseline", "seed-2/continuous", "seed-2/hierarchy-cnn"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.json").write_text("{}")
    (tmp_path / "seed-2" / "search").mkdir()
    (tmp_path / "seed-old-1").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({}, "seed-2/continuous"),
        ({"method": "baseline"}, "seed-2/baseline"),
        ({"seed": 10}, "seed-10/staged"),
        ({"seed": 2, "method": "hierarchy-cnn"}, "seed-2/hierarchy-cnn"),
    ],
)
def test_of_a_comparison_one_run_is_chosen(comparison, choice, found):
    assert find_run(comparison, **choice) == comparison / found


def test_a_run_is_itself(comparison):
    run = comparison / "seed-2" / "baseline"
    assert find_run(run) == run
    with pytest.raises(RunError, match="is not a comparison, so there is no method or seed"):
        find_run(run, method="staged")


def test_what_a_comparison_does_not_have_is_refused(comparison):
    with pytest.raises(RunError, match="has no seed 3, but 2, 10."):
        find_run(comparison, seed=3)
    with pytest.raises(RunError, match="has no method x, but baseline, continuous, hierarchy-cnn."):
        find_run(comparison, method="x")
    with pytest.raises(RunError, match="there is no run"):
        find_run(comparison / "nothing")
    (comparison / "seed-1").mkdir()
    with pytest.raises(RunError, match="seed-1 holds no run yet"):
        find_run(comparison)


# ---------------------------------------------------------------------------- checkpoints

# What weights alone do not tell; then several layers are named. Safetensors are in no order.
UNTOLD = {"a 1×1 convolution before flattening", "a sequence with a hidden layer named like a head"}
UNTOLD_BY = {
    "pt": UNTOLD | {"timm, a layer", "timm, a sequence", "timm, one part of another"},
    "safetensors": UNTOLD | {"numbered layers with a gap between"},
}


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
    state = Net(6).state_dict()
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
    path = save(Net(6), tmp_path / "c.pt")
    with zipfile.ZipFile(path) as stored:
        parts = {name: stored.read(name) for name in stored.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in parts.items():
            packed.writestr(name, bytes(1 << 20) if "/data/" in name else data)
    with pytest.raises(ValueError, match=r"c.pt: .*\(it claims to hold more than there is\)"):
        read_state_dict(path)


def test_a_checkpoint_cut_short_is_refused(tmp_path):
    path = save(Net(6), tmp_path / "c.pt")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(ValueError, match="c.pt: not readable as tensors alone"):
        read_state_dict(path)
