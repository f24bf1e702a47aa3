"""The curriculum with a new final layer for each level."""

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of, no_losses
from hierarchies import COARSE, MIDDLE, make

from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.staged import Staged

TARGETS = torch.tensor([0, 1, 2, 3, 4, 0, 4])


def test_each_level_is_a_stage_with_as_many_outputs_as_clusters():
    assert Staged(Plan(5, 10, 3, make())).stages == (
        Stage(2, 10, 3),
        Stage(4, 10, 3),
        Stage(5, 10, 3),
    )


def test_coarse_stages_can_have_a_cap_of_their_own():
    stages = Staged(Plan(5, 10, 3, make(), stage_epochs=2)).stages
    assert [stage.epochs for stage in stages] == [2, 2, 10]


@pytest.mark.parametrize(("stage", "clusters"), [(0, COARSE), (1, MIDDLE), (2, list(range(5)))])
def test_the_loss_is_cross_entropy_on_the_clusters(stage, clusters):
    method = Staged(Plan(5, 10, 3, make()))
    logits = torch.randn(7, max(clusters) + 1)
    wanted = F.cross_entropy(logits, torch.tensor([clusters[target] for target in TARGETS]))
    for epoch in (0, 9):
        method.begin_epoch(stage, epoch, no_losses)
        assert method.level == stage
        assert torch.equal(method(logits, batch_of(TARGETS)), wanted)


def test_clusters_are_those_of_the_stage_and_none_at_the_last():
    method, found = Staged(Plan(5, 10, 3, make())), []
    for stage in range(3):
        method.begin_epoch(stage, 0, no_losses)
        found.append(method.clusters if method.clusters is None else method.clusters.tolist())
    assert found == [COARSE, MIDDLE, None]


def test_clusters_move_with_the_method():
    method = Staged(Plan(5, 10, 3, make())).to("meta")
    method.begin_epoch(0, 0, no_losses)
    assert method.clusters.device.type == "meta"


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(5, 10, 3), "needs a hierarchy"),
        (Plan(7, 10, 3, make()), "the hierarchy has 5 classes, the data 7"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        Staged(plan)
