"""The loss with classes divided among processes: against one process with the whole batch."""

import pytest
import torch
from together import run_together

from coarse2fine import (
    CoarseToFineLinearLoss,
    Hierarchy,
    _linear_rows,
    _linear_tiles,
    coarse_cross_entropy,
)

FEATURES, CLASSES = 5, 13  # which neither 2 nor 4 divides
LEVELS = [[0] * 10 + [1] * 3, [0, 2, 2, 3, 3, 3, 0, 4, 2, 2, 1, 1, 1]]
COUNTS = {1: [8], 2: [5, 3], 4: [3, 0, 4, 1]}  # samples of each process
DRAWN = torch.Generator().manual_seed(1)
TARGETS = {
    "classes": torch.tensor([0, 12, 7, 3, 3, 9, 1, 11]),
    "nodes": torch.tensor([13, 14, 0, 15, 12, 16, 17, 18]),  # the root and clusters among them
    "probabilities": torch.rand(8, CLASSES, generator=DRAWN, dtype=torch.float64).softmax(1),
    "masks": torch.rand(8, CLASSES, generator=DRAWN) < torch.linspace(0.2, 1.2, 8)[:, None],
}
WEIGHT = torch.linspace(0.1, 2, CLASSES, dtype=torch.float64)
OPTIONS = {
    "plain": {},
    "weight": {"weight": WEIGHT},
    "ignore": {"ignore_index": 3},
    "all": {"weight": WEIGHT, "ignore_index": 3, "label_smoothing": 0.3},
}
CASES = [
    (kind, level, options, reduction)
    for kind in TARGETS
    for level in (0, 1, 2)
    for options in OPTIONS
    for reduction in ("mean", "none")
]
FEW = 5  # every fifth case has all kinds, levels, options and reductions among them
MOST_ENTRIES = {"kept": 60, "again": 5}


def parts_of_the_layer():
    """Features of all samples, and weight and bias."""
    draw = torch.Generator().manual_seed(5)
    shapes = (8, FEATURES), (CLASSES, FEATURES), (CLASSES,)
    return [torch.randn(shape, generator=draw, dtype=torch.float64) for shape in shapes]


def own_samples(mesh):
    """The samples of this process."""
    counts = COUNTS[mesh.size()]
    start = sum(counts[: mesh.get_rank()])
    return slice(start, start + counts[mesh.get_rank()])


