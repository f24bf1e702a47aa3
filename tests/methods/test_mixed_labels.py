"""Losses of labels that are coarser than classes, against probabilities summed by hand."""

from dataclasses import replace

import pytest
import torch
from batches import batch_of, no_losses

from coarse2fine import Hierarchy
from coarse2fine.methods import METHODS, PLAIN, build_method, takes_nodes
from coarse2fine.methods.base import Plan
from coarse2fine.methods.candidates import Candidates
from coarse2fine.methods.plain import Plain

# Seven classes; the labels' tree, and another one that training goes by.
TREE = Hierarchy.from_levels([[0, 0, 0, 1, 1, 1, 2], [0, 0, 1, 2, 3, 3, 4]])
OTHER = Hierarchy.from_levels([[0, 1, 0, 1, 0, 1, 0], [0, 1, 2, 1, 0, 3, 2]])
LABELS = torch.arange(len(TREE.nodes))
MEMBERS = [set(TREE.nodes.classes(node).tolist()) for node in LABELS.tolist()]
ABLE = [PLAIN, "continuous", "staged", "multitask"]


class Own(Plain):
    """A loss of its own, which says nothing of nodes."""

    def forward(self, logits, batch):
        return 2 * super().forward(logits, batch)


class Forgetful(Plain):
    """Does not pass its plan on."""

    def __init__(self, plan):
        super(Plain, self).__init__()
        self.stages = plan.single_stage


def plan(hierarchy, **changes):
    made = Plan(7, 9, 3, hierarchy, 6, num_samples=len(LABELS), labels=TREE.nodes)
    return replace(made, **changes)


def loss_by_hand(chances, members, level):
    """-log of all classes whose cluster at the level has a class of the label, for one sample."""
    touched = {int(level[one]) for one in members}
    return -sum(p for p, cluster in zip(chances, level, strict=True) if cluster in touched).log()


def outputs_by_hand(chances, members, level):
    """The same where there is an output for each cluster of the level."""
    return -sum(chances[cluster] for cluster in {int(level[one]) for one in members}).log()


def losses_by_hand(name, hierarchy, level, logits):
    """The loss of each label alone."""
    chances = logits.double().softmax(1)
    levels = hierarchy.levels
    found = []
    for row, members in zip(chances, MEMBERS, strict=True):
        if name == "staged":
            found.append(outputs_by_hand(row, members, levels[level]))
        elif name == "multitask":
            found.append(torch.stack([loss_by_hand(row, members, each) for each in levels]).mean())
        else:
            at = levels[level] if name == "continuous" else levels[-1]
            found.append(loss_by_hand(row, members, at))
    return torch.stack(found)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("hierarchy", [TREE, OTHER], ids=["own", "other"])
@pytest.mark.parametrize("name", ABLE)
def test_a_coarse_label_costs_the_log_of_its_classes_summed_probability(name, hierarchy, level):
    method = build_method(name, plan(hierarchy))
    if name == "continuous":  # a third of T for each level
        method.begin_epoch(0, 3 * level, no_losses)
        assert method.level == level
    elif name == "staged":
        method.begin_epoch(level, 0, no_losses)
    width = hierarchy.num_clusters[level] if name == "staged" else 7
    logits = torch.randn(len(LABELS), width, requires_grad=True)
    wanted = losses_by_hand(name, hierarchy, level, logits)
    found = method(logits, batch_of(LABELS))
    torch.testing.assert_close(found, wanted.mean().float())
    gradients = [torch.autograd.grad(loss, logits)[0] for loss in (found, wanted.mean())]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("name", ABLE)
def test_a_cluster_weighs_as_much_as_its_classes_on_average(name):
    weights = torch.rand(7, dtype=torch.float64).numpy()
    method = build_method(name, plan(TREE, class_weights=weights))
    method.begin_epoch(len(method.stages) - 1, 8 if name == "continuous" else 0, no_losses)
    logits = torch.randn(len(LABELS), 7)
    own = torch.tensor([weights[list(members)].mean() for members in MEMBERS])
    wanted = (losses_by_hand(name, TREE, 2, logits) * own).mean()
    torch.testing.assert_close(method(logits, batch_of(LABELS)), wanted.float())


def test_masks_hold_the_classes_of_each_label():
    masks = Candidates(TREE.nodes)(LABELS)
    assert [set(mask.nonzero().flatten().tolist()) for mask in masks] == MEMBERS


def test_only_methods_that_say_so_take_labels_that_are_no_classes():
    assert [name for name in (PLAIN, *METHODS) if takes_nodes(name)] == ABLE
    assert not takes_nodes("test_mixed_labels:Own")
    with pytest.raises(ValueError, match="Forgetful has not been given what its targets are"):
        build_method("test_mixed_labels:Forgetful", plan(TREE))


def test_nothing_of_labels_is_saved_with_a_method():
    assert build_method("continuous", plan(TREE)).state_dict() == {}
