"""Losses in which classes have weights: every method of the registry, sample by sample."""

from dataclasses import replace

import pytest
import torch
from batches import alone, batch_of, no_losses
from hierarchies import make

from coarse2fine.methods import METHODS, PLAIN, build_method, weighs_classes
from coarse2fine.methods.base import Plan
from coarse2fine.methods.data_parameters import InstanceParameters
from coarse2fine.methods.plain import Plain

NAMES = [PLAIN, *METHODS]
TARGETS = torch.tensor([0, 1, 2, 3, 4, 0, 4])
WEIGHTS = torch.tensor([0.5, 3.0, 1.0, 0.25, 2.0], dtype=torch.float64).numpy()
PLAN = Plan(5, 10, 3, make(), 6, num_samples=7, class_vectors=torch.randn(5, 3).numpy())
WEIGHED = replace(PLAN, class_weights=WEIGHTS)


class Own(Plain):
    """A loss of its own, which says nothing of weights."""

    def forward(self, logits, batch):
        return 2 * super().forward(logits, batch)


class Renamed(Plain):
    """The loss of another, under another name."""


class Forgetful(Plain):
    """Does not pass its plan on."""

    def __init__(self, plan):
        super(Plain, self).__init__()
        self.stages = plan.single_stage


@pytest.mark.parametrize("stage", [0, -1])
@pytest.mark.parametrize("name", NAMES)
def test_each_sample_counts_by_the_weight_of_its_class(name, stage):
    plain, weighed = build_method(name, PLAN), build_method(name, WEIGHED)
    stage = stage % len(plain.stages)
    logits = torch.randn(7, plain.stages[stage].outputs)
    for method in (plain, weighed):
        method.begin_epoch(stage, 0, no_losses)
    alone_losses = [
        plain(logits[[row]], batch_of(TARGETS[[row]], [row])) for row in range(len(TARGETS))
    ]
    wanted = (torch.stack(alone_losses) * torch.tensor(WEIGHTS)[TARGETS]).mean().float()
    torch.testing.assert_close(weighed(logits, batch_of(TARGETS)), wanted)


def test_of_self_paced_learning_only_the_samples_that_count_are_weighed():
    method = build_method("spl", WEIGHED)
    losses = torch.tensor([9.0, 1, 9, 1, 9, 1, 9])
    method.begin_epoch(0, 1, lambda: losses)
    assert method.counts is not None
    logits = torch.randn(7, 5)
    each = torch.nn.functional.cross_entropy(logits, TARGETS, reduction="none")
    wanted = (each * torch.tensor(WEIGHTS)[TARGETS] * method.counts).mean().float()
    torch.testing.assert_close(method(logits, batch_of(TARGETS)), wanted)


def test_temperatures_learn_from_the_weighed_loss():
    logits, batch = torch.randn(7, 5), batch_of(TARGETS)
    found = []
    for weights in (None, 3 * torch.ones(5).numpy()):
        method = InstanceParameters(
            replace(PLAN, class_weights=weights), class_weight_decay=0, instance_weight_decay=0
        )
        before = method.classes.values.clone()
        method(logits, batch)
        method.end_batch(alone)
        found.append(method.classes.values - before)
    torch.testing.assert_close(3 * found[0], found[1])


@pytest.mark.parametrize("name", NAMES)
def test_weights_move_with_the_method_and_are_not_saved(name):
    method = build_method(name, WEIGHED)
    assert method.state_dict().keys() == build_method(name, PLAN).state_dict().keys()
    assert method.to("meta").class_weights.device.type == "meta"


@pytest.mark.parametrize("name", NAMES)
def test_every_method_of_the_registry_weighs_classes(name):
    assert weighs_classes(name)


def test_a_loss_of_ones_own_must_say_so_itself():
    assert weighs_classes("test_weighed_losses:Renamed")
    assert not weighs_classes("test_weighed_losses:Own")


def test_a_constructor_that_keeps_its_plan_to_itself_is_refused():
    build_method("test_weighed_losses:Forgetful", PLAN)
    with pytest.raises(ValueError, match=r"Forgetful has not been .*super\(\).__init__\(plan"):
        build_method("test_weighed_losses:Forgetful", WEIGHED)
