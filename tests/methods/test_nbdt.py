"""Neural-backed decision trees: the tree, its decisions and its loss."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from batches import batch_of
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import to_tree, ward
from sklearn.cluster import AgglomerativeClustering

from coarse2fine.methods.base import Plan, Stage
from coarse2fine.methods.nbdt import NBDT, BinaryTree

# By distance, 0 and 1 go together, then 2 and 3, and at last the two pairs.
PAIRS = torch.tensor([[0.0], [1.0], [10.0], [12.0]])
# 2 and 3 go together, then 1 joins them, and at last 0.
CHAIN = torch.tensor([[100.0], [10.0], [0.0], [1.0]])


def method(class_vectors=PAIRS, **settings):
    vectors = class_vectors.numpy()
    return NBDT(Plan(len(vectors), 20, 5, class_vectors=vectors), **settings)


def node_sets(paths):
    """The classes below each node, whatever the order of the nodes."""
    return {frozenset(row.nonzero().flatten().tolist()) for row in paths}


def two_way(left, right):
    """The probabilities of two children, by their logits."""
    return torch.tensor([left, right]).softmax(0).tolist()


# ------------------------------------------------------------------------------- the tree


def test_the_children_of_each_fork_by_hand():
    paths = BinaryTree(PAIRS).paths.tolist()
    assert sorted(paths[:2]) == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert sorted(paths[2:4]) == [[0, 0, 0, 1], [0, 0, 1, 0]]
    assert sorted(paths[4:]) == [[0, 0, 1, 1], [1, 1, 0, 0]]


def test_a_tree_can_be_as_deep_as_it_has_forks():
    singles = {frozenset([k]) for k in range(4)}
    assert node_sets(BinaryTree(CHAIN).paths) == singles | {frozenset({2, 3}), frozenset({1, 2, 3})}


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_that_of_scikit_learn(seed):
    """Whose own way is taken where it is told which classes may join: here, all."""
    vectors = np.random.default_rng(seed).normal(size=(12, 5))
    options = {"linkage": "ward", "connectivity": np.ones((12, 12)), "compute_full_tree": True}
    found = AgglomerativeClustering(2, **options)
    sets = [frozenset([k]) for k in range(12)]
    for left, right in found.fit(vectors).children_:
        sets.append(sets[left] | sets[right])
    assert node_sets(BinaryTree(torch.from_numpy(vectors)).paths) == set(sets[:-1])


@pytest.mark.parametrize("seed", range(5))
def test_the_tree_is_that_of_scipy(seed):
    vectors = np.random.default_rng(seed).normal(size=(9, 3))
    root, nodes = to_tree(ward(vectors), rd=True)
    wanted = {frozenset(node.pre_order()) for node in nodes if node.id != root.id}
    assert node_sets(BinaryTree(torch.from_numpy(vectors)).paths) == wanted


def test_large_clusters_join_later_than_near_ones():
    """By nearness alone, 3 would join {0, 1, 2}; after Ward it joins 4, which is farther off."""
    vectors = torch.tensor([[0.0], [0.1], [0.2], [2.0], [4.2]])
    assert frozenset({3, 4}) in node_sets(BinaryTree(vectors).paths)


def test_trees_of_one_layer_are_equal_whatever_its_precision():
    vectors = torch.randn(8, 4).bfloat16()
    half, whole = BinaryTree(vectors), BinaryTree(vectors.double())
    assert torch.equal(half.members, whole.members)


# ------------------------------------------------------------------------- probabilities


def test_path_probabilities_by_hand():
    """Pairs with means 2 and 1; within them, differences of 2 and 4."""
    found = BinaryTree(PAIRS).log_probabilities(torch.tensor([[3.0, 1.0, -1.0, 3.0]])).exp()
    left, right = two_way(2.0, 1.0)
    first, second = two_way(3.0, 1.0)
    third, fourth = two_way(-1.0, 3.0)
    wanted = [left * first, left * second, right * third, right * fourth]
    assert found.tolist() == [pytest.approx(wanted)]


def test_path_probabilities_of_a_deep_tree_by_hand():
    found = BinaryTree(CHAIN).log_probabilities(torch.tensor([[1.0, 0.5, 3.0, -2.0]])).exp()
    zero, others = two_way(1.0, (0.5 + 3.0 - 2.0) / 3)
    one, last = two_way(0.5, (3.0 - 2.0) / 2)
    two, three = two_way(3.0, -2.0)
    wanted = [zero, others * one, others * last * two, others * last * three]
    assert found.tolist() == [pytest.approx(wanted)]


@given(st.integers(2, 9), st.integers(0, 2**32 - 1), st.floats(0.01, 100))
def test_probabilities_sum_to_one(classes, seed, scale):
    rng = torch.Generator().manual_seed(seed)
    tree = BinaryTree(torch.randn(classes, 3, generator=rng))
    found = tree.log_probabilities(scale * torch.randn(4, classes, generator=rng))
    assert found.exp().sum(1).tolist() == pytest.approx([1.0] * 4, abs=1e-5)
    assert (found <= 0).all()


def test_between_two_classes_the_tree_is_a_softmax():
    logits = torch.randn(5, 2)
    tree = BinaryTree(torch.randn(2, 4))
    torch.testing.assert_close(tree.log_probabilities(logits), logits.log_softmax(1))
    assert torch.equal(tree.soft(logits), logits.argmax(1))
    assert torch.equal(tree.hard(logits), logits.argmax(1))


# ------------------------------------------------------------------------------ inference


def test_soft_and_hard_inference_differ_from_each_other_and_from_argmax():
    """Class 2 has the largest logit, but 3 drags their mean below 1's.

    The mean of 1, 2 and 3 is -0.433, above 0's -0.6, so hard inference goes there, and on
    to 1, whose -0.3 is above the -0.5 of 2 and 3. On that path the probability is only 0.30,
    as both forks are close; that of 0 is 0.46.
    """
    logits = torch.tensor([[-0.6, -0.3, 3.0, -4.0]])
    found = method(CHAIN).decide(logits)
    assert {rule: classes.item() for rule, classes in found.items()} == {"soft": 0, "hard": 1}
    assert logits.argmax(1).item() == 2


def test_the_rule_that_counts_is_soft():
    assert next(iter(method().decide(torch.randn(2, 4)))) == "soft"


def descended(node, logits):
    """Where a descent through scipy's tree ends that takes the better mean at every fork."""
    while not node.is_leaf():
        means = [logits[child.pre_order()].mean() for child in (node.left, node.right)]
        node = node.left if means[0] >= means[1] else node.right
    return node.id


