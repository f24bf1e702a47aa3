"""All levels of the hierarchy at once."""

from math import log

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of, no_losses
from hierarchies import COARSE, MIDDLE, make

from coarse2fine import Hierarchy, coarse_cross_entropy
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.multitask import Multitask


def method():
    return Multitask(Plan(5, 10, 3, make()))


def test_there_is_one_stage_on_the_classes_that_takes_all_epochs():
    assert method().stages == (Stage(5, 10, 3, counts_from=0),)


def test_the_loss_is_the_mean_over_the_levels_by_hand():
    """The levels are {0, 1, 2} {3, 4}, then {0, 1} {2} {3} {4}, then the classes."""
    chances = torch.tensor([[0.1, 0.2, 0.3, 0.25, 0.15]])
    for target, (coarse, middle, fine) in {1: (0.6, 0.3, 0.2), 4: (0.4, 0.15, 0.15)}.items():
        loss = method()(chances.log(), batch_of([target]))
        assert loss.item() == pytest.approx(-(log(coarse) + log(middle) + log(fine)) / 3)


def test_the_loss_is_the_mean_of_the_marginalised_losses_in_every_epoch():
    found, logits, targets = method(), torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 4])
    levels = [torch.tensor(clusters) for clusters in (COARSE, MIDDLE, list(range(5)))]
    wanted = sum(coarse_cross_entropy(logits, targets, level) for level in levels) / 3
    for epoch in (0, 5, 9):
        found.begin_epoch(0, epoch, no_losses)
        torch.testing.assert_close(found(logits, batch_of(targets)), wanted)
        assert (found.level, found.clusters) == (None, None)


def test_a_hierarchy_without_coarse_levels_is_plain_training():
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([[0, 1, 2, 3, 4]])
    logits, targets = torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 4])
    loss = Multitask(Plan(5, 10, 3, flat))(logits, batch_of(targets))
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets))


def test_levels_move_with_the_method_and_are_not_saved_with_it():
    moved = method().to("meta").criterion
    assert moved._clusters.device.type == moved._level.device.type == "meta"
    assert not method().state_dict()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(5, 10, 3), "needs a hierarchy"),
        (Plan(4, 10, 3, make()), "the hierarchy has 5 classes, the data 4"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        Multitask(plan)
