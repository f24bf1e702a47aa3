"""Counting hits at a level, batch by batch."""

import pytest
import torch

from coarse2fine import CoarseToFineLoss, Hierarchy
from coarse2fine._tally import Tally

PAIRS = torch.tensor([0, 0, 1, 1])


def test_nothing_noted_is_no_accuracy():
    tally = Tally(PAIRS)
    assert tally.accuracy() is None
    tally.note(torch.eye(4), torch.full((4,), -100))
    assert tally.accuracy() is None


def test_the_most_probable_cluster_counts_not_the_most_probable_class():
    logits = torch.tensor([[0.4, 0.0, 0.3, 0.3]]).log()  # class 0, but the second pair
    tally = Tally(PAIRS)
    tally.note(logits, torch.tensor([3]))
    assert tally.accuracy() == 1.0


def test_batches_add_up_until_they_are_cleared():
    tally = Tally(PAIRS)
    tally.note(torch.eye(4), torch.tensor([1, 0, 3, 0]))  # three right
    with torch.inference_mode():
        tally.note(torch.eye(4)[:1], torch.tensor([3]))
    assert tally.accuracy() == tally.accuracy() == 0.6
    tally.clear()
    tally.note(torch.eye(4)[0], torch.tensor(1))  # a single prediction
    assert tally.accuracy() == 1.0


def test_of_probabilities_the_most_probable_class_is_the_target():
    tally = Tally(PAIRS)
    tally.note(torch.eye(4)[:2], torch.tensor([[0.1, 0.6, 0.2, 0.1], [0.3, 0.1, 0.4, 0.2]]))
    assert tally.accuracy() == 0.5


def test_an_index_to_ignore_may_be_a_class():
    tally = Tally(PAIRS)
    tally.note(torch.eye(4), torch.tensor([3, 1, 3, 0]), ignore_index=3)
    assert tally.accuracy() == 0.5


def test_a_loss_is_counted_in_eval_mode_alone():
    criterion = CoarseToFineLoss(Hierarchy.from_levels([PAIRS.tolist()]))
    criterion._tally = Tally(PAIRS)
    logits, targets = torch.eye(4, requires_grad=True), torch.arange(4)
    criterion(logits, targets)
    assert criterion._tally.accuracy() is None
    criterion.eval()(logits, targets)
    assert criterion._tally.accuracy() == 1.0


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2), (3, 4, 2, 5)])
def test_any_number_of_dimensions_will_do(shape):
    logits = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    targets = torch.randint(4, (3, *shape[2:]), generator=torch.Generator().manual_seed(1))
    tally = Tally(PAIRS)
    tally.note(logits, targets)
    mass = logits.softmax(1)
    hits = (mass[:, 2:].sum(1) > mass[:, :2].sum(1)) == (targets >= 2)
    assert tally.accuracy() == pytest.approx(hits.float().mean().item())
