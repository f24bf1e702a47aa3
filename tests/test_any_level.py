"""Targets known at any depth: nodes of a hierarchy, and masks of candidates."""

import math

import pytest
import torch
import torch.nn.functional as F
from hierarchies import hierarchies
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounterWithBackend
from torch.autograd import gradcheck, gradgradcheck

from coarse2fine import CoarseToFineLoss, Hierarchy, coarse_cross_entropy, level_accuracy
from coarse2fine._candidates import node_slices, spans_at

CLASSES, ROOT = 12, 12
HIERARCHY = Hierarchy.from_levels(
    [[0, 1] * 6, [0, 1, 2, 1, 3, 4, 0, 4, 2, 4, 3, 1]]  # so that no cluster is a slice of 0..11
)
NODES = HIERARCHY.nodes
LEVELS = range(3)
WEIGHT = torch.linspace(0.1, 2, CLASSES, dtype=torch.float64)
OPTIONS = {
    "plain": {},
    "weight": {"weight": WEIGHT},
    "smoothing": {"label_smoothing": 0.2},
    "ignored class": {"ignore_index": 3},
    "ignored node": {"ignore_index": 14},
    "all": {"weight": WEIGHT, "label_smoothing": 0.3, "ignore_index": 3},
}
EVERY_NODE = torch.arange(len(NODES))
# What torch itself warns of while it compiles.
ignores_torch_warnings = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")


def classes_of(target):
    """The classes of a node, or of a row of a mask."""
    if target.dim():
        return target.nonzero()[:, 0].tolist()
    return NODES.classes(int(target)).tolist()


def by_enumeration(
    logits, target, clusters, *, weight=None, ignore_index=-100, label_smoothing=0.0
):
    """Losses and mean of single predictions, class by class."""
    weight = torch.ones(CLASSES) if weight is None else weight
    losses, counted = [], 0.0
    for row, wanted in zip(logits.double(), target, strict=True):
        if not wanted.dim() and wanted == ignore_index:
            losses.append(0.0)
            continue
        p, own = row.softmax(0), classes_of(wanted)
        touched = {int(clusters[k]) for k in own}
        hard = -math.log(sum(p[k] for k in range(CLASSES) if int(clusters[k]) in touched))
        smooth = 0.0
        for k in range(CLASSES):
            cluster = sum(p[j] for j in range(CLASSES) if clusters[j] == clusters[k])
            smooth -= weight[k].item() * math.log(cluster) / CLASSES
        mean_weight = sum(weight[k].item() for k in own) / len(own)
        losses.append((1 - label_smoothing) * mean_weight * hard + label_smoothing * smooth)
        counted += mean_weight
    return torch.tensor(losses, dtype=torch.float64), sum(losses) / counted


def random_mask(*shape):
    """Masks in which some rows have one class, some several and the last all."""
    mask = torch.rand(*shape) < torch.linspace(0, 1, shape[0]).view(-1, *[1] * (len(shape) - 1))
    mask[:, 5] |= ~mask.any(1)
    return mask


def fitting(options, target):
    """The options that a mask has too, where it is one."""
    return {k: v for k, v in options.items() if target.dtype != torch.bool or k != "ignore_index"}


TARGETS = {"nodes": EVERY_NODE, "mask": random_mask(len(NODES), CLASSES)}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_equals_the_enumeration_of_all_classes(level, options, target, dtype):
    clusters, options = HIERARCHY.levels[level], fitting(options, target)
    logits = torch.randn(len(target), CLASSES).to(dtype)
    losses, mean = by_enumeration(logits, target, clusters, **options)
    exact = {"rtol": 1e-5, "atol": 1e-6, "check_dtype": False}

    found = coarse_cross_entropy(logits, target, clusters, nodes=NODES, reduction="none", **options)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    torch.testing.assert_close(found, losses, **exact)
    found = coarse_cross_entropy(logits, target, clusters, nodes=NODES, reduction="sum", **options)
    torch.testing.assert_close(found, losses.sum(), **exact)

    criterion = CoarseToFineLoss(HIERARCHY, **options)
    criterion.level = level
    torch.testing.assert_close(criterion(logits, target).item(), mean, rtol=1e-5, atol=1e-6)


