"""Data parameters: temperatures of classes and of samples, and how they are learned."""

import math
from copy import deepcopy
from math import log

import pytest
import torch
import torch.nn.functional as F
from batches import alone, batch_of
from torch import nn

from coarse2fine.data import Batches, Split, Transform
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.data_parameters import ClassParameters, InstanceParameters

KINDS = [ClassParameters, InstanceParameters]
TARGETS = torch.tensor([2, 0, 1, 2, 0, 2, 1])
# Large enough for every term to be seen; the default weight decays are lost in rounding.
STRONG = {"class_init": 2.0, "class_learning_rate": 0.5, "class_weight_decay": 0.03}
STRONG_INSTANCES = {
    **STRONG,
    "instance_init": 0.5,
    "instance_learning_rate": 4.0,
    "instance_weight_decay": 0.02,
}


def make(kind, *, num_classes=3, num_samples=7, **settings):
    return kind(Plan(num_classes, 20, 5, num_samples=num_samples), **settings)


def strong(kind):
    return make(kind, **(STRONG if kind is ClassParameters else STRONG_INSTANCES))


def learn(method, logits, batch):
    loss = method(logits, batch)
    method.end_batch(alone)
    return loss


def assert_same_state(method, other, **tolerance):
    found, wanted = method.state_dict(), other.state_dict()
    assert found.keys() == wanted.keys()
    for name in found:
        torch.testing.assert_close(found[name], wanted[name], **tolerance)


# ---------------------------------------------------------------------------- at the start


def test_there_is_one_stage_on_the_classes_that_takes_all_epochs():
    assert make(ClassParameters).stages == (Stage(3, 20, 5, counts_from=0),)


def test_temperatures_begin_at_one_and_a_thousandth():
    method = make(InstanceParameters)
    assert method.classes.values.tolist() == [0.0] * 3
    assert method.instances.values.tolist() == pytest.approx([log(0.001)] * 7)


def test_with_temperatures_of_one_the_loss_is_plain_cross_entropy():
    logits = torch.randn(7, 3)
    loss = make(ClassParameters)(logits, batch_of(TARGETS))
    torch.testing.assert_close(loss, F.cross_entropy(logits, TARGETS))


def test_the_loss_is_that_of_the_logits_divided_by_the_temperatures():
    """2 for the class, and 2 + 0.5 with the sample."""
    logits = torch.randn(7, 3)
    for kind, temperature in zip(KINDS, (2.0, 2.5), strict=True):
        loss = strong(kind)(logits, batch_of(TARGETS))
        torch.testing.assert_close(loss, F.cross_entropy(logits / temperature, TARGETS))


def test_the_model_learns_as_if_temperatures_were_fixed():
    logits = torch.randn(7, 3, requires_grad=True)
    strong(InstanceParameters)(logits, batch_of(TARGETS)).backward()
    wanted = ((logits / 2.5).softmax(1) - F.one_hot(TARGETS)) / 7 / 2.5
    torch.testing.assert_close(logits.grad, wanted.detach())


# --------------------------------------------------------------------------------- a step

# Probabilities of 3/4 and 1/4. By the log-temperature, the loss of the first class has the
# derivative log 3 - 3/4 · log 3, and that of the second 0 - 3/4 · log 3.
LIKELY = torch.tensor([[log(3), 0.0]])


@pytest.mark.parametrize(("target", "slope"), [(0, log(3) / 4), (1, -3 * log(3) / 4)])
def test_a_step_by_hand(target, slope):
    """What is right gets colder, what is wrong gets hotter; the other class stays."""
    method = make(ClassParameters, num_classes=2)
    learn(method, LIKELY, batch_of([target]))
    assert method.classes.values[target].item() == pytest.approx(-0.1 * slope)
    assert method.classes.values[1 - target] == 0


def test_a_step_of_both_temperatures_by_hand():
    """Of σ = 1 + 3, a quarter is the class's and three quarters are the sample's."""
    method = make(
        InstanceParameters, num_classes=2, num_samples=5, instance_init=3.0, instance_weight_decay=0
    )
    learn(method, 4 * LIKELY, batch_of([0], rows=[2]))
    slope = log(3) / 4
    assert method.classes.values.tolist() == pytest.approx([-0.1 * slope / 4, 0])
    wanted = [log(3)] * 5
    wanted[2] -= 0.8 * slope * 3 / 4
    assert method.instances.values.tolist() == pytest.approx(wanted)


