"""The curriculum with one final layer throughout."""

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of, no_losses
from hierarchies import COARSE, MIDDLE, make

from coarse2fine import Hierarchy
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.continuous import Continuous

LOGITS, TARGETS = torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 4])
BATCH = batch_of(TARGETS)


def method(length=6, epochs=10, patience=3):
    return Continuous(Plan(5, epochs, patience, make(), length))


def marginal_loss(clusters):
    """The mean of minus the log of a cluster's probability, summed over its classes."""
    chances = LOGITS.softmax(1)
    same = torch.tensor(clusters)[TARGETS, None] == torch.tensor(clusters)
    return -(chances * same).sum(1).log().mean()


def test_levels_go_from_the_coarsest_to_the_classes():
    found, levels = method(), []
    for epoch in range(10):
        found.begin_epoch(0, epoch, no_losses)
        levels.append(found.level)
    assert levels == [0, 0, 1, 1, 2, 2, 2, 2, 2, 2]


def test_the_loss_is_that_of_the_level_in_force():
    found = method()
    for epoch, clusters in ((0, COARSE), (2, MIDDLE), (9, list(range(5)))):
        found.begin_epoch(0, epoch, no_losses)
        assert torch.allclose(found(LOGITS, BATCH), marginal_loss(clusters), atol=1e-6)
    assert torch.equal(found(LOGITS, BATCH), F.cross_entropy(LOGITS, TARGETS))


def test_the_level_is_a_function_of_the_epoch_alone():
    found = method()
    for epoch, level in ((9, 2), (0, 0), (3, 1)):
        found.begin_epoch(0, epoch, no_losses)
        assert found.level == level


def test_clusters_are_those_of_the_level_and_none_at_the_finest():
    found = method()
    for epoch, clusters in ((0, COARSE), (3, MIDDLE)):
        found.begin_epoch(0, epoch, no_losses)
        assert found.clusters.tolist() == clusters
    found.begin_epoch(0, 4, no_losses)
    assert found.clusters is None


def test_the_best_epoch_is_counted_from_the_first_at_the_finest_level():
    assert method(length=6).stages == (Stage(5, 10, 3, counts_from=4),)
    assert method(length=9).stages == (Stage(5, 10, 3, counts_from=6),)


def test_a_hierarchy_without_coarse_levels_is_plain_training():
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([[0, 1, 2, 3, 4]])
    found = Continuous(Plan(5, 10, 3, flat, 4))
    found.begin_epoch(0, 0, no_losses)
    assert found.stages == (Stage(5, 10, 3, counts_from=0),)
    assert found.clusters is None
    assert torch.equal(found(LOGITS, BATCH), F.cross_entropy(LOGITS, TARGETS))


def test_the_finest_level_must_have_an_epoch():
    assert method(length=6, epochs=5).stages[0].counts_from == 4
    with pytest.raises(ValueError, match="takes 4 epochs before .* only 4; give a larger epochs="):
        method(length=6, epochs=4)


def test_a_curriculum_shorter_than_its_levels_says_so():
    with pytest.warns(UserWarning, match="shorter than the hierarchy's 2 coarse levels"):
        assert method(length=1).stages[0].counts_from == 2


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(5, 2, 3, make(), None), "the 3 levels takes an epoch at least, but there are only 2"),
        (Plan(5, 10, 3, None, 6), "needs a hierarchy"),
        (Plan(4, 10, 3, make(), 6), "the hierarchy has 5 classes, the data 4"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        Continuous(plan)


def adaptive(**settings):
    return Continuous(Plan(5, 10, 3, make(), None), **settings)


def walk(method, accuracies):
    """The level of each epoch and whether it may be the best one."""
    found = []
    for accuracy in accuracies:
        method.begin_epoch(0, len(found), None)
        found.append(method.level)
        method.end_epoch(accuracy)
    return found


def test_without_a_length_a_level_lasts_as_long_as_it_teaches():
    found = adaptive(patience=1)
    assert found.stages == (Stage(5, 10, 3, counts_from=10),)  # none may be the best yet
    assert walk(found, [0.5, 0.4, 0.3, 0.2]) == [0, 0, 1, 1]
    assert found.curriculum_epochs == 4
    assert found.stages == (Stage(5, 10, 3, counts_from=4),)
    found.begin_epoch(0, 4, None)
    assert found.clusters is None


def test_coarse_levels_have_half_of_the_epochs_at_most():
    rising = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert walk(adaptive(), rising) == [0, 0, 0, 1, 1, 2, 2]
    assert walk(adaptive(share=0.4), rising) == [0, 0, 1, 1, 2, 2, 2]


@pytest.mark.parametrize("cut", range(6))
def test_a_restored_adaptive_method_goes_on_to_the_same_levels(cut):
    accuracies = [0.1, 1 / 3, 1 / 3, 0.2, 0.3, 0.1]
    first, second = adaptive(patience=2), adaptive(patience=2)
    before = walk(first, accuracies[:cut])
    second.load_state_dict(first.state_dict())
    assert second.stages == first.stages
    assert second.curriculum_epochs == first.curriculum_epochs
    after = walk(second, accuracies[cut:])
    assert before + after == walk(adaptive(patience=2), accuracies)


def test_clusters_move_with_the_method_and_are_not_saved_with_it():
    found = method().to("meta")
    found.begin_epoch(0, 0, no_losses)
    assert found.clusters.device.type == "meta"
    assert "levels" not in found.state_dict()


def test_its_state_is_taken_up_by_another():
    first, second = method(), method()
    first.begin_epoch(0, 3, no_losses)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first(LOGITS, BATCH), second(LOGITS, BATCH))
