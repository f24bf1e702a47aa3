"""The loss as a function: against its definition, torch's cross-entropy and finite differences."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import gradcheck, gradgradcheck

from coarse2fine import _marginal, coarse_cross_entropy, coarse_log_softmax
from coarse2fine._level_loss import Options, level_cross_entropy

CLASSES = 12
CLUSTERS = {
    "even": torch.arange(CLASSES) // 3,
    "uneven": torch.tensor([0, 1, 0, 0, 2, 0, 3, 0, 0, 0, 0, 0]),
    "two": torch.arange(CLASSES) % 2,
    "finest": torch.arange(CLASSES),
}
OPTIONS = {
    "plain": {},
    "weight": {"weight": torch.linspace(0.1, 2, CLASSES, dtype=torch.float64)},
    "smoothing": {"label_smoothing": 0.2},
    "ignore": {"ignore_index": 3},
    "all": {
        "weight": torch.linspace(0.1, 2, CLASSES, dtype=torch.float64),
        "label_smoothing": 0.3,
        "ignore_index": 3,
    },
}
SHAPES = {"vector": (), "batch": (7,), "image": (2, 5), "volume": (2, 3, 4)}


def make(shape, dtype=torch.float64, *, soft=False):
    """Logits and targets for `shape` predictions; the classes are dimension 1, or 0."""
    logits = torch.randn(*shape[:1], CLASSES, *shape[1:], dtype=dtype)
    if soft:
        return logits, torch.rand_like(logits).softmax(min(1, logits.dim() - 1))
    return logits, torch.randint(0, CLASSES, shape)


def fitting(options, soft):
    """The options that a target of probabilities has too, where it is one."""
    return {k: v for k, v in options.items() if not soft or k != "ignore_index"}


def by_definition(logits, target, clusters, *, weight=None, ignore_index=-100, label_smoothing=0.0):
    """Losses and mean of single predictions, straight from the definition, in Python."""
    losses, counted = [], 0.0
    for row, wanted in zip(logits, target, strict=True):
        p = row.softmax(0)
        cluster_log_p = [
            math.log(sum(p[k].item() for k in range(CLASSES) if clusters[k] == clusters[c]))
            for c in range(CLASSES)
        ]
        w = [1.0] * CLASSES if weight is None else weight.tolist()
        if wanted.dim():
            share = (1 - label_smoothing) * wanted + label_smoothing / CLASSES
            losses.append(-sum(w[k] * share[k].item() * cluster_log_p[k] for k in range(CLASSES)))
            counted += 1
        elif wanted == ignore_index:
            losses.append(0.0)
        else:
            smooth = -sum(w[k] * cluster_log_p[k] for k in range(CLASSES)) / CLASSES
            hard = -w[wanted] * cluster_log_p[wanted]
            losses.append((1 - label_smoothing) * hard + label_smoothing * smooth)
            counted += w[wanted]
    return torch.tensor(losses, dtype=torch.float64), sum(losses) / counted


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_equals_the_definition(clusters, options, soft):
    logits, target = make((7,), soft=soft)
    options = fitting(options, soft)
    losses, mean = by_definition(logits, target, clusters, **options)
    found = coarse_cross_entropy(logits, target, clusters, reduction="none", **options)
    torch.testing.assert_close(found, losses)
    found = coarse_cross_entropy(logits, target, clusters, reduction="sum", **options)
    torch.testing.assert_close(found, losses.sum())
    found = coarse_cross_entropy(logits, target, clusters, **options)
    torch.testing.assert_close(found.item(), mean)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_at_the_finest_level_equals_torch(shape, options, soft, reduction, dense):
    logits, target = make(shape, torch.float32, soft=soft)
    options = fitting(options, soft)
    options = {name: v.float() if torch.is_tensor(v) else v for name, v in options.items()}
    clusters = CLUSTERS["finest"]
    expected = F.cross_entropy(logits, target, reduction=reduction, **options)
    if dense:
        defaults = {"weight": None, "ignore_index": -100, "label_smoothing": 0.0}
        given = Options(reduction=reduction, **defaults | options)
        found = level_cross_entropy(logits, target, clusters, None, given)
    else:
        found = coarse_cross_entropy(logits, target, clusters, reduction=reduction, **options)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("soft", [False, True])
def test_further_dimensions_are_single_predictions(clusters, soft):
    logits, target = make((2, 3, 4), soft=soft)
    found = coarse_cross_entropy(logits, target, clusters, reduction="none")
    flat = logits.movedim(1, -1).reshape(-1, CLASSES)
    flat_target = target.movedim(1, -1).reshape(-1, CLASSES) if soft else target.reshape(-1)
    expected = coarse_cross_entropy(flat, flat_target, clusters, reduction="none")
    torch.testing.assert_close(found, expected.view(2, 3, 4))


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_smoothing_is_a_target_of_probabilities(clusters, options):
    options = fitting(options, soft=True)
    smoothing = options.pop("label_smoothing", 0.1)
    logits, target = make((7,))
    by_option = coarse_cross_entropy(
        logits, target, clusters, reduction="sum", label_smoothing=smoothing, **options
    )
    smoothed = F.one_hot(target, CLASSES) * (1 - smoothing) + smoothing / CLASSES
    by_target = coarse_cross_entropy(logits, smoothed, clusters, reduction="sum", **options)
    torch.testing.assert_close(by_option, by_target)


@pytest.mark.parametrize("large_share", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("table_entries", [0, 2**20])
@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_every_way_of_finding_the_cluster_gives_the_same(
    monkeypatch, clusters, table_entries, large_share
):
    logits, target = make((3, 4))
    logits.requires_grad_()
    expected = -coarse_log_softmax(logits, clusters).gather(1, target[:, None]).mean()
    (expected_grad,) = torch.autograd.grad(expected, logits)
    monkeypatch.setattr(_marginal, "TABLE_ENTRIES", table_entries)
    monkeypatch.setattr(_marginal, "LARGE_SHARE", large_share)
    found = coarse_cross_entropy(logits, target, clusters)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(torch.autograd.grad(found, logits)[0], expected_grad)


def test_gradient_is_softmax_minus_softmax_within_the_cluster():
    logits = torch.tensor([[1.0, 2.0, 0.5, -1.0]], dtype=torch.float64, requires_grad=True)
    coarse_cross_entropy(logits, torch.tensor([2]), [0, 1, 1, 0]).backward()
    within = torch.zeros(4, dtype=torch.float64)
    within[[1, 2]] = logits.detach()[0, [1, 2]].softmax(0)
    torch.testing.assert_close(logits.grad[0], logits.detach()[0].softmax(0) - within)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("large_share", [0.0, 1.0], ids=["dense", "gathered"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_first_and_second_derivatives(monkeypatch, clusters, options, large_share, soft):
    monkeypatch.setattr(_marginal, "LARGE_SHARE", large_share)
    logits, target = make((2, 2), soft=soft)
    logits.requires_grad_()
    options = fitting(options, soft)

    def loss(logits):
        return coarse_cross_entropy(logits, target, clusters, reduction="none", **options)

    assert gradcheck(loss, (logits,))
    assert gradgradcheck(loss, (logits,))


@pytest.mark.parametrize("large_share", [0.0, 1.0], ids=["dense", "gathered"])
@pytest.mark.parametrize("scale", [1e4, -1e4])
def test_large_logits_are_safe(monkeypatch, scale, large_share):
    monkeypatch.setattr(_marginal, "LARGE_SHARE", large_share)
    logits = torch.tensor([[0.0, scale, scale, 0.0, 0.0, 0.0]], requires_grad=True)
    loss = coarse_cross_entropy(logits, torch.tensor([0]), [0, 1, 1, 2, 2, 2])
    loss.backward()
    expected = scale + math.log(2) if scale > 0 else math.log(4)
    assert loss.item() == pytest.approx(expected)
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("large_share", [0.0, 1.0], ids=["dense", "gathered"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(monkeypatch, dtype, large_share):
    monkeypatch.setattr(_marginal, "LARGE_SHARE", large_share)
    logits = torch.randn(64, CLASSES).mul(100).to(dtype).requires_grad_()
    target = torch.randint(0, CLASSES, (64,))
    loss = coarse_cross_entropy(logits, target, CLUSTERS["even"], reduction="sum")
    expected = coarse_cross_entropy(logits.float(), target, CLUSTERS["even"], reduction="sum")
    assert loss.dtype == torch.float32
    assert loss.item() == expected.item()
    loss.backward()
    assert logits.grad.dtype == dtype
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("large_share", [0.0, 1.0], ids=["dense", "gathered"])
def test_a_whole_cluster_at_minus_infinity(monkeypatch, large_share):
    monkeypatch.setattr(_marginal, "LARGE_SHARE", large_share)
    clusters = torch.tensor([0, 0, 1, 1, 2, 2, 2])
    logits = torch.tensor([[-math.inf, -math.inf, 1.0, 2.0, 0.0, 0.0, 0.0]] * 2)
    logits.requires_grad_()
    losses = coarse_cross_entropy(logits, torch.tensor([0, 3]), clusters, reduction="none")
    assert losses[0] == math.inf
    rest = torch.tensor([1.0, 2.0, 0.0, 0.0, 0.0]).log_softmax(0)
    torch.testing.assert_close(losses[1], -rest[:2].logsumexp(0))
    losses.sum().backward()
    assert logits.grad.isfinite().all()
    assert logits.grad[0, :2].tolist() == [0, 0]


@pytest.mark.parametrize("soft", [False, True])
def test_under_autocast_gives_float32(soft):
    logits, target = make((7,), torch.float32, soft=soft)
    with torch.autocast("cpu", torch.bfloat16):
        found = coarse_cross_entropy(logits.bfloat16(), target, CLUSTERS["even"])
    expected = coarse_cross_entropy(logits.bfloat16().float(), target, CLUSTERS["even"])
    torch.testing.assert_close(found, expected)


def test_a_mean_over_nothing_is_nan_as_in_torch():
    logits, target = make((3,))
    target.fill_(-100)
    assert coarse_cross_entropy(logits, target, CLUSTERS["even"]).isnan()
    assert F.cross_entropy(logits, target).isnan()


def test_clusters_may_be_a_list_or_an_array():
    logits, target = make((3,))
    expected = coarse_cross_entropy(logits, target, CLUSTERS["even"])
    assert coarse_cross_entropy(logits, target, CLUSTERS["even"].tolist()) == expected
    assert coarse_cross_entropy(logits, target, CLUSTERS["even"].numpy()) == expected


@pytest.mark.parametrize("table_entries", [0, 2**20])
@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
@pytest.mark.parametrize("wrong", [-1, CLASSES, 10**6])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_target_out_of_range_is_named(monkeypatch, clusters, wrong, table_entries, options):
    monkeypatch.setattr(_marginal, "TABLE_ENTRIES", table_entries)
    logits, target = make((4, 2))
    target[0, 0] = options.get("ignore_index", -100)
    target[2, 1] = wrong
    with pytest.raises(ValueError, match=rf"target\[2, 1\] is {wrong}.* 0\.\.{CLASSES - 1}"):
        coarse_cross_entropy(logits, target, clusters, **options)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_torchs_default_for_ignored_targets_is_a_wrong_index_beside_another(label_smoothing):
    logits, target = make((4,))
    target[2] = -100
    options = {"ignore_index": -1, "label_smoothing": label_smoothing}
    with pytest.raises(ValueError, match=r"target\[2\] is -100.*ignore_index \(-1\)"):
        coarse_cross_entropy(logits, target, CLUSTERS["even"], **options)


@pytest.mark.parametrize("clusters", CLUSTERS.values(), ids=CLUSTERS)
def test_the_loss_has_the_dtype_of_the_logits_whatever_torchs_default_is(clusters):
    logits, target = make((4,), torch.float32)
    expected = coarse_cross_entropy(logits, target, clusters)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        found = coarse_cross_entropy(logits.requires_grad_(), target, clusters)
        found.backward()
    finally:
        torch.set_default_dtype(before)
    assert found.dtype == logits.grad.dtype == torch.float32
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input": torch.zeros(4, 5)}, r"level has 12 classes.*dimension 1.*\(4, 5\)"),
        ({"input": torch.tensor(1.0)}, r"12 entries along dimension 0.*Got shape \(\)"),
        ({"target": torch.zeros(3, dtype=torch.long)}, r"class indices.*\(4,\)\. Got \(3,\)"),
        ({"target": torch.zeros(4, 5)}, r"class probabilities.*\(4, 12\)\. Got \(4, 5\)"),
        ({"weight": torch.ones(5)}, r"weight must have shape \(12,\)\. Got \(5,\)"),
        ({"clusters": [0.5] * CLASSES}, "clusters must hold integers. Got dtype float64"),
        ({"clusters": torch.rand(CLASSES)}, "clusters must give an integer.*torch.float32"),
        ({"clusters": [[0] * CLASSES]}, r"clusters must give an integer.*\(1, 12\)"),
        ({"clusters": [0, -3] * (CLASSES // 2)}, r"clusters\[1\] is -3; clusters count from 0"),
        ({"reduction": "max"}, "reduction 'max' is not supported. Must be one of 'mean'"),
        (
            {"target": torch.zeros(4, CLASSES), "ignore_index": 3},
            "ignore_index=3 means nothing for a target of class probabilities",
        ),
        ({"label_smoothing": 1.5}, "label_smoothing must be between 0 and 1. Got 1.5"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    good = {
        "input": torch.zeros(4, CLASSES),
        "target": torch.zeros(4, dtype=torch.long),
        "clusters": CLUSTERS["even"],
    }
    with pytest.raises((ValueError, TypeError), match=message):
        coarse_cross_entropy(**good | arguments)