def test_samples_of_a_class_have_a_share_of_the_mean():
    method = make(ClassParameters, num_classes=2, class_learning_rate=1.0)
    learn(method, LIKELY.repeat(5, 1), batch_of([0, 1, 0, 0, 1]))
    slope = log(3) / 4
    assert method.classes.values.tolist() == pytest.approx([-3 / 5 * slope, 2 / 5 * 3 * slope])


def test_weight_decay_counts_every_occurrence_and_is_not_a_mean():
    """Equal logits have no slope, so decay alone moves values of log e = 1."""
    settings = {"class_init": math.e, "class_learning_rate": 0.1, "class_weight_decay": 0.5}
    method = make(ClassParameters, **settings)
    learn(method, torch.zeros(4, 3), batch_of([1, 0, 1, 1]))
    assert method.classes.values.tolist() == pytest.approx([0.95, 0.85, 1.0])


@pytest.mark.parametrize("kind", KINDS)
def test_momentum_and_decay_are_those_of_torch_where_all_entries_occur(kind):
    """Against autograd and torch's own optimiser, for a loss that is written out."""
    method = strong(kind)
    classes = nn.Parameter(torch.full((3,), log(2.0)))
    instances = nn.Parameter(torch.full((7,), log(0.5)))
    optimiser = torch.optim.SGD(
        [{"params": [classes], "lr": 0.5}, {"params": [instances], "lr": 4.0}], momentum=0.9
    )
    for _ in range(8):
        rows = torch.randperm(7)
        logits, targets = 3 * torch.randn(7, 3), TARGETS[rows]
        temperature = classes[targets].exp()
        decay = 0.03 / 2 * (classes[targets] ** 2).sum()
        if kind is InstanceParameters:
            temperature = temperature + instances[rows].exp()
            decay = decay + 0.02 / 2 * (instances[rows] ** 2).sum()
        wanted = F.cross_entropy(logits / temperature[:, None], targets)
        optimiser.zero_grad()
        (wanted + decay).backward()
        optimiser.step()
        with torch.no_grad():
            classes.clamp_(-log(20), log(20))
            instances.clamp_(-log(20), log(20))
        torch.testing.assert_close(learn(method, logits, batch_of(targets, rows)), wanted)
        torch.testing.assert_close(method.classes.values, classes.detach())
        if kind is InstanceParameters:
            torch.testing.assert_close(method.instances.values, instances.detach())


def test_entries_that_a_batch_does_not_have_keep_value_and_momentum():
    method = strong(InstanceParameters)
    logits = torch.randn(7, 3)
    learn(method, logits, batch_of(TARGETS))
    before = deepcopy(method.state_dict())
    learn(method, logits[:2], batch_of([2, 2], rows=[0, 3]))
    for name, there in (("classes", {2}), ("instances", {0, 3})):
        for what in ("values", "velocity"):
            now, then = method.state_dict()[f"{name}.{what}"], before[f"{name}.{what}"]
            assert (now != then).nonzero().flatten().tolist() == sorted(there)


def test_momentum_goes_on_where_it_was_when_an_entry_comes_back():
    """Slopes g and then none: the second step is 0.9 of the first, whatever lay between."""
    method = make(ClassParameters, num_classes=2, class_weight_decay=0)
    learn(method, LIKELY, batch_of([0]))
    first = method.classes.values[0].item()
    for _ in range(3):
        learn(method, LIKELY, batch_of([1]))
    learn(method, torch.zeros(1, 2), batch_of([0]))
    assert method.classes.values[0].item() == pytest.approx(1.9 * first)


def test_temperatures_stay_between_a_twentieth_and_twenty():
    method = make(ClassParameters, num_classes=2, class_learning_rate=1e3)
    learn(method, LIKELY.repeat(2, 1), batch_of([0, 1]))
    assert method.classes.values.exp().tolist() == pytest.approx([1 / 20, 20])


