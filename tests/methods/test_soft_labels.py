"""Labels of which classes near the target get a share."""

from math import exp

import pytest
import torch
import torch.nn.functional as F
from batches import batch_of
from hierarchies import hierarchies, make
from hypothesis import given
from hypothesis import strategies as st
from trees import DEEP, height, meeting

from coarse2fine import Hierarchy
from coarse2fine.methods._ancestry import Ancestry
from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.soft_labels import SoftLabels, soft_labels

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def by_enumeration(target, hierarchy, beta):
    classes = range(hierarchy.num_classes)
    root = height(frozenset(classes), hierarchy)
    heights = [height(meeting(target, c, hierarchy), hierarchy) for c in classes]
    return (-beta * torch.tensor(heights) / root).softmax(0)


def test_labels_by_hand():
    """The root is at 3, {0, 1, 2} at 2, {0, 1} and {3, 4} at 1; 5 meets all others at the root."""
    near, far, beyond = exp(-2), exp(-4), exp(-6)
    wanted = torch.tensor(
        [
            [1, near, far, beyond, beyond, beyond],
            [far, far, 1, beyond, beyond, beyond],
            [beyond, beyond, beyond, beyond, beyond, 1],
        ]
    )
    found = soft_labels(torch.tensor([0, 2, 5]), Ancestry(DEEP.nodes), 6.0)
    torch.testing.assert_close(found, wanted / wanted.sum(1, keepdim=True))


@given(hierarchies(), st.floats(0, 30))
def test_labels_are_those_of_enumeration(hierarchy, beta):
    targets = torch.arange(hierarchy.num_classes)
    found = soft_labels(targets, Ancestry(hierarchy.nodes), beta)
    wanted = [by_enumeration(target, hierarchy, beta) for target in targets.tolist()]
    torch.testing.assert_close(found, torch.stack(wanted))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loss_is_the_mean_cross_entropy_against_the_labels(dtype):
    logits, targets = torch.randn(7, 6).to(dtype), torch.tensor([0, 1, 2, 3, 4, 5, 0])
    labels = torch.stack([by_enumeration(t, DEEP, 4.0) for t in targets.tolist()])
    loss = SoftLabels(Plan(6, 10, 3, DEEP), beta=4.0)(logits, batch_of(targets))
    wanted = -(labels * logits.float().log_softmax(1)).sum(1).mean()
    assert loss.dtype == dtype  # as that of plain training
    rounding = 2e-2 if dtype.itemsize < 4 else 1e-5
    torch.testing.assert_close(loss.float(), wanted, rtol=rounding, atol=0)


def test_a_large_beta_is_plain_training():
    logits, targets = torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 4])
    loss = SoftLabels(Plan(5, 10, 3, make()), beta=1e4)(logits, batch_of(targets))
    torch.testing.assert_close(loss, F.cross_entropy(logits, targets))


def test_without_coarse_levels_all_other_classes_get_the_same():
    with pytest.warns(UserWarning, match="no level above the classes"):
        flat = Hierarchy.from_levels([[0, 1, 2, 3, 4]])
    found = soft_labels(torch.tensor([3]), Ancestry(flat.nodes), 2.0)
    wanted = torch.tensor([[exp(-2)] * 3 + [1.0] + [exp(-2)]])
    torch.testing.assert_close(found, wanted / wanted.sum())


def test_the_method_has_one_stage_and_no_state_of_its_own():
    method = SoftLabels(Plan(5, 10, 3, make()))
    assert method.stages == (Stage(5, 10, 3, counts_from=0),)
    assert not method.state_dict()


def test_the_mean_over_parts_of_a_batch_is_that_of_the_whole():
    """As two processes have it, each with its part of the batch."""
    method = SoftLabels(Plan(6, 10, 3, DEEP))
    logits, targets = torch.randn(6, 6), torch.arange(6)
    parts = [method(logits[at], batch_of(targets[at])) for at in (slice(0, 3), slice(3, 6))]
    torch.testing.assert_close(sum(parts) / 2, method(logits, batch_of(targets)))


def test_a_plan_without_a_hierarchy_is_refused():
    with pytest.raises(ValueError, match="needs a hierarchy"):
        SoftLabels(Plan(5, 10, 3))
