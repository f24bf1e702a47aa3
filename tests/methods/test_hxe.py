"""Cross-entropy along the path to a class, with weights that fall on the way down."""

from itertools import pairwise
from math import exp, log

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of
from hierarchies import hierarchies, make
from hypothesis import given
from hypothesis import strategies as st
from trees import DEEP, chance, paths

from coarse2fine import Hierarchy
from coarse2fine.methods._ancestry import Ancestry
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.hxe import HXE, hierarchical_cross_entropy

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
CHANCES = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.05, 0.1])


def by_enumeration(logits, target, hierarchy, alpha):
    """From the root down: one weight a step, however many levels a set is at."""
    down = paths(hierarchy)[target][::-1]
    loss = torch.zeros((), dtype=logits.dtype)
    for depth, (above, below) in enumerate(pairwise(down)):
        ratio = chance(below, logits.softmax(0)) / chance(above, logits.softmax(0))
        loss = loss - exp(-alpha * depth) * ratio.log()
    return loss


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loss_by_hand(dtype):
    """To 1 it is three decisions, {0, 1, 2}, {0, 1} and 1; to 3 two, {3, 4} and 3; to 5 one."""
    wanted = {
        1: -log(0.6) - exp(-0.5) * log(0.3 / 0.6) - exp(-1) * log(0.2 / 0.3),
        3: -log(0.3) - exp(-0.5) * log(0.25 / 0.3),
        5: -log(0.1),
    }
    logits, targets = CHANCES.log().expand(3, 6).to(dtype), torch.tensor(list(wanted))
    loss = hierarchical_cross_entropy(logits, targets, Ancestry(DEEP.nodes), 0.5)
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    rounding = {torch.bfloat16: 1e-2, torch.float16: 1e-3}.get(dtype, 1e-6)
    assert loss.tolist() == pytest.approx(list(wanted.values()), rel=rounding)


@given(hierarchies(), st.floats(0, 2))
def test_the_loss_is_that_of_enumeration(hierarchy, alpha):
    targets = torch.arange(hierarchy.num_classes)
    logits = 3 * torch.randn(len(targets), len(targets), dtype=torch.float64)
    loss = hierarchical_cross_entropy(logits, targets, Ancestry(hierarchy.nodes), alpha)
    wanted = [by_enumeration(logits[t], t, hierarchy, alpha) for t in targets.tolist()]
    torch.testing.assert_close(loss, torch.stack(wanted))


def test_without_a_fall_it_is_cross_entropy():
    logits, targets = torch.randn(7, 6), torch.tensor([0, 1, 2, 3, 4, 5, 0])
    loss = hierarchical_cross_entropy(logits, targets, Ancestry(DEEP.nodes), 0)
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets, reduction="none"))


def test_a_hierarchy_without_coarse_levels_is_plain_training():
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([[0, 1, 2, 3, 4]])
    logits, targets = torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 4])
    loss = HXE(Plan(5, 10, 3, flat), alpha=0.4)(logits, batch_of(targets))
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets))


def test_gradients_are_right():
    logits = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    ancestry, targets = Ancestry(DEEP.nodes), torch.arange(6)

    def loss(logits):
        return hierarchical_cross_entropy(logits, targets, ancestry, 0.5)

    assert torch.autograd.gradcheck(loss, logits)
    assert torch.autograd.gradgradcheck(loss, logits)


@pytest.mark.parametrize("hidden", [[2], [3, 4], [0, 1, 2], [0, 1, 2, 3, 4]])
def test_logits_of_minus_infinity_leave_finite_gradients(hidden):
    logits = torch.randn(2, 6)
    logits[:, hidden] = -torch.inf
    logits.requires_grad_()
    loss = hierarchical_cross_entropy(logits, torch.tensor([5, 0]), Ancestry(DEEP.nodes), 0.5)
    loss.sum().backward()
    assert not loss.isnan().any()
    assert logits.grad.isfinite().all()


def test_the_method_has_one_stage_and_no_state_of_its_own():
    method = HXE(Plan(5, 10, 3, make()))
    assert method.stages == (Stage(5, 10, 3, counts_from=0),)
    assert not method.state_dict()
    assert method.to("meta").ancestry.starts.device.type == "meta"


def test_the_mean_over_parts_of_a_batch_is_that_of_the_whole():
    """As two processes have it, each with its part of the batch."""
    method = HXE(Plan(6, 10, 3, DEEP), alpha=0.5)
    logits, targets = torch.randn(6, 6), torch.arange(6)
    parts = [method(logits[at], batch_of(targets[at])) for at in (slice(0, 3), slice(3, 6))]
    torch.testing.assert_close(sum(parts) / 2, method(logits, batch_of(targets)))


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(5, 10, 3), "needs a hierarchy"),
        (Plan(4, 10, 3, make()), "the hierarchy has 5 classes, the data 4"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        HXE(plan)
