"""The training loop, against the same training written out by hand."""

from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from studies import (
    Net,
    by_hand,
    dropping,
    fresh,
    hierarchy,
    metrics,
    same_tensors,
    table_source,
    train,
    weights,
)
from torch import nn

from coarse2fine import Hierarchy, coarse_cross_entropy
from coarse2fine.data import Batches, Transform, sample
from coarse2fine.methods.base import Stage
from coarse2fine.training.state import Progress

OPTIMISERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=0.01),
    "adam": lambda p: torch.optim.Adam(p, 0.02, weight_decay=0.01, fused=True),
    "adamw": lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.01, fused=True),
}


def plain_loss(logits, batch, _):
    return F.cross_entropy(logits, batch.targets)


# ------------------------------------------------------------------- the same mathematics


@pytest.mark.parametrize("make", [Net, dropping])
@pytest.mark.parametrize("name", OPTIMISERS)
def test_plain_training_is_a_loop_by_hand_to_the_bit(name, make, tmp_path):
    data, model = sample(table_source(), seed=3), fresh(seed=3, make=make)
    wanted = by_hand(model, OPTIMISERS[name](model.parameters()), data, plain_loss, seed=3)
    options = {"optimiser": name, "weight_decay": 0.01, "seed": 3, "model": make}
    run = train(tmp_path, data=data, **options)
    assert (run.val_accuracy, run.best_epoch) == wanted[:2]
    assert same_tensors(weights(run), wanted[2])


