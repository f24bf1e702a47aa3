"""Plain training."""

import torch
import torch.nn.functional as F
from batches import batch_of, no_losses

from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.plain import Plain


def test_there_is_one_stage_on_the_classes_that_takes_all_epochs():
    assert Plain(Plan(6, epochs=9, patience=4)).stages == (Stage(6, 9, 4, counts_from=0),)


def test_the_loss_is_cross_entropy_in_every_epoch():
    method, logits, targets = Plain(Plan(6, 9, 4)), torch.randn(5, 6), torch.tensor([0, 5, 2, 2, 1])
    for epoch in (0, 8):
        method.begin_epoch(0, epoch, no_losses)
        assert torch.equal(method(logits, batch_of(targets)), F.cross_entropy(logits, targets))
        assert (method.level, method.clusters) == (None, None)
