"""The way from each class up to the root, against enumeration."""

import pytest
import torch
from hierarchies import hierarchies, make
from hypothesis import given
from trees import DEEP, chance, height, meeting, paths

from coarse2fine import Hierarchy
from coarse2fine.methods._ancestry import Ancestry


def test_the_tables_of_a_tree_by_hand():
    """{3, 4} and {5} are the same sets at both levels, and so one step each."""
    found = Ancestry(DEEP.nodes)
    assert found.depths.tolist() == [3, 3, 2, 2, 2, 1]
    assert found.heights.tolist() == [
        [0, 1, 2, 3],
        [0, 1, 2, 3],
        [0, 2, 3, 3],
        [0, 1, 3, 3],
        [0, 1, 3, 3],
        [0, 3, 3, 3],
    ]
    assert found.steps(torch.tensor([0, 2, 4, 5])).tolist() == [
        [0, 1, 2, 3, 3, 3],
        [1, 1, 0, 2, 2, 2],
        [2, 2, 2, 1, 0, 2],
        [1, 1, 1, 1, 1, 0],
    ]


@given(hierarchies())
def test_steps_and_heights_are_those_of_the_sets_of_classes(hierarchy):
    found, ways = Ancestry(hierarchy.nodes), paths(hierarchy)
    targets = torch.arange(hierarchy.num_classes)
    assert found.depths.tolist() == [len(way) - 1 for way in ways]
    steps = found.steps(targets)
    for one, way in enumerate(ways):
        for other in targets.tolist():
            assert steps[one, other] == way.index(meeting(one, other, hierarchy))
        own = [height(each, hierarchy) for each in way]
        rest = [own[-1]] * (found.heights.shape[1] - len(own))
        assert found.heights[one].tolist() == own + rest


@given(hierarchies())
def test_log_probabilities_are_those_of_sums(hierarchy):
    found, ways = Ancestry(hierarchy.nodes), paths(hierarchy)
    targets = torch.arange(hierarchy.num_classes)
    logits = 3 * torch.randn(len(targets), len(targets), dtype=torch.float64)
    path = found.log_probabilities(logits, targets)
    for row, way in enumerate(ways):
        wanted = [chance(each, logits[row].softmax(0)).log() for each in way]
        wanted += [torch.zeros((), dtype=torch.float64)] * (path.shape[1] - len(way))
        torch.testing.assert_close(path[row], torch.stack(wanted))


def test_improbable_clusters_keep_their_digits():
    logits = torch.tensor([[-1000.0, -1001.0, -1000.0, 0.0, -90.0]])
    path = Ancestry(make().nodes).log_probabilities(logits, torch.tensor([1]))
    cluster = torch.tensor([-1000.0, -1001.0]).logsumexp(0)
    wanted = [-1001.0, cluster, torch.tensor([cluster, -1000.0]).logsumexp(0), 0.0]
    torch.testing.assert_close(path, torch.tensor([wanted]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_computed_in_float32(dtype):
    logits = torch.randn(3, 6).to(dtype)
    path = Ancestry(DEEP.nodes).log_probabilities(logits, torch.tensor([0, 3, 5]))
    again = Ancestry(DEEP.nodes).log_probabilities(logits.float(), torch.tensor([0, 3, 5]))
    assert path.dtype == torch.float32
    assert torch.equal(path, again)


def test_a_deep_hierarchy_of_many_classes_has_small_tables():
    chain = [torch.arange(1000) // 2**step for step in range(9, -1, -1)]
    found = Ancestry(Hierarchy.from_levels(chain).nodes)
    assert max(table.numel() for table in found.buffers()) <= 1000 * 11
