"""The cross-entropy of a class and all nodes above it, with shares of one label."""

from math import log

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of
from hierarchies import hierarchies, make
from hypothesis import given
from hypothesis import strategies as st
from trees import DEEP, chance, paths

from coarse2fine.methods._ancestry import Ancestry
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.hace import HACE, ancestral_cross_entropy

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
CHANCES = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.05, 0.1])


def by_enumeration(logits, target, hierarchy, dilution):
    """Each set passes on what it does not keep; the root keeps all."""
    loss, left = torch.zeros((), dtype=logits.dtype), 1.0
    *path, root = paths(hierarchy)[target]
    for each in path:
        loss = loss - left * dilution * chance(each, logits.softmax(0)).log()
        left *= 1 - dilution
    return loss - left * chance(root, logits.softmax(0)).log()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loss_by_hand(dtype):
    """Of a label 0.6 stays at the class, 0.24 at its parent, 0.096 above it."""
    wanted = {
        1: -0.6 * log(0.2) - 0.24 * log(0.3) - 0.096 * log(0.6),
        3: -0.6 * log(0.25) - 0.24 * log(0.3),
        5: -0.6 * log(0.1),
    }
    logits, targets = CHANCES.log().expand(3, 6).to(dtype), torch.tensor(list(wanted))
    loss = ancestral_cross_entropy(logits, targets, Ancestry(DEEP.nodes), 0.6)
    assert loss.dtype == torch.promote_types(dtype, torch.float32)
    rounding = {torch.bfloat16: 1e-2, torch.float16: 1e-3}.get(dtype, 1e-6)
    assert loss.tolist() == pytest.approx(list(wanted.values()), rel=rounding)


@given(hierarchies(), st.floats(0.01, 1))
def test_the_loss_is_that_of_enumeration(hierarchy, dilution):
    targets = torch.arange(hierarchy.num_classes)
    logits = 3 * torch.randn(len(targets), len(targets), dtype=torch.float64)
    loss = ancestral_cross_entropy(logits, targets, Ancestry(hierarchy.nodes), dilution)
    wanted = [by_enumeration(logits[t], t, hierarchy, dilution) for t in targets.tolist()]
    torch.testing.assert_close(loss, torch.stack(wanted))


def test_undiluted_it_is_cross_entropy():
    logits, targets = torch.randn(7, 6), torch.tensor([0, 1, 2, 3, 4, 5, 0])
    loss = ancestral_cross_entropy(logits, targets, Ancestry(DEEP.nodes), 1)
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets, reduction="none"))


def test_gradients_are_right():
    logits = torch.randn(6, 6, dtype=torch.float64, requires_grad=True)
    ancestry, targets = Ancestry(DEEP.nodes), torch.arange(6)

    def loss(logits):
        return ancestral_cross_entropy(logits, targets, ancestry, 0.7)

    assert torch.autograd.gradcheck(loss, logits)
    assert torch.autograd.gradgradcheck(loss, logits)


def test_the_method_has_one_stage_and_no_state_of_its_own():
    method = HACE(Plan(5, 10, 3, make()))
    assert method.stages == (Stage(5, 10, 3, counts_from=0),)
    assert not method.state_dict()


def test_the_mean_over_parts_of_a_batch_is_that_of_the_whole():
    """As two processes have it, each with its part of the batch."""
    method = HACE(Plan(6, 10, 3, DEEP))
    logits, targets = torch.randn(6, 6), torch.arange(6)
    parts = [method(logits[at], batch_of(targets[at])) for at in (slice(0, 3), slice(3, 6))]
    torch.testing.assert_close(sum(parts) / 2, method(logits, batch_of(targets)))


def test_a_plan_without_a_hierarchy_is_refused():
    with pytest.raises(ValueError, match="needs a hierarchy"):
        HACE(Plan(5, 10, 3))