def make_criterion(mesh, layer, **options):
    """A loss with a layer of these numbers."""
    criterion = CoarseToFineLinearLoss(
        FEATURES,
        CLASSES,
        Hierarchy.from_levels(LEVELS),
        bias=True,
        dtype=layer[0].dtype,
        mesh=mesh,
        **options,
    )
    own = slice(0, CLASSES)
    if mesh is not None:
        largest = -(-CLASSES // mesh.size())
        own = slice(mesh.get_rank() * largest, (mesh.get_rank() + 1) * largest)
    with torch.no_grad():
        for part, values in zip(criterion.linear.parameters(), layer, strict=True):
            (part if mesh is None else part.to_local()).copy_(values[own])
    return criterion


def options_of(kind, options):
    """What a loss of these targets is made with."""
    given, is_index = OPTIONS[options], TARGETS[kind].dim() == 1
    return {name: value for name, value in given.items() if is_index or name != "ignore_index"}


def up_of(loss):
    """A gradient of each loss that differs by sample."""
    return torch.ones_like(loss) if loss.dim() == 0 else torch.arange(1.0, 1 + len(loss))


def losses_and_gradients(mesh, plan, step):
    """Those of all cases, for the samples and the classes of this process."""
    _linear_tiles.TILE_ENTRIES, _linear_tiles.FEWEST_ROWS = 15, 2
    _linear_tiles.MOST_ROWS_AGAIN, _linear_tiles.KEPT_ENTRIES = 3, MOST_ENTRIES[plan]
    features, *layer = parts_of_the_layer()
    _linear_rows.ROW_ENTRIES = 15
    own, found = own_samples(mesh), []
    for kind, level, options, reduction in CASES[::step]:
        criterion = make_criterion(mesh, layer, reduction=reduction, **options_of(kind, options))
        criterion.level = level
        input = features[own].clone().requires_grad_()
        loss = criterion(input, TARGETS[kind][own])
        up = up_of(features[:, 0])[own] if reduction == "none" else None
        loss.backward(up, retain_graph=True)
        grads = [part.grad.full_tensor() for part in criterion.linear.parameters()]
        found.append([loss.detach(), input.grad, *grads])
    return found


def expected(case):
    """The same of one process with the whole batch, in which others' parts are summed."""
    kind, level, options, reduction = case
    features, *layer = parts_of_the_layer()
    criterion = make_criterion(None, layer, reduction=reduction, **options_of(kind, options))
    criterion.level = level
    input = features.requires_grad_()
    loss = criterion(input, TARGETS[kind])
    loss.backward(up_of(loss.detach()))
    return loss.detach(), input.grad, *(part.grad for part in criterion.linear.parameters())


@pytest.mark.parametrize(
    ("processes", "plan", "step"),
    [
        (2, "kept", FEW),
        pytest.param(1, "kept", 1, marks=pytest.mark.slow),
        pytest.param(2, "kept", 1, marks=pytest.mark.slow),
        pytest.param(4, "again", 1, marks=pytest.mark.slow),
    ],
)
def test_equals_one_process_with_the_whole_batch(processes, plan, step):
    found = run_together(processes, losses_and_gradients, plan, step)
    counts = COUNTS[processes]
    for at, case in enumerate(CASES[::step]):
        about = f"{case}: {{}}".format
        loss, of_input, *of_layer = expected(case)
        losses, inputs, *layers = zip(*(results[at] for results in found), strict=True)
        # DDP, which averages the gradients of what gives the features, divides by the processes.
        # So does the layer where each process has a loss of its own.
        is_one = case[-1] != "none"
        for one in losses if is_one else [torch.cat(losses)]:
            torch.testing.assert_close(one, loss, msg=about)
        assert [len(part) for part in inputs] == counts
        factor = processes if is_one else 1
        torch.testing.assert_close(
            torch.cat(inputs), of_input * factor, msg=lambda text, case=case: f"{case}: {text}"
        )
        for parts, whole in zip(layers, of_layer, strict=True):
            for part in parts:
                wanted = whole if is_one else whole / processes
                torch.testing.assert_close(
                    part, wanted, msg=lambda text, case=case: f"{case}: {text}"
                )


def few_classes(mesh):
    """Losses, gradients and logits of a layer of four classes, with the layer itself."""
    criterion = CoarseToFineLinearLoss(
        FEATURES, 4, Hierarchy.from_levels([[0, 0, 1, 1]]), dtype=torch.float64, mesh=mesh
    )
    features, found = parts_of_the_layer()[0], []
    for smoothing in (0, 0.1):
        criterion.label_smoothing = smoothing
        own = slice(2 * mesh.get_rank(), 2 * mesh.get_rank() + 2)
        input = features[own].clone().requires_grad_()
        loss = criterion(input, torch.tensor([0, 3]))
        loss.backward()
        found += [loss.detach(), input.grad / mesh.size()]
    with torch.no_grad():
        return criterion.linear.weight.full_tensor(), criterion.linear(features[own]), *found


@pytest.mark.slow
def test_a_process_may_have_no_classes_at_all():
    parts = run_together(3, few_classes)  # 2, 2 and 0
    weight, features = parts[0][0], parts_of_the_layer()[0][:6].requires_grad_()
    logits = features @ weight.T
    torch.testing.assert_close(torch.cat([part[1] for part in parts]), logits.detach())
    for at, smoothing in ((2, 0), (4, 0.1)):
        loss = coarse_cross_entropy(
            logits, torch.tensor([0, 3] * 3), [0, 0, 1, 1], label_smoothing=smoothing
        )
        (grad,) = torch.autograd.grad(loss, features, retain_graph=True)
        for part in parts:
            torch.testing.assert_close(part[at], loss.detach())
        torch.testing.assert_close(torch.cat([part[at + 1] for part in parts]), grad)


def first_weights(mesh):
    torch.manual_seed(mesh.get_rank())  # only the first process's counts
    criterion = CoarseToFineLinearLoss(FEATURES, 2500, bias=True, mesh=mesh)
    return [part.full_tensor().detach() for part in criterion.linear.parameters()]


@pytest.mark.slow
def test_first_weights_do_not_depend_on_the_number_of_processes():
    one, *others = (run_together(count, first_weights)[0] for count in (1, 2, 3))
    for other in others:
        torch.testing.assert_close(other, one, rtol=0, atol=0)
    for part in one:
        assert len(part.unique()) > 0.99 * part.numel()
        assert -(FEATURES**-0.5) <= part.min() < -0.4
        assert 0.4 < part.max() <= FEATURES**-0.5