def path_probability(node, target, logits):
    """The probability of a class below a node of scipy's tree, fork by fork."""
    if node.is_leaf():
        return 1.0
    means = torch.stack([logits[child.pre_order()].mean() for child in (node.left, node.right)])
    side = int(target in node.right.pre_order())
    chance = means.softmax(0)[side].item()
    return chance * path_probability((node.left, node.right)[side], target, logits)


@pytest.mark.parametrize("seed", range(3))
def test_inference_is_a_walk_through_the_tree(seed):
    rng = torch.Generator().manual_seed(seed)
    vectors, logits = torch.randn(9, 3, generator=rng), 3 * torch.randn(40, 9, generator=rng)
    root, found = to_tree(ward(vectors.double().numpy())), method(vectors).decide(logits)
    assert found["hard"].tolist() == [descended(root, row) for row in logits]
    chances = [[path_probability(root, k, row) for k in range(9)] for row in logits]
    assert found["soft"].tolist() == np.argmax(chances, 1).tolist()
    assert (found["soft"] != found["hard"]).any()


# ------------------------------------------------------------------------------- the loss


def test_there_is_one_stage_on_the_classes_that_takes_all_epochs():
    assert method().stages == (Stage(4, 20, 5, counts_from=0),)


@pytest.mark.parametrize("weight", [1.0, 10.0])
def test_the_loss_is_both_cross_entropies_by_hand(weight):
    logits = torch.tensor([[3.0, 1.0, -1.0, 3.0]])
    path = two_way(2.0, 1.0)[1] * two_way(-1.0, 3.0)[0]
    network = torch.tensor([3.0, 1.0, -1.0, 3.0]).softmax(0)[2].item()
    wanted = -np.log(network) - weight * np.log(path)
    assert method(weight=weight)(logits, batch_of([2])).item() == pytest.approx(wanted, rel=1e-6)


def test_the_loss_is_the_mean_over_the_batch():
    logits, targets = torch.randn(3, 4), [2, 0, 3]
    one_by_one = [
        method()(row[None], batch_of([k])) for row, k in zip(logits, targets, strict=True)
    ]
    torch.testing.assert_close(method()(logits, batch_of(targets)), torch.stack(one_by_one).mean())


def test_the_weight_is_one_unless_given_and_may_be_zero():
    logits, targets = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 0])
    assert method().weight == 1.0
    assert torch.equal(
        method(weight=0)(logits, batch_of(targets)), F.cross_entropy(logits, targets)
    )


def test_the_model_learns_from_both_losses():
    """Of two classes both losses are the same, so the gradient is 1 + 10 times that of one."""
    logits = torch.randn(3, 2, requires_grad=True)
    method(torch.randn(2, 4), weight=10)(logits, batch_of([0, 1, 1])).backward()
    wanted = 11 * (logits.softmax(1) - F.one_hot(torch.tensor([0, 1, 1]))) / 3
    torch.testing.assert_close(logits.grad, wanted.detach())


def test_classes_that_share_a_node_share_its_gradient():
    """Of the tree's loss for class 0: half of the upper fork's, and all of the lower one's."""
    logits = torch.tensor([[3.0, 1.0, -1.0, 3.0]], requires_grad=True)
    (-method().tree.log_probabilities(logits)[0, 0]).backward()
    upper, lower = two_way(2.0, 1.0)[1], two_way(3.0, 1.0)[1]
    wanted = [-upper / 2 - lower, -upper / 2 + lower, upper / 2, upper / 2]
    assert logits.grad.tolist() == [pytest.approx(wanted)]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan(4, 20, 5), "needs the final layer of a trained model"),
        (Plan(3, 20, 5, class_vectors=PAIRS.numpy()), "would have 4 classes, the data 3"),
    ],
)
def test_a_plan_without_what_it_needs_is_refused(plan, message):
    with pytest.raises(ValueError, match=message):
        NBDT(plan)


def test_the_tree_is_saved_with_the_method():
    """So that a run has its tree even where the baseline is gone."""
    other = method(CHAIN)
    other.load_state_dict(method(PAIRS).state_dict())
    logits = torch.randn(6, 4)
    for rule, found in other.decide(logits).items():
        assert torch.equal(found, method(PAIRS).decide(logits)[rule])