def test_the_continuous_curriculum_is_a_loop_by_hand_to_the_bit(tmp_path):
    data, model = sample(table_source()), fresh()
    levels = [torch.from_numpy(level.copy()) for level in hierarchy().levels]

    def loss(logits, batch, epoch):
        return coarse_cross_entropy(logits, batch.targets, levels[min(epoch // 2, 2)])

    optimiser = torch.optim.Adam(model.parameters(), 0.02, fused=True)
    wanted = by_hand(model, optimiser, data, loss, epochs=8, first=4)
    run = train(tmp_path, "continuous", data=data, length=6, epochs=8)
    assert [line["level"] for line in metrics(tmp_path)] == [0, 0, 1, 1, 2, 2, 2, 2]
    assert (run.val_accuracy, run.best_epoch) == wanted[:2]
    assert same_tensors(weights(run), wanted[2])


def test_the_staged_curriculum_is_a_loop_by_hand_to_the_bit(tmp_path):
    data, encoder = sample(table_source()), {}
    for stage, level in enumerate(hierarchy().levels):
        model = fresh(int(level.max()) + 1, stage=stage)
        for name, tensor in encoder.items():
            model.state_dict()[name].copy_(tensor)
        clusters = torch.from_numpy(level.copy())
        accuracy, epoch, best = by_hand(
            model,
            torch.optim.Adam(model.parameters(), 0.02, fused=True),
            data,
            lambda logits, batch, _, owner=clusters: F.cross_entropy(logits, owner[batch.targets]),
            clusters=level.tolist(),
            stage=stage,
            epochs=5 if stage == 2 else 3,
        )
        encoder = {name: best[name] for name in best if name.startswith("encoder.")}
    run = train(tmp_path, "staged", data=data, epochs=5, stage_epochs=3)
    assert [line["stage"] for line in metrics(tmp_path)] == [0] * 3 + [1] * 3 + [2] * 5
    assert (run.val_accuracy, run.best_epoch, run.epochs) == (accuracy, epoch, 11)
    assert same_tensors(weights(run), best)


def test_a_stage_takes_the_encoder_and_begins_with_a_fresh_head(tmp_path):
    """With a rate that moves nothing, the encoder is the first stage's and the head the last's."""
    found = weights(train(tmp_path, "staged", learning_rate=1e-30, epochs=1))
    first, last = fresh(stage=0).state_dict(), fresh(stage=2).state_dict()
    assert torch.equal(found["encoder.0.weight"], first["encoder.0.weight"])
    assert torch.equal(found["head.weight"], last["head.weight"])
    assert not torch.equal(found["head.weight"], first["head.weight"])


def test_a_model_that_is_nothing_but_its_head_can_be_staged(tmp_path):
    run = train(tmp_path, "staged", model=lambda num_classes: nn.Linear(10, num_classes))
    assert weights(run)["weight"].shape == (6, 10)


def test_baseline_and_curriculum_begin_with_the_same_weights(tmp_path):
    still = {"learning_rate": 1e-30, "epochs": 3}
    plain = weights(train(tmp_path / "plain", **still))
    assert same_tensors(plain, fresh().state_dict())
    assert same_tensors(plain, weights(train(tmp_path / "other", "continuous", **still)))
    assert not same_tensors(plain, weights(train(tmp_path / "seed", seed=1, **still)))


def test_a_curriculum_without_coarse_levels_is_the_baseline_to_the_bit(tmp_path):
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([list(range(6))])
    plain = train(tmp_path / "plain")
    other = train(tmp_path / "flat", "continuous", levels=flat)
    assert same_tensors(weights(plain), weights(other))
    assert (plain.accuracy, plain.best_epoch) == (other.accuracy, other.best_epoch)


@pytest.mark.parametrize("parts", [4, 50])
def test_accumulated_parts_give_the_gradient_of_the_whole(parts, tmp_path):
    whole = train(tmp_path / "whole", optimiser="sgd")
    apart = train(tmp_path / "parts", optimiser="sgd", accumulate=parts)
    for name, tensor in weights(whole).items():
        torch.testing.assert_close(weights(apart)[name], tensor, rtol=1e-4, atol=1e-6)
    for a, b in zip(metrics(whole.path), metrics(apart.path), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-5)


def test_gradients_are_clipped_to_a_norm(tmp_path):
    """A step of plain SGD moves the weights by rate times norm at most."""
    data = sample(table_source(), val_share=0.0)
    options = {"data": data, "optimiser": "sgd", "momentum": 0.0, "epochs": 1, "batch_size": 200}
    begin = fresh().state_dict()
    moved = []
    for clip in (None, 0.01):
        found = weights(train(tmp_path / str(clip), learning_rate=0.5, clip=clip, **options))
        moved.append(torch.cat([(found[k] - begin[k]).flatten() for k in begin]).norm().item())
    assert moved[0] > 0.05
    assert moved[1] == pytest.approx(0.5 * 0.01, rel=1e-3)


def test_the_loss_of_an_epoch_is_the_mean_over_its_samples(tmp_path):
    """With a rate that moves nothing, and a last batch that is smaller."""
    data = sample(table_source())
    train(tmp_path, data=data, learning_rate=1e-30, epochs=1, batch_size=48)
    model = fresh()
    (line,) = metrics(tmp_path)
    wanted = F.cross_entropy(model(data.train.inputs), data.train.targets).item()
    assert line["loss"] == pytest.approx(wanted, rel=1e-6)
    wanted = F.cross_entropy(model(data.val.inputs), data.val.targets).item()
    assert line["val_loss"] == pytest.approx(wanted, rel=1e-6)


def test_the_learning_rate_falls_at_its_milestones(tmp_path):
    options = {"optimiser": "sgd", "epochs": 7, "milestones": (3 / 7, 5 / 7)}
    run = train(tmp_path / "steps", val_share=0.0, **options)
    rates = [line["learning_rate"] for line in metrics(run.path)]
    assert rates == pytest.approx([0.02] * 3 + [0.002] * 2 + [0.0002] * 2)
    data, model = sample(table_source(), val_share=0.0), fresh()
    optimiser = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    for epoch in range(7):
        optimiser.param_groups[0]["lr"] = rates[epoch]
        for batch in Batches(data.train, Transform(), 32).shuffled((0, 0, epoch)):
            optimiser.zero_grad()
            F.cross_entropy(model(batch.inputs), batch.targets).backward()
            optimiser.step()
    assert same_tensors(weights(run), model.state_dict())


# --------------------------------------------------------------- the best epoch, the last


def test_without_validation_the_last_epoch_is_kept(tmp_path):
    run = train(tmp_path, val_share=0.0)
    assert (run.best_epoch, run.epochs, run.val_accuracy) == (4, 4, None)
    assert run.levelled_off
    lines = metrics(tmp_path)
    assert {lines[-1][name] for name in ("val_loss", "accuracy", "level_accuracy")} == {None}


@pytest.mark.parametrize("method", ["plain", "continuous"])
@pytest.mark.parametrize("patience", [1, 2])
def test_training_stops_when_the_finest_level_has_not_improved_for_long(method, patience, tmp_path):
    run = train(tmp_path, method, length=9, epochs=30, patience=patience, learning_rate=0.05)
    finest = [line["epoch"] for line in metrics(tmp_path) if line["level"] in (None, 2)]
    accuracies = [line["accuracy"] for line in metrics(tmp_path)]
    assert finest[0] == (7 if method == "continuous" else 1)
    best = max(finest, key=lambda epoch: (accuracies[epoch - 1], -epoch))
    assert (run.best_epoch, run.epochs) == (best, best + patience)
    assert run.epochs < 30
    assert run.val_accuracy == accuracies[best - 1]
    rises = [e for e in finest if accuracies[e - 1] > max([-1, *accuracies[finest[0] - 1 : e - 1]])]
    assert all(b - a <= patience for a, b in pairwise([*rises, best]))


@pytest.mark.parametrize(
    ("epoch", "best", "counts_from", "over"),
    [
        (3, 1, 0, False),
        (4, 1, 0, True),
        (3, 0, 0, True),
        (6, 0, 4, False),
        (7, 0, 4, True),
        (8, 6, 4, False),
        (9, 6, 4, True),
        (10, 9, 0, True),
    ],
)
def test_patience_counts_from_the_best_epoch_or_the_first_that_may_be(
    epoch, best, counts_from, over
):
    progress = Progress(epoch=epoch, best_epoch=best)
    assert progress.is_over(Stage(6, epochs=10, patience=3, counts_from=counts_from)) == over


def test_without_patience_training_takes_all_its_epochs():
    assert not Progress(epoch=99, best_epoch=1).is_over(Stage(6, epochs=100, patience=0))


def test_staged_training_stops_each_stage_by_its_own_level(tmp_path):
    train(tmp_path, "staged", epochs=30, patience=2, learning_rate=0.05)
    lines = metrics(tmp_path)
    for stage in range(3):
        found = [line["level_accuracy"] for line in lines if line["stage"] == stage]
        assert len(found) - 1 - found.index(max(found)) == 2
    assert {line["accuracy"] is None for line in lines if line["stage"] < 2} == {True}
