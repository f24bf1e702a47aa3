"""The loss from features: against the loss of all logits, and what it never holds."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from coarse2fine import (
    Hierarchy,
    _linear_rows,
    _linear_sets,
    _linear_tiles,
    coarse_cross_entropy,
    coarse_linear_cross_entropy,
)
from coarse2fine._linear_tiles import make_plan

SAMPLES, FEATURES, CLASSES = 11, 5, 12
# Also one cluster with most of the classes, and the level of one class each.
HIERARCHY = Hierarchy.from_levels([[0] * 9 + [1] * 3, [0, 2, 2, 3, 3, 3, 0, 4, 2, 1, 1, 1]])
WEIGHT = torch.linspace(0.1, 2, CLASSES, dtype=torch.float64)
OPTIONS = {
    "plain": {},
    "weight": {"weight": WEIGHT},
    "ignore": {"ignore_index": 3},
    "smoothing": {"label_smoothing": 0.2},
    "all": {"weight": WEIGHT, "ignore_index": 3, "label_smoothing": 0.3},
}


@pytest.fixture(autouse=True, params=["kept", "again"])
def _small_pieces(request, monkeypatch):
    """Let these few logits have many pieces, by either plan."""
    monkeypatch.setattr(_linear_tiles, "TILE_ENTRIES", 15)
    monkeypatch.setattr(_linear_tiles, "FEWEST_ROWS", 3)
    monkeypatch.setattr(_linear_tiles, "MOST_ROWS_AGAIN", 4)
    monkeypatch.setattr(_linear_tiles, "KEPT_ENTRIES", 40 if request.param == "kept" else 30)
    monkeypatch.setattr(_linear_rows, "ROW_ENTRIES", 30)
    plan = make_plan(SAMPLES, CLASSES)
    assert plan.is_kept == (request.param == "kept")
    assert SAMPLES % plan.rows
    assert 1 < plan.columns < CLASSES


def make_layer(*, bias=True, dtype=torch.float64, shape=(SAMPLES,)):
    """Features, weight and bias (or None)."""
    parts = [
        torch.randn(*shape, FEATURES, dtype=dtype),
        torch.randn(CLASSES, FEATURES, dtype=dtype),
    ]
    parts = [*parts, torch.randn(CLASSES, dtype=dtype)] if bias else parts
    return *(part.requires_grad_() for part in parts), *([] if bias else [None])


def make_target(kind):
    if kind == "probabilities":
        return torch.rand(SAMPLES, CLASSES, dtype=torch.float64).softmax(1)
    if kind == "masks":
        return torch.rand(SAMPLES, CLASSES) < torch.linspace(0.2, 1.2, SAMPLES)[:, None]
    if kind == "nodes":
        return torch.cat([torch.arange(8, len(HIERARCHY.nodes)), torch.arange(8)])[:SAMPLES]
    return torch.cat([torch.arange(CLASSES - 2), torch.tensor([3])])


def both(layer, target, level, **options):
    """The loss from features, and the loss of all logits."""
    input, weight, bias = layer
    clusters = HIERARCHY.levels[level]
    found = coarse_linear_cross_entropy(
        input, weight, target, clusters, linear_bias=bias, **options
    )
    return found, coarse_cross_entropy(F.linear(*layer), target, clusters, **options)


def gradients(loss, layer, up, **options):
    parts = [part for part in layer if part is not None]
    return torch.autograd.grad(loss, parts, up, **options)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("kind", ["classes", "nodes", "probabilities", "masks"])
def test_equals_the_loss_of_all_logits(kind, level, options):
    is_index = kind in ("classes", "nodes")
    options = {k: v for k, v in options.items() if is_index or k != "ignore_index"}
    nodes = HIERARCHY.nodes if kind == "nodes" else None
    layer = make_layer(bias=bool(level % 2))
    target = make_target(kind)
    for reduction in ("mean", "sum", "none"):
        given = options | {"reduction": reduction, "nodes": nodes}
        found, expected = both(layer, target, level, **given)
        torch.testing.assert_close(found, expected)
        up = torch.rand_like(expected)
        torch.testing.assert_close(gradients(found, layer, up), gradients(expected, layer, up))


def test_equals_the_definition():
    features, weight, _ = make_layer(bias=False)
    clusters, target = HIERARCHY.levels[1].tolist(), torch.arange(SAMPLES)
    losses = []
    for row, wanted in zip((features @ weight.T).softmax(1).tolist(), target, strict=True):
        members = [p for p, own in zip(row, clusters, strict=True) if own == clusters[wanted]]
        losses.append(-math.log(sum(members)))
    found = coarse_linear_cross_entropy(features, weight, target, clusters)
    assert found.item() == pytest.approx(sum(losses) / SAMPLES, rel=1e-12)


@pytest.mark.parametrize("share", [0, 1], ids=["columns", "entries"])
@pytest.mark.parametrize("level", [0, 1])
def test_small_and_large_sets_are_the_same_by_either_way(level, share, monkeypatch):
    monkeypatch.setattr(_linear_sets, "SMALL_SHARE", share)
    layer = make_layer()
    found, expected = both(layer, make_target("nodes"), level, nodes=HIERARCHY.nodes)
    torch.testing.assert_close(found, expected)
    ones = torch.ones_like(found)
    torch.testing.assert_close(gradients(found, layer, ones), gradients(expected, layer, ones))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("level", [1, 2])
def test_derivatives_agree_with_finite_differences(level, reduction):
    layer, target = make_layer(shape=(4,)), torch.tensor([0, 3, -100, 11])

    def loss(input, weight, bias):
        options = {"linear_bias": bias, "reduction": reduction}
        return coarse_linear_cross_entropy(
            input, weight, target, HIERARCHY.levels[level], **options
        )

    assert gradcheck(loss, layer)
    assert gradgradcheck(loss, layer)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_a_second_backward_pass_gives_the_same_gradients(label_smoothing):
    layer = make_layer()
    loss, _ = both(layer, make_target("classes"), 1, label_smoothing=label_smoothing)
    up = torch.tensor(3.0, dtype=torch.float64)
    first = [grad.clone() for grad in gradients(loss, layer, up, retain_graph=True)]
    torch.testing.assert_close(gradients(loss, layer, up), tuple(first))


@pytest.mark.parametrize("needed", [(0,), (1,), (2,), (0, 2)])
def test_only_the_gradients_that_are_needed_are_computed(needed):
    layer = make_layer()
    for at, part in enumerate(layer):
        part.requires_grad_(at in needed)
    target = make_target("classes")
    for loss in both(layer, target, 1):
        loss.backward()
    found = [None if part.grad is None else part.grad / 2 for part in layer]
    for at, part in enumerate(layer):
        assert (part.grad is None) == (at not in needed)
        part.grad = None
    both(layer, target, 1)[1].backward()
    torch.testing.assert_close(found, [part.grad for part in layer])


class Products(TorchDispatchMode):
    """Counts matrix products and remembers the sizes of all new tensors."""

    def __init__(self):
        super().__init__()
        self.count, self.sizes = 0, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        self.count += func.overloadpacket in (
            torch.ops.aten.mm,
            torch.ops.aten.addmm,
            torch.ops.aten.addmm_,
        )
        if isinstance(found, torch.Tensor):
            self.sizes.append(found.untyped_storage().nbytes() // found.element_size())
        return found


@pytest.mark.parametrize("grad_enabled", [False, True])
def test_without_gradients_there_is_one_product_a_piece(grad_enabled):
    layer = make_layer()
    for part in layer:
        part.requires_grad_(grad_enabled)
    plan = make_plan(SAMPLES, CLASSES)
    pieces = math.ceil(SAMPLES / plan.rows) * math.ceil(CLASSES / plan.columns)
    with Products() as products:
        coarse_linear_cross_entropy(layer[0], layer[1], make_target("classes"), HIERARCHY.levels[1])
    with_gradients = 3 if plan.is_kept else 4
    assert products.count == pieces * (with_gradients if grad_enabled else 1)


@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}], ids=["plain", "smoothing"])
def test_never_holds_all_logits(options, level):
    samples = 50
    layer = make_layer(bias=False, shape=(samples,))
    target = torch.randint(0, CLASSES, (samples,))
    with Products() as products:
        found = coarse_linear_cross_entropy(
            layer[0], layer[1], target, HIERARCHY.levels[level], **options
        )
        found.backward()
    assert layer[1].grad is not None
    assert max(products.sizes) < samples * CLASSES


def test_ignored_samples_cost_nothing():
    layer, target = make_layer(), torch.full((SAMPLES,), -100)
    target[:2] = torch.tensor([4, 8])
    with Products() as products:
        found = coarse_linear_cross_entropy(*layer[:2], target, HIERARCHY.levels[1])
    assert max(products.sizes) <= CLASSES * FEATURES
    (grad,) = torch.autograd.grad(found, layer[0])
    assert (grad[2:] == 0).all()
    assert (grad[:2] != 0).all()


def test_a_root_and_an_ignored_target_have_no_loss():
    layer, root = make_layer(), HIERARCHY.nodes.root
    target = torch.tensor([root, -100] * 5 + [root])
    options = {"reduction": "none", "nodes": HIERARCHY.nodes}
    found, expected = both(layer, target, 1, **options)
    assert found.tolist() == expected.tolist() == [0] * SAMPLES


@pytest.mark.parametrize("level", [0, 1, 2])
def test_huge_logits_neither_overflow_nor_vanish(level):
    features, weight, bias = make_layer(dtype=torch.float32)
    with torch.no_grad():
        features.mul_(1e3)
    found, expected = both((features, weight, bias), make_target("classes"), level)
    assert expected > 100
    torch.testing.assert_close(found, expected)
    one = torch.ones(())
    layer = features, weight, bias
    torch.testing.assert_close(gradients(found, layer, one), gradients(expected, layer, one))


@pytest.mark.parametrize("share", [0, 1], ids=["columns", "entries"])
@pytest.mark.parametrize("level", [1, 2])
def test_classes_that_are_ruled_out_have_the_same_losses_and_gradients(level, share, monkeypatch):
    monkeypatch.setattr(_linear_sets, "SMALL_SHARE", share)
    features, weight, bias = make_layer()
    with torch.no_grad():
        bias[[0, 6]] = -torch.inf  # a cluster of level 1
    target, layer = torch.arange(SAMPLES), (features, weight, bias)
    found, expected = both(layer, target, level, reduction="none")
    assert found[0] == math.inf
    torch.testing.assert_close(found, expected)
    up = torch.ones_like(found)
    torch.testing.assert_close(gradients(found, layer, up), gradients(expected, layer, up))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("options", [{}, {"label_smoothing": 0.1}], ids=["plain", "smoothing"])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_half_precision_is_computed_in_float32(level, options, dtype):
    layer = make_layer(dtype=dtype)
    wide = [part.detach().float().requires_grad_() for part in layer]
    target = make_target("classes")
    found, _ = both(layer, target, level, **options)
    _, expected = both(wide, target, level, **options)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected)
    found.backward()
    expected.backward()
    for part, of_wide in zip(layer, wide, strict=True):
        assert part.grad.dtype == dtype
        torch.testing.assert_close(part.grad, of_wide.grad.to(dtype))


def test_a_gradient_too_small_for_half_precision_survives_in_a_scaled_loss():
    layer = make_layer(dtype=torch.float16)
    wide = [part.detach().float().requires_grad_() for part in layer]
    options = {"weight": torch.full((CLASSES,), 2.0**-28), "reduction": "sum"}
    target = make_target("classes")
    (both(layer, target, 1, **options)[0] * 2**28).backward()
    (both(wide, target, 1, **options)[1] * 2**28).backward()
    assert (layer[1].grad != 0).any()
    torch.testing.assert_close(layer[1].grad, wide[1].grad.half())


@pytest.mark.parametrize("level", [1, 2])
def test_autocast_changes_nothing(level):
    layer, target = make_layer(dtype=torch.float32), make_target("classes")
    _, expected = both(layer, target, level)
    rounded = layer[0].detach().bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        found, _ = both(layer, target, level)
        mixed, _ = both((rounded, *layer[1:]), target, level)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(mixed, expected, rtol=0.02, atol=0.02)
    one = torch.ones(())
    torch.testing.assert_close(gradients(found, layer, one), gradients(expected, layer, one))
    mixed.backward()
    assert rounded.grad.dtype == torch.bfloat16


@pytest.mark.parametrize("reentrant", [False, True])
def test_works_in_a_checkpoint(reentrant):
    layer, target = make_layer(), make_target("classes")

    def loss(input, weight, bias):
        hidden = torch.tanh(input)
        return both((hidden, weight, bias), target, 1)[0]

    found = checkpoint(loss, *layer, use_reentrant=reentrant)
    found.backward()
    grads = tuple(part.grad for part in layer)
    expected = both((torch.tanh(layer[0]), *layer[1:]), target, 1)[1]
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(grads, gradients(expected, layer, torch.ones_like(expected)))


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_features_may_have_any_dimensions_before_the_last(shape, reduction):
    layer, target = make_layer(shape=shape), torch.randint(0, CLASSES, shape)
    clusters = HIERARCHY.levels[1]
    given = {"linear_bias": layer[2], "reduction": reduction}
    found = coarse_linear_cross_entropy(*layer[:2], target, clusters, **given)
    logits = F.linear(*layer).reshape(-1, CLASSES)
    expected = coarse_cross_entropy(logits, target.reshape(-1), clusters, reduction=reduction)
    torch.testing.assert_close(found, expected.view(shape) if reduction == "none" else expected)
    assert gradients(found.sum(), layer, None)[0].shape == layer[0].shape


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_an_empty_batch_is_that_of_all_logits(label_smoothing, reduction):
    layer, target = make_layer(shape=(0,)), torch.zeros(0, dtype=torch.int64)
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    found, expected = both(layer, target, 1, **options)
    torch.testing.assert_close(found, expected, equal_nan=True)
    found.sum().backward()
    assert all((part.grad == 0).all() for part in layer)


def bad(match, **changes):
    return pytest.param(changes, match, id=match)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        bad(
            r"the level has 12 classes, so linear_weight must have shape \(12, E\). Got \(7, 5\)",
            linear_weight=torch.ones(7, 5),
        ),
        bad(
            r"takes 4 features, so input must have shape \(..., 4\). Got \(11, 5\)",
            linear_weight=torch.ones(12, 4),
        ),
        bad(r"linear_bias must have shape \(12,\). Got \(11,\)", linear_bias=torch.ones(11)),
        bad(
            r"input is torch.float32, linear_weight is torch.float64; convert them to one type",
            linear_weight=torch.ones(12, 5, dtype=torch.float64),
        ),
        bad(
            r"input must have a floating-point type. Got torch.int64",
            input=torch.ones(11, 5, dtype=torch.int64),
        ),
        bad(
            r"class indices for features of shape \(11, 5\) must have shape \(11,\). Got \(10,\)",
            target=torch.zeros(10, dtype=torch.int64),
        ),
        bad(r"target\[10\] is 12; class indices must lie in 0..11", target=torch.arange(2, 13)),
        bad(r"target\[0\] is -1; class indices", target=torch.arange(-1, 10)),
        bad(
            r"target\[4\] has no candidate class",
            target=torch.arange(11)[:, None].expand(11, 12) != 4,
        ),
        bad(r"weight must have shape \(12,\). Got \(3,\)", weight=torch.ones(3)),
        bad(r"reduction 'max' is not supported", reduction="max"),
        bad(r"label_smoothing must be between 0 and 1. Got 2", label_smoothing=2),
        bad(r"clusters\[1\] is -1; clusters count from 0", clusters=[0, -1] * 6),
    ],
)
def test_bad_input_is_named(changes, match):
    given = {
        "input": torch.ones(11, 5),
        "linear_weight": torch.ones(12, 5),
        "target": torch.arange(11),
        "clusters": HIERARCHY.levels[1],
    }
    with pytest.raises(ValueError, match=match):
        coarse_linear_cross_entropy(**given | changes)