@settings(max_examples=40)
@given(hierarchies(), st.data())
def test_a_node_counts_at_the_coarser_of_itself_and_the_level(hierarchy, data):
    level = data.draw(st.integers(0, len(hierarchy.levels) - 1))
    nodes = hierarchy.nodes
    clusters = torch.tensor(hierarchy.levels[level])
    found = spans_at(*node_slices(nodes), clusters)
    coarser = nodes.at_level(level)
    assert found.level[:, 0].tolist() == nodes.starts[coarser].tolist()
    assert found.level[:, 1].tolist() == nodes.stops[coarser].tolist()

    logits, target = torch.randn(len(nodes), hierarchy.num_classes), torch.arange(len(nodes))
    losses = coarse_cross_entropy(logits, target, clusters, nodes=nodes, reduction="none")
    p = logits.softmax(1)
    for row, node in enumerate(coarser.tolist()):
        expected = -p[row, nodes.classes(node)].sum().log()
        torch.testing.assert_close(losses[row], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_first_and_second_derivatives(level, options, target):
    target, options = target[::3], fitting(options, target)
    logits = torch.randn(len(target), CLASSES, dtype=torch.float64, requires_grad=True)

    def loss(logits):
        return coarse_cross_entropy(
            logits, target, HIERARCHY.levels[level], nodes=NODES, reduction="none", **options
        )

    assert gradcheck(loss, (logits,))
    assert gradgradcheck(loss, (logits,))


@pytest.mark.parametrize("level", LEVELS)
def test_a_mask_of_a_nodes_classes_is_that_node(level):
    logits = torch.randn(len(NODES), CLASSES, dtype=torch.float64)
    mask = torch.zeros(len(NODES), CLASSES, dtype=torch.bool)
    for node in EVERY_NODE.tolist():
        mask[node, NODES.classes(node)] = True
    for options in ({}, {"weight": WEIGHT, "label_smoothing": 0.1}):
        criterion = CoarseToFineLoss(HIERARCHY, **options)
        criterion.level = level
        torch.testing.assert_close(criterion(logits, mask), criterion(logits, EVERY_NODE))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("level", LEVELS)
def test_a_node_in_the_batch_does_not_change_the_losses_of_the_classes(level, options):
    logits, target = torch.randn(8, CLASSES), torch.arange(8)
    criterion = CoarseToFineLoss(HIERARCHY, reduction="none", **options)
    criterion.level = level
    expected = criterion(logits, target)
    target = torch.cat([target, torch.tensor([15])])
    found = criterion(torch.cat([logits, torch.randn(1, CLASSES)]), target)
    torch.testing.assert_close(found[:8], expected, check_dtype=False)


@pytest.mark.parametrize("level", LEVELS)
def test_the_root_has_no_loss_and_no_gradient(level):
    logits = torch.randn(64, CLASSES, requires_grad=True)
    criterion = CoarseToFineLoss(HIERARCHY, reduction="sum")
    criterion.level = level
    for target in (torch.full((64,), ROOT), torch.ones(64, CLASSES, dtype=torch.bool)):
        loss = criterion(logits, target)
        assert loss.item() == 0
        assert not torch.autograd.grad(loss, logits)[0].any()


def test_in_eval_mode_a_node_counts_as_itself():
    logits, target = torch.randn(3, CLASSES), torch.tensor([2, 13, 15])
    losses = CoarseToFineLoss(HIERARCHY, reduction="none").eval()(logits, target)
    p = logits.softmax(1)
    expected = [-p[row, NODES.classes(node)].sum().log() for row, node in enumerate((2, 13, 15))]
    torch.testing.assert_close(losses, torch.stack(expected))


@pytest.mark.parametrize("level", LEVELS)
def test_further_dimensions_are_single_predictions(level):
    clusters = HIERARCHY.levels[level]
    logits = torch.randn(2, CLASSES, 3, 4, dtype=torch.float64)
    flat = logits.movedim(1, -1).reshape(-1, CLASSES)
    options = {"nodes": NODES, "reduction": "none", "weight": WEIGHT}
    nodes = torch.randint(0, len(NODES), (2, 3, 4))
    found = coarse_cross_entropy(logits, nodes, clusters, **options)
    expected = coarse_cross_entropy(flat, nodes.reshape(-1), clusters, **options)
    torch.testing.assert_close(found, expected.view(2, 3, 4))

    mask = random_mask(2, CLASSES, 3, 4)
    found = coarse_cross_entropy(logits, mask, clusters, **options)
    flat_mask = mask.movedim(1, -1).reshape(-1, CLASSES)
    torch.testing.assert_close(
        found, coarse_cross_entropy(flat, flat_mask, clusters, **options).view(2, 3, 4)
    )
    single = coarse_cross_entropy(flat[5], flat_mask[5], clusters, **options)
    torch.testing.assert_close(single, found.movedim(0, -1).movedim(-1, 0).reshape(-1)[5])
    single = coarse_cross_entropy(flat[0], nodes[0, 0, 0], clusters, **options)
    torch.testing.assert_close(single, expected[0])


@pytest.mark.parametrize("shape", [(3, CLASSES), (3, CLASSES, 2), (CLASSES,)])
def test_a_mask_needs_no_hierarchy(shape):
    logits, mask = torch.randn(shape), torch.rand(shape) < 0.5
    mask.select(min(1, len(shape) - 1), 4).fill_(True)
    criterion = CoarseToFineLoss(reduction="none", weight=WEIGHT.float())
    clusters = HIERARCHY.levels[-1]
    expected = coarse_cross_entropy(logits, mask, clusters, reduction="none", weight=WEIGHT.float())
    torch.testing.assert_close(criterion(logits, mask), expected)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
@pytest.mark.parametrize("hierarchy", [HIERARCHY, None])
def test_integers_of_any_size_are_targets(hierarchy, dtype):
    criterion = CoarseToFineLoss(hierarchy)
    target = torch.tensor([0, 7, 14 if hierarchy else 11])
    logits = torch.randn(3, CLASSES)
    assert criterion(logits, target.to(dtype)) == criterion(logits, target)


def test_a_node_without_a_hierarchy_is_an_error_that_says_so():
    for input, target in (
        (torch.zeros(2, 4), [0, 5]),
        (torch.zeros(2, 4, 3), [[0, 1, 2], [5] * 3]),
    ):
        message = "Target 5 is out of bounds: the loss has no hierarchy yet, so targets must be cla"
        with pytest.raises(ValueError, match=message):
            CoarseToFineLoss()(input, torch.tensor(target))


@pytest.mark.parametrize("hierarchy", [HIERARCHY, None])
@pytest.mark.parametrize("target", [[0, 1], NODES.encode(["0", "1"])])
def test_a_target_that_is_no_tensor_is_refused(hierarchy, target):
    with pytest.raises(TypeError, match=r"target must be a tensor; make one by torch.as_tensor. G"):
        CoarseToFineLoss(hierarchy)(torch.zeros(2, CLASSES), target)


def test_logits_of_minus_infinity_are_safe():
    logits = torch.zeros(3, CLASSES)
    logits[:, [0, 6]] = -math.inf  # a whole cluster of level 1
    logits.requires_grad_()
    node = int(NODES.of_level[1][0])
    losses = coarse_cross_entropy(
        logits, torch.tensor([node, ROOT, -100]), HIERARCHY.levels[1], nodes=NODES, reduction="none"
    )
    assert losses.tolist() == [math.inf, 0, 0]
    losses.sum().backward()
    assert logits.grad.isfinite().all()


@ignores_torch_warnings
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize(
    "options", [{}, {"weight": WEIGHT.float(), "label_smoothing": 0.1}], ids=["plain", "all"]
)
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiles_once_for_all_levels(target, options, backend):
    criterion = CoarseToFineLoss(HIERARCHY, **options)
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(criterion, backend=counter, fullgraph=True)
    logits = torch.randn(len(target), CLASSES, requires_grad=True)
    for level in (0, 1, 2, 0):
        criterion.level = level
        loss, expected = compiled(logits, target), criterion(logits, target)
        torch.testing.assert_close(loss, expected)
        (found,) = torch.autograd.grad(loss, logits)
        torch.testing.assert_close(found, torch.autograd.grad(expected, logits)[0])
    assert counter.frame_count == 1


@ignores_torch_warnings
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_compiles_in_eval_mode(target):
    criterion = CoarseToFineLoss(HIERARCHY).eval()
    torch.compiler.reset()
    compiled = torch.compile(criterion, backend="eager", fullgraph=True)
    logits = torch.randn(len(target), CLASSES)
    torch.testing.assert_close(compiled(logits, target), criterion(logits, target))


@ignores_torch_warnings
def test_the_function_compiles():
    torch.compiler.reset()
    clusters = torch.tensor(HIERARCHY.levels[1])

    @torch.compile(backend="eager", fullgraph=True)
    def compiled(logits, target):
        return coarse_cross_entropy(logits, target, clusters, nodes=NODES)

    logits = torch.randn(len(NODES), CLASSES)
    expected = coarse_cross_entropy(logits, EVERY_NODE, clusters, nodes=NODES)
    torch.testing.assert_close(compiled(logits, EVERY_NODE), expected)


def test_an_ignored_index_beyond_the_nodes_is_no_node():
    logits, target = torch.randn(3, CLASSES), torch.tensor([1, 255, 2])
    criterion = CoarseToFineLoss(HIERARCHY, ignore_index=255).eval()
    assert criterion(logits, target) == F.cross_entropy(logits, target, ignore_index=255)


def test_samples_that_do_not_say_their_cluster_do_not_count_for_the_accuracy():
    criterion = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 1, 1]]))
    logits = torch.eye(4)
    # One right, one wrong, the root, and the cluster of the first two.
    nodes = [(logits, torch.tensor([1, 2, 4, 5]))]
    assert level_accuracy(torch.nn.Identity(), nodes, criterion) == pytest.approx(1 / 3)
    mask = torch.tensor([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 0, 0, 1]]).bool()
    masks = [(logits, mask)]
    assert level_accuracy(torch.nn.Identity(), masks, criterion) == pytest.approx(2 / 3)
    criterion.level = 1
    assert level_accuracy(torch.nn.Identity(), masks, criterion) == 1


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("wrong", [-1, len(NODES), 10**6])
def test_a_target_beyond_the_nodes_is_named(level, wrong):
    criterion = CoarseToFineLoss(HIERARCHY)
    criterion.level = level
    target = torch.tensor([0, 13, wrong, -100])
    message = (
        rf"target\[2\] is {wrong}; .* 0\.\.11, nodes of the hierarchy in 0\.\.{len(NODES) - 1}"
    )
    with pytest.raises(ValueError, match=message):
        criterion(torch.randn(4, CLASSES), target)


