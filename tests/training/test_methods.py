"""Training by the comparison methods, against the same training written out by hand."""

from math import log
from typing import ClassVar

import pytest
import torch
import torch.nn.functional as F
from scipy.cluster.hierarchy import to_tree, ward
from studies import (
    ConvNet,
    by_hand,
    class_vectors,
    dropping,
    fresh,
    hierarchy,
    image_data,
    method_state,
    metrics,
    same_tensors,
    settings,
    table_source,
    train,
    weights,
)
from torch import nn

from coarse2fine import coarse_cross_entropy
from coarse2fine.checkpoints import load_tensors
from coarse2fine.data import Batches, Transform, sample
from coarse2fine.methods import METHODS
from coarse2fine.methods.plain import Plain
from coarse2fine.training.job import transform_for


def adam(model):
    return torch.optim.Adam(model.parameters(), 0.02, fused=True)


def assert_close(found, wanted):
    assert found.keys() == wanted.keys()
    for name in found:
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-3, atol=1e-5)


# ----------------------------------------------------------------------------- self-paced


def losses_of(model, batches):
    """The loss of each sample by a model in evaluation mode."""
    model.eval()
    return torch.cat(
        [
            F.cross_entropy(model(batch.inputs), batch.targets, reduction="none")
            for batch in batches.in_order()
        ]
    ).detach()


def test_self_paced_training_is_a_loop_by_hand_to_the_bit(tmp_path):
    """With dropout, of which the losses that choose the samples must know nothing."""
    data, model = sample(table_source()), fresh(make=dropping)
    counts, thresholds, chosen = torch.ones(160), [], []

    def begin(epoch):
        if epoch == 0:
            return
        losses = losses_of(model, Batches(data.train, Transform(), 32))
        thresholds.append(thresholds[-1] * 1.5 if thresholds else losses.sort().values[80].item())
        counts.copy_(losses < torch.tensor(thresholds[-1]))
        chosen.append(int(counts.sum()))

    def loss(logits, batch, _):
        if counts.all():
            return F.cross_entropy(logits, batch.targets)
        losses = F.cross_entropy(logits, batch.targets, reduction="none")
        return (losses * counts[batch.rows]).mean()

    wanted = by_hand(model, adam(model), data, loss, epochs=5, begin=begin)
    assert chosen[0] == 80
    assert 80 < chosen[1] < 160
    assert chosen[-1] == 160
    options = {"model": dropping, "epochs": 5, "method_settings": {"spl.growth": 1.5}}
    run = train(tmp_path, "spl", data=data, **options)
    assert (run.val_accuracy, run.best_epoch) == wanted[:2]
    assert same_tensors(weights(run), wanted[2])
    completed = thresholds[chosen.index(160)]
    assert method_state(run)["threshold"].item() == pytest.approx(completed, rel=1e-6)


class Looking(Plain):
    """Plain training that looks at the losses of all samples before every epoch."""

    seen: ClassVar[list] = []

    def begin_epoch(self, stage, epoch, sample_losses):  # noqa: ARG002
        self.seen.append(sample_losses())


class Dropping(ConvNet):
    def forward(self, images):
        return F.dropout(super().forward(images), 0.3, self.training)


def test_a_look_at_the_losses_is_without_augmentation_and_changes_nothing(tmp_path):
    """Neither running statistics nor the random numbers of dropout and augmentation."""
    options = {"data": image_data(), "model": Dropping, "augment": True, "normalise": True}
    plain = train(tmp_path / "plain", **options)
    Looking.seen.clear()
    looking = train(tmp_path / "looking", "test_methods:Looking", **options)
    assert same_tensors(weights(looking), weights(plain))
    assert metrics(looking.path) == metrics(plain.path)
    transform = transform_for(options["data"], settings(augment=True, normalise=True))
    assert transform.is_random
    wanted = losses_of(fresh(make=Dropping), Batches(options["data"].train, transform, 32))
    assert len(Looking.seen) == 4
    torch.testing.assert_close(Looking.seen[0], wanted)
    assert Looking.seen[3].mean() != Looking.seen[0].mean()


# ------------------------------------------------------------------------ data parameters


class Together:
    """Optimisers that take their steps together; log-temperatures are kept within bounds."""

    def __init__(self, bounded, *optimisers):
        self.bounded, self.optimisers = bounded, optimisers

    def zero_grad(self):
        for optimiser in self.optimisers:
            optimiser.zero_grad()

    def step(self):
        for optimiser in self.optimisers:
            optimiser.step()
        with torch.no_grad():
            for values in self.bounded:
                values.clamp_(-log(20), log(20))


