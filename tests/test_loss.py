"""The loss as a module: its level, state, modes and torch.compile."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch._dynamo.testing import CompileCounterWithBackend

from coarse2fine import CoarseToFineLoss, Hierarchy, coarse_cross_entropy

# What torch itself warns of while it compiles.
ignores_torch_warnings = pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")

LEVELS = [[0] * 6 + [1] * 6, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]


@pytest.fixture
def hierarchy():
    return Hierarchy.from_levels(LEVELS)


@pytest.fixture
def batch():
    return torch.randn(8, 12), torch.randint(0, 12, (8,))


def test_is_the_function_at_its_level(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy, label_smoothing=0.1, reduction="sum")
    for level, clusters in enumerate(hierarchy.levels):
        criterion.level = level
        expected = coarse_cross_entropy(*batch, clusters, label_smoothing=0.1, reduction="sum")
        assert criterion(*batch) == expected


def test_starts_at_the_coarsest_level_and_ends_as_plain_cross_entropy(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy)
    assert criterion.level == 0
    criterion.level = -1
    assert criterion.level == 2
    assert criterion(*batch) == F.cross_entropy(*batch)


def test_in_eval_mode_is_plain_cross_entropy_at_every_level(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy).eval()
    assert criterion(*batch) == F.cross_entropy(*batch)
    assert criterion.train()(*batch) != F.cross_entropy(*batch)


def test_passes_all_options_on(hierarchy, batch):
    weight = torch.rand(12)
    criterion = CoarseToFineLoss(hierarchy, weight, ignore_index=int(batch[1][0]))
    expected = coarse_cross_entropy(*batch, LEVELS[0], weight=weight, ignore_index=int(batch[1][0]))
    assert criterion(*batch) == expected
    assert isinstance(criterion, torch.nn.CrossEntropyLoss)


def test_level_is_saved_and_loaded(hierarchy, batch):
    criterion, other = CoarseToFineLoss(hierarchy), CoarseToFineLoss(hierarchy)
    criterion.level = 1
    other(*batch)
    other.load_state_dict(criterion.state_dict())
    assert other.level == 1
    assert other(*batch) == criterion(*batch)


def test_a_saved_level_that_the_hierarchy_lacks_is_refused(hierarchy):
    criterion = CoarseToFineLoss(hierarchy)
    criterion.level = 2
    shallow = CoarseToFineLoss(hierarchy.max_levels(2))
    with pytest.raises(ValueError, match=r"level must lie in 0\.\.1, or be -1. Got 2"):
        shallow.load_state_dict(criterion.state_dict())


def test_moves_with_to(hierarchy):
    criterion = CoarseToFineLoss(hierarchy).to("meta")
    assert {buffer.device.type for buffer in criterion.buffers()} == {"meta"}


def test_to_another_float_type_keeps_the_levels_whole(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy, weight=torch.ones(12)).double()
    loss = criterion(batch[0].double(), batch[1])
    assert loss.dtype == torch.float64
    torch.testing.assert_close(loss.float(), CoarseToFineLoss(hierarchy)(*batch))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))])
def test_copies_are_independent(hierarchy, batch, duplicate):
    criterion = CoarseToFineLoss(hierarchy)
    criterion.level = 1
    criterion(*batch)
    other = duplicate(criterion)
    assert other.level == 1
    assert other.hierarchy == hierarchy
    assert other(*batch) == criterion(*batch)
    other.level = 2
    assert criterion.level == 1


def test_another_hierarchy_starts_at_its_coarsest_level(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy)
    criterion.level = 2
    criterion.hierarchy = Hierarchy.from_levels([LEVELS[1]])
    assert criterion.level == 0
    assert criterion(*batch) == coarse_cross_entropy(*batch, LEVELS[1])


@pytest.mark.parametrize("level", [3, -4, 100])
def test_a_level_out_of_range_is_named(hierarchy, level):
    criterion = CoarseToFineLoss(hierarchy)
    with pytest.raises(ValueError, match=rf"0\.\.2, or be -1. Got {level}"):
        criterion.level = level
    assert criterion.level == 0


@pytest.mark.parametrize("level", [1.0, True, "1", None])
def test_a_level_must_be_an_integer(hierarchy, level):
    criterion = CoarseToFineLoss(hierarchy)
    with pytest.raises(TypeError, match="level must be an integer"):
        criterion.level = level


def test_the_hierarchy_must_be_one():
    with pytest.raises(TypeError, match="hierarchy must be a Hierarchy. Got list"):
        CoarseToFineLoss(LEVELS)


def test_another_number_of_classes_is_named(hierarchy):
    with pytest.raises(ValueError, match=r"level has 12 classes.*\(8, 10\)"):
        CoarseToFineLoss(hierarchy)(torch.randn(8, 10), torch.zeros(8, dtype=torch.long))


def test_prints_its_level(hierarchy):
    assert repr(CoarseToFineLoss(hierarchy)) == "CoarseToFineLoss(classes=12, level=0 of 0..2)"


def test_a_model_trained_through_the_levels_learns_the_classes(hierarchy):
    inputs = torch.eye(12).repeat(4, 1)
    targets = torch.arange(12).repeat(4)
    model = torch.nn.Linear(12, 12)
    criterion = CoarseToFineLoss(hierarchy)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.1)
    for level in range(3):
        criterion.level = level
        for _ in range(60):
            optimiser.zero_grad()
            criterion(model(inputs), targets).backward()
            optimiser.step()
        predictions = hierarchy.coarsen(model(inputs).argmax(1), level)
        assert (predictions == hierarchy.coarsen(targets, level)).all()


@ignores_torch_warnings
@pytest.mark.parametrize(
    "options",
    [{}, {"label_smoothing": 0.1}, {"weight": torch.linspace(0.5, 1.5, 12)}],
    ids=["plain", "smoothing", "weight"],
)
@pytest.mark.parametrize("backend", ["eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiles_once_for_all_levels(hierarchy, batch, options, backend):
    criterion = CoarseToFineLoss(hierarchy, **options)
    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    compiled = torch.compile(criterion, backend=counter, fullgraph=True)
    target = batch[1].clone()
    target[0] = -100
    for level in (0, 1, 2, 0):
        criterion.level = level
        logits = batch[0].clone().requires_grad_()
        loss = compiled(logits, target)
        (found,) = torch.autograd.grad(loss, logits)
        expected = criterion(logits, target)
        torch.testing.assert_close(loss, expected)
        torch.testing.assert_close(found, torch.autograd.grad(expected, logits)[0])
    assert counter.frame_count == 1


@ignores_torch_warnings
def test_a_compiled_step_with_the_model_serves_all_levels(hierarchy, batch):
    model = torch.nn.Linear(5, 12)
    criterion = CoarseToFineLoss(hierarchy)
    torch.compiler.reset()
    counter = CompileCounterWithBackend("eager")

    @torch.compile(backend=counter, fullgraph=True)
    def loss_of(inputs, target):
        return criterion(model(inputs), target)

    inputs = torch.randn(8, 5)
    for level in range(3):
        criterion.level = level
        torch.testing.assert_close(loss_of(inputs, batch[1]), criterion(model(inputs), batch[1]))
    assert counter.frame_count == 1


def test_eval_mode_treats_half_precision_and_bad_targets_as_training_does(hierarchy, batch):
    criterion = CoarseToFineLoss(hierarchy).eval()
    assert criterion(batch[0].half(), batch[1]).dtype == torch.float32
    with pytest.raises(ValueError, match=r"target\[0\] is 19"):
        criterion(batch[0], torch.full_like(batch[1], 19))


def test_without_a_hierarchy_it_is_plain_cross_entropy():
    criterion = CoarseToFineLoss(label_smoothing=0.1, weight=torch.tensor([1.0, 2.0, 3.0, 4.0]))
    logits, target = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, -100])
    expected = F.cross_entropy(logits, target, criterion.weight, label_smoothing=0.1)
    assert torch.equal(criterion(logits, target), expected)
    assert (criterion.hierarchy, criterion.level) == (None, 0)
    assert repr(criterion) == "CoarseToFineLoss(no hierarchy yet)"
    with pytest.raises(ValueError, match="level must lie in 0..0"):
        criterion.level = 1


def test_a_hierarchy_can_be_given_later():
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1]])
    criterion = CoarseToFineLoss()
    criterion.hierarchy = hierarchy
    logits, target = torch.randn(5, 4), torch.tensor([0, 1, 2, 3, 0])
    assert torch.equal(criterion(logits, target), CoarseToFineLoss(hierarchy)(logits, target))


def test_the_state_of_a_loss_with_levels_can_be_loaded_where_there_are_none():
    trained = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 1, 1]]))
    trained.level = 1
    criterion = CoarseToFineLoss()
    criterion.load_state_dict(trained.state_dict())
    assert criterion.level == 0
    trained.load_state_dict(criterion.state_dict())
    assert trained.level == 0


def test_the_state_of_torch_s_own_loss_can_be_loaded(hierarchy):
    criterion = CoarseToFineLoss(hierarchy)
    criterion.level = 1
    criterion.load_state_dict(torch.nn.CrossEntropyLoss().state_dict())
    assert criterion.level == 1


def test_a_refused_state_changes_nothing(hierarchy):
    deeper = CoarseToFineLoss(hierarchy)
    deeper.level = -1
    criterion = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 0, 1]]))
    criterion.level = 1
    with pytest.raises(ValueError, match="level must lie in 0..1"):
        criterion.load_state_dict(deeper.state_dict())
    assert (criterion.level, criterion._level.item()) == (1, 1)


def test_a_hierarchy_does_not_change_the_number_of_buffers(hierarchy):
    """By which averages of weights pair them."""
    criterion = CoarseToFineLoss()
    before = len(list(criterion.buffers()))
    criterion.hierarchy = hierarchy
    assert len(list(criterion.buffers())) == before
