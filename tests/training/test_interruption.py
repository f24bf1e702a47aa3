"""A training that is interrupted and taken up again ends with the same numbers, to the bit."""

from dataclasses import replace

import pytest
import torch
from studies import (
    ConvNet,
    Interrupting,
    InterruptionError,
    Net,
    SmallNet,
    dropping,
    image_data,
    method_state,
    metrics,
    outcome,
    same_tensors,
    train,
    weights,
)
from torch import nn

from coarse2fine import RunError
from coarse2fine._util.seeds import seed_of
from coarse2fine.runs.checkpoint import load_checkpoint, save_checkpoint
from coarse2fine.training.progress import Watcher


def interrupted(path, stops, **options):
    """Train, interrupted in each of the given epochs in turn, and then to the end."""
    for epoch in stops:
        with pytest.raises(InterruptionError):
            train(path, watcher=Interrupting(epoch), **options)
    return train(path, **options)


def assert_same(run, undisturbed):
    assert outcome(run) == outcome(undisturbed)
    assert metrics(run.path) == metrics(undisturbed.path)
    assert same_tensors(weights(run), weights(undisturbed))
    assert same_tensors(method_state(run), method_state(undisturbed))
    for part in ("val", "test"):
        for a, b in zip(run.predictions(part), undisturbed.predictions(part), strict=True):
            assert a.tolist() == b.tolist()


@pytest.mark.parametrize(
    ("method", "epochs"),
    [
        ("plain", 4),
        ("continuous", 5),  # levels 0 1 2 2 2
        ("staged", 6),  # stages 0 0 1 1 2 2
        ("spl", 6),  # all, half of the samples, ever more, all
        ("dp-l", 4),
        ("dp-li", 4),
        ("multitask", 4),
        ("nbdt", 4),
        ("hxe", 4),
        ("soft-labels", 4),
        ("hace", 4),
    ],
)
def test_a_run_interrupted_in_every_epoch_ends_as_if_it_had_not_been(method, epochs, tmp_path):
    options = {"method": method, "model": dropping, "epochs": 2 if method == "staged" else epochs}
    options["method_settings"] = {"spl.growth": 2.5}
    undisturbed = train(tmp_path / "undisturbed", **options)
    assert undisturbed.epochs == epochs
    often = interrupted(tmp_path / "often", range(1, epochs + 1), checkpoint_seconds=0.0, **options)
    assert_same(often, undisturbed)
    if method == "spl":
        assert method_state(often)["is_complete"]


@pytest.fixture(scope="module")
def staged(tmp_path_factory):
    return train(tmp_path_factory.mktemp("staged"), "staged", epochs=2)


@pytest.mark.parametrize(("epoch", "kept"), [(2, 0), (3, 2), (4, 2), (6, 4)])
def test_a_stage_begins_again_from_the_checkpoint_before_it(epoch, kept, staged, tmp_path):
    with pytest.raises(InterruptionError):
        train(tmp_path, "staged", epochs=2, watcher=Interrupting(epoch))
    stored = [path.name for path in tmp_path.glob("checkpoint/0*")]
    assert max(map(int, stored), default=0) == kept
    assert_same(train(tmp_path, "staged", epochs=2), staged)


@pytest.mark.parametrize(
    "changes",
    [
        {"optimiser": "sgd", "milestones": (0.5,)},
        {"optimiser": "sgd", "momentum": 0.0},
        {"optimiser": "adamw", "weight_decay": 0.1, "clip": 0.5, "accumulate": 3},
        {"val_share": 0.0},
        {"patience": 1, "learning_rate": 0.1, "epochs": 20},
        {"precision": "bf16-mixed"},
        {"precision": "bf16-true"},
        {"precision": "64-true"},
    ],
    ids=str,
)
def test_every_optimiser_and_setting_resumes(changes, tmp_path):
    undisturbed = train(tmp_path / "undisturbed", **changes)
    cut = interrupted(tmp_path / "cut", (1, 3), checkpoint_seconds=0.0, **changes)
    assert outcome(cut) == outcome(undisturbed)
    assert metrics(cut.path) == metrics(undisturbed.path)
    assert same_tensors(weights(cut), weights(undisturbed))


def test_images_with_running_statistics_and_augmentation_resume(tmp_path):
    options = {"method": "staged", "data": image_data(), "model": ConvNet, "augment": True}
    options |= {"normalise": True, "epochs": 2}
    undisturbed = train(tmp_path / "undisturbed", **options)
    cut = interrupted(tmp_path / "cut", (2, 3, 6), checkpoint_seconds=0.0, **options)
    assert_same(cut, undisturbed)
    last = metrics(cut.path)[4:]
    assert cut.val_accuracy == last[cut.best_epoch - 1]["accuracy"]


def frozen(num_classes):
    model = Net(num_classes)
    model.encoder.requires_grad_(False)
    return model


def tied(num_classes):
    """Two layers with the same weights."""
    model = Net(num_classes)
    first, second = nn.Linear(10, 10), nn.Linear(10, 10)
    second.weight = first.weight
    model.encoder = nn.Sequential(first, nn.ReLU(), second, *model.encoder)
    return model


def unused(num_classes):
    """A layer that takes no part, so that it never has a gradient."""
    model = Net(num_classes)
    model.spare = nn.Linear(3, 3)
    return model


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
@pytest.mark.parametrize("make", [frozen, tied, unused])
def test_models_with_unusual_weights_resume(make, optimiser, tmp_path):
    options = {"model": make, "optimiser": optimiser}
    undisturbed = train(tmp_path / "undisturbed", **options)
    assert_same(
        interrupted(tmp_path / "cut", (2, 4), checkpoint_seconds=0.0, **options), undisturbed
    )


def test_frozen_weights_stay_as_they_were(tmp_path):
    found = weights(train(tmp_path, model=frozen))
    torch.manual_seed(seed_of("weights", 0))
    begin = Net(6).state_dict()
    assert torch.equal(found["encoder.0.weight"], begin["encoder.0.weight"])
    assert not torch.equal(found["head.weight"], begin["head.weight"])


def test_a_finished_run_is_read_and_not_trained_again(tmp_path):
    first = train(tmp_path)
    told = []
    watcher = Watcher()
    watcher.begin = watcher.epoch = lambda *given: told.append(given)
    watcher.end = lambda result: told.append(result)
    assert train(tmp_path, watcher=watcher) == first
    assert told == [first]


# ------------------------------------------------------- checkpoints of something else


def test_the_checkpoint_of_a_model_that_has_changed_since_is_told(tmp_path):
    with pytest.raises(InterruptionError):
        train(tmp_path, watcher=Interrupting(3), checkpoint_seconds=0.0)
    message = r"^the checkpoint in .* is not one of this training \(.*state_dict.*\); remove "
    with pytest.raises(RunError, match=message):
        train(tmp_path, model=SmallNet)


@pytest.mark.parametrize(
    "change", [{"progress": {"stage": 9}}, {"progress": {"age": 1}}, {"progress": 1}, {"groups": 0}]
)
def test_a_checkpoint_of_anything_else_is_told(change, tmp_path):
    with pytest.raises(InterruptionError):
        train(tmp_path, watcher=Interrupting(3), checkpoint_seconds=0.0)
    folder = tmp_path / "checkpoint"
    found = load_checkpoint(folder)
    save_checkpoint(folder, replace(found, state={**found.state, **change}))
    with pytest.raises(RunError, match="is not one of this training"):
        train(tmp_path)