@pytest.mark.parametrize(
    ("method", "batch_size"),
    [("dp-l", 80), ("dp-li", 160)],  # so that all classes, or all samples, are in every batch
)
def test_data_parameters_are_a_loop_by_hand(method, batch_size, tmp_path):
    data, model = sample(table_source(200), val_share=0.2), fresh()
    classes = nn.Parameter(torch.full((6,), log(1.5)))
    samples = nn.Parameter(torch.full((160,), log(0.5)))
    rates = [{"params": [classes], "lr": 0.1}, {"params": [samples], "lr": 30.0}]

    def loss(logits, batch, _):
        temperature = classes[batch.targets].exp()
        decay = 1e-3 / 2 * (classes[batch.targets] ** 2).sum()
        if method == "dp-li":
            temperature = temperature + samples[batch.rows].exp()
            decay = decay + 1e-3 / 2 * (samples[batch.rows] ** 2).sum()
        return F.cross_entropy(logits / temperature[:, None], batch.targets) + decay

    both = Together([classes, samples], adam(model), torch.optim.SGD(rates, momentum=0.9))
    accuracy, epoch, best = by_hand(model, both, data, loss, epochs=6, batch_size=batch_size)
    given = {f"{method}.class_init": 1.5, f"{method}.class_weight_decay": 1e-3}
    if method == "dp-li":
        given |= {"dp-li.instance_init": 0.5, "dp-li.instance_learning_rate": 30.0}
        given |= {"dp-li.instance_weight_decay": 1e-3}
    options = {"epochs": 6, "batch_size": batch_size, "method_settings": given}
    run = train(tmp_path, method, data=data, **options)
    found = method_state(run)
    assert (run.val_accuracy, run.best_epoch) == (accuracy, epoch)
    assert_close(weights(run), best)
    torch.testing.assert_close(found["classes.values"], classes.detach(), rtol=1e-3, atol=1e-5)
    assert classes.std() > 0.01
    if method == "dp-li":
        values = found["instances.values"]
        torch.testing.assert_close(values, samples.detach(), rtol=1e-3, atol=1e-4)
        assert values.std() > 0.05


# ----------------------------------------------------------------------- multitask, NBDT


def test_multitask_training_is_a_loop_by_hand(tmp_path):
    data, model = sample(table_source()), fresh()
    levels = [torch.from_numpy(level.copy()) for level in hierarchy().levels]

    def loss(logits, batch, _):
        return sum(coarse_cross_entropy(logits, batch.targets, level) for level in levels) / 3

    wanted = by_hand(model, adam(model), data, loss)
    run = train(tmp_path, "multitask", data=data)
    assert (run.val_accuracy, run.best_epoch) == wanted[:2]
    assert run.num_clusters == (2, 4, 6)
    assert_close(weights(run), wanted[2])


def log_chance(node, target, logits):
    """The log-probability of a class below a node of scipy's tree, fork by fork."""
    if node.is_leaf():
        return torch.zeros(())
    children = (node.left, node.right)
    means = torch.stack([logits[child.pre_order()].mean() for child in children])
    side = int(target in node.right.pre_order())
    return means.log_softmax(0)[side] + log_chance(children[side], target, logits)


def test_training_by_a_decision_tree_is_a_loop_by_hand(tmp_path):
    data, model = sample(table_source(), val_share=0.0), fresh()
    root = to_tree(ward(class_vectors().astype(float)))

    def loss(logits, batch, _):
        pairs = zip(batch.targets.tolist(), logits, strict=True)
        paths = torch.stack([log_chance(root, target, row) for target, row in pairs])
        return F.cross_entropy(logits, batch.targets) - 3 * paths.mean()

    by_hand(model, adam(model), data, loss, epochs=2)
    options = {"epochs": 2, "val_share": 0.0, "method_settings": {"nbdt.weight": 3}}
    run = train(tmp_path, "nbdt", data=data, **options)
    assert_close(weights(run), model.state_dict())
    logits = model(data.test.inputs).detach()
    chances = [[log_chance(root, k, row) for k in range(6)] for row in logits]
    assert run.predictions("test")[0].tolist() == torch.tensor(chances).argmax(1).tolist()


def test_predictions_are_stored_by_every_rule_and_the_best_epoch_is_that_of_the_soft(tmp_path):
    run = train(tmp_path, "nbdt", epochs=6)
    stored = load_tensors(tmp_path / "predictions.safetensors")

    def accuracy(part, rule):
        hits = stored[f"{part}.predictions.{rule}"] == stored[f"{part}.targets"]
        return pytest.approx(hits.double().mean().item())

    for part in ("val", "test"):
        soft, hard = (stored[f"{part}.predictions.{rule}"] for rule in ("soft", "hard"))
        assert soft.tolist() == run.predictions(part)[0].tolist()
        assert not torch.equal(soft, hard)
    assert run.by_rule == {"soft": accuracy("test", "soft"), "hard": accuracy("test", "hard")}
    assert run.accuracy == accuracy("test", "soft")
    lines = [line["accuracy"] for line in metrics(tmp_path)]
    assert (run.val_accuracy, run.best_epoch) == (max(lines), lines.index(max(lines)) + 1)
    assert run.val_accuracy == accuracy("val", "soft")


# ------------------------------------------------------------------------------- all alike


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_in_parts_trains_as_the_whole_does(method, tmp_path):
    given = {"dp-li.instance_init": 0.5, "dp-li.instance_learning_rate": 30.0}
    options = {"optimiser": "sgd", "method_settings": given}
    whole = train(tmp_path / "whole", method, **options)
    apart = train(tmp_path / "parts", method, accumulate=3, **options)
    assert_close(weights(apart), weights(whole))
    assert_close(method_state(apart), method_state(whole))
    for a, b in zip(metrics(whole.path), metrics(apart.path), strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-4)