@pytest.mark.parametrize("level", LEVELS)
def test_a_row_without_candidates_is_named(level):
    criterion = CoarseToFineLoss(HIERARCHY)
    criterion.level = level
    mask = torch.ones(4, CLASSES, 2, dtype=torch.bool)
    mask[2, :, 1] = False
    with pytest.raises(ValueError, match=r"target\[2, 1\] has no candidate class"):
        criterion(torch.randn(4, CLASSES, 2), mask)
    with pytest.raises(ValueError, match="target has no candidate class"):
        criterion(torch.randn(CLASSES), torch.zeros(CLASSES, dtype=torch.bool))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": torch.ones(4, 5, dtype=torch.bool)}, r"\(a mask\).*\(4, 12\)\. Got \(4, 5\)"),
        ({"target": torch.ones(4, dtype=torch.bool)}, r"\(a mask\).*\(4, 12\)\. Got \(4,\)"),
        ({"target": torch.ones(4, 12, dtype=torch.int64)}, r"A mask of candidate .* be boolean\."),
        ({"nodes": HIERARCHY}, "nodes must be the Nodes of a hierarchy. Got Hierarchy"),
        ({"clusters": [0] * 6 + [1] * 6}, "clusters must be a level of the hierarchy"),
        ({"nodes": Hierarchy.from_levels([[0, 0, 1]]).nodes}, "of 3 classes, and clusters has 12"),
        (
            {"target": torch.ones(4, CLASSES, dtype=torch.bool), "ignore_index": 3},
            "ignore_index=3 means nothing for a target of candidate classes",
        ),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    good = {
        "input": torch.zeros(4, CLASSES),
        "target": torch.tensor([0, 13, 12, 3]),
        "clusters": HIERARCHY.levels[0],
        "nodes": NODES,
    }
    with pytest.raises((ValueError, TypeError), match=message):
        coarse_cross_entropy(**good | arguments)