def test_the_first_step_brings_all_samples_within_the_bounds():
    """A thousandth is below them; what the batch does not have is brought there too."""
    method = make(InstanceParameters)
    learn(method, torch.zeros(2, 3), batch_of([0, 1]))
    assert method.instances.values.tolist() == pytest.approx([-log(20)] * 7)


def test_a_batch_is_learned_from_once():
    method = make(ClassParameters, num_classes=2)
    learn(method, LIKELY, batch_of([0]))
    before = method.classes.values.clone()
    method.end_batch(alone)
    assert torch.equal(method.classes.values, before)


# -------------------------------------------------------------------- parts and processes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("parts", [2, 3, 7, 20])
def test_a_batch_in_parts_gives_what_the_whole_gives(kind, parts):
    whole, apart = strong(kind), strong(kind)
    for _ in range(3):
        batch = batch_of(TARGETS, torch.randperm(7), logits=torch.randn(7, 3))
        wanted = learn(whole, batch.inputs, batch)
        found = sum(apart(part.inputs, part) * part.share for part in batch.split(parts))
        apart.end_batch(alone)
        torch.testing.assert_close(found, wanted)
        assert_same_state(apart, whole)


def totals(methods):
    """What processes that end a batch together are given for the sums over all of them."""
    noted = []
    for method in methods:
        own = []
        deepcopy(method).end_batch(lambda tensor, own=own: own.append(tensor.clone()) or tensor)
        noted.append(own)
    return [torch.stack(tensors).sum(0) for tensors in zip(*noted, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world", [2, 3])
def test_several_processes_learn_what_one_does(kind, world):
    """Of the batches of 5 and 2 samples, a third process has nothing to do in the second."""
    split = Split(torch.randn(7, 3), TARGETS, ("a", "b", "c"))
    one, several = strong(kind), [strong(kind) for _ in range(world)]
    for epoch in range(3):
        everyone = [
            Batches(split, Transform(), 5, rank=rank, world=world).shuffled((epoch,))
            for rank in range(world)
        ]
        whole = Batches(split, Transform(), 5).shuffled((epoch,))
        for batch, *parts in zip(whole, *everyone, strict=True):
            wanted = learn(one, batch.inputs, batch)
            losses = [m(p.inputs, p) * p.share for m, p in zip(several, parts, strict=True)]
            sums = totals(several)
            for method in several:
                left = iter(sums)
                method.end_batch(lambda _, left=left: next(left))
                assert_same_state(method, several[0], rtol=0, atol=0)
            torch.testing.assert_close(sum(losses) / world, wanted)
            assert_same_state(several[0], one)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_with_nothing_to_do_has_no_effect(kind):
    idle, untouched = strong(kind), strong(kind)
    assert idle(torch.randn(1, 3), batch_of([0], share=0.0)).isfinite()
    idle.end_batch(alone)
    assert_same_state(idle, untouched, rtol=0, atol=0)


# -------------------------------------------------------------------- afterwards, and state


@pytest.mark.parametrize("kind", KINDS)
def test_temperatures_have_no_say_in_predictions(kind):
    method, logits = strong(kind), torch.randn(7, 3)
    for _ in range(5):
        learn(method, logits, batch_of(TARGETS))
    assert method.classes.values.std() > 0.1
    (rule, found), *others = method.decide(logits).items()
    assert (rule, others) == ("argmax", [])
    assert torch.equal(found, logits.argmax(1))


@pytest.mark.parametrize("kind", KINDS)
def test_a_method_with_the_state_of_another_goes_on_as_that_would(kind):
    through, after = strong(kind), strong(kind)
    batches = [(torch.randn(7, 3), batch_of(TARGETS, torch.randperm(7))) for _ in range(6)]
    for logits, batch in batches[:3]:
        learn(through, logits, batch)
    after.load_state_dict(through.state_dict())
    for logits, batch in batches[3:]:
        assert torch.equal(learn(through, logits, batch), learn(after, logits, batch))
    assert_same_state(after, through, rtol=0, atol=0)


def test_values_and_momentum_are_all_the_state():
    names = ["classes.values", "classes.velocity", "instances.values", "instances.velocity"]
    assert sorted(make(InstanceParameters).state_dict()) == names
