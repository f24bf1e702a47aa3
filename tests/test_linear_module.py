"""The loss with the final layer in it, as a module: level, state, modes and a curriculum."""

import copy
import pickle

import pytest
import torch
from torch import nn

from coarse2fine import (
    CoarseToFineLinearLoss,
    CoarseToFineLoss,
    Curriculum,
    Hierarchy,
    find_head,
    level_accuracy,
    linear_loss,
)

LEVELS = [[0] * 6 + [1] * 6, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]]


@pytest.fixture
def hierarchy():
    return Hierarchy.from_levels(LEVELS)


@pytest.fixture
def batch():
    return torch.randn(8, 5), torch.randint(0, 12, (8,))


def test_is_the_loss_of_its_layers_logits_at_every_level(hierarchy, batch):
    options = {"weight": torch.rand(12), "label_smoothing": 0.1, "ignore_index": int(batch[1][0])}
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy, bias=True, **options)
    of_logits = CoarseToFineLoss(hierarchy, **options)
    logits = criterion.linear(batch[0])
    for level in (0, 1, 2):
        criterion.level = of_logits.level = level
        torch.testing.assert_close(criterion(*batch), of_logits(logits, batch[1]))
    criterion.level = of_logits.level = 0
    torch.testing.assert_close(criterion.eval()(*batch), of_logits.eval()(logits, batch[1]))


def test_takes_nodes_as_targets(hierarchy, batch):
    criterion, of_logits = CoarseToFineLinearLoss(5, 12, hierarchy), CoarseToFineLoss(hierarchy)
    target = torch.arange(10, 18)
    logits = criterion.linear(batch[0])
    for mode in (True, False):
        found = criterion.train(mode)(batch[0], target)
        torch.testing.assert_close(found, of_logits.train(mode)(logits, target))


def test_without_a_hierarchy_is_plain_cross_entropy(hierarchy, batch):
    criterion = CoarseToFineLinearLoss(5, 12)
    expected = nn.functional.cross_entropy(criterion.linear(batch[0]), batch[1])
    torch.testing.assert_close(criterion(*batch), expected)
    criterion.hierarchy = hierarchy
    assert criterion.level == 0
    assert criterion(*batch) < expected


def test_state_has_the_keys_of_torchs_module_and_the_level(hierarchy, batch):
    weight = torch.rand(12)
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy, bias=True, weight=weight)
    assert set(criterion.state_dict()) == {"linear.weight", "linear.bias", "weight"}
    criterion.level = 1
    other = CoarseToFineLinearLoss(5, 12, hierarchy, bias=True, weight=torch.ones(12))
    other.load_state_dict(criterion.state_dict())
    assert other.level == 1
    assert other(*batch) == criterion(*batch)


@pytest.mark.skipif(not hasattr(nn, "LinearCrossEntropyLoss"), reason="a newer torch has it")
def test_loads_from_and_into_torchs_module(hierarchy, batch):
    criterion, plain = CoarseToFineLinearLoss(5, 12, hierarchy), nn.LinearCrossEntropyLoss(5, 12)
    criterion.load_state_dict(plain.state_dict())
    torch.testing.assert_close(criterion.eval()(*batch), plain(*batch))
    plain.load_state_dict(criterion.state_dict())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
def test_copies_are_independent(hierarchy, batch, copied):
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy)
    criterion.level = 1
    expected = criterion(*batch)
    other = copied(criterion)
    criterion.level = 2
    assert (other.level, other(*batch)) == (1, expected)


def test_a_layer_that_the_model_has_may_take_the_place_of_its_own(hierarchy, batch):
    layer = nn.Linear(5, 12)
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy)
    criterion.linear = layer
    criterion(*batch).backward()
    assert layer.bias.grad is not None


def test_is_the_head_of_a_model_that_holds_it(hierarchy):
    model = nn.Sequential(nn.Linear(4, 5), CoarseToFineLinearLoss(5, 12, hierarchy))
    assert find_head(model)[1] is model[1].linear


def test_moves_with_to(hierarchy):
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy).to("meta")
    assert {tensor.device.type for tensor in criterion.state_dict().values()} == {"meta"}
    assert criterion.linear.weight.device.type == "meta"


def test_is_trained_by_a_curriculum_as_the_loss_of_logits(hierarchy):
    inputs, targets = torch.randn(48, 5), torch.arange(48) % 12
    weights = []
    for is_fused in (True, False):
        torch.manual_seed(0)
        fused = CoarseToFineLinearLoss(5, 12, hierarchy)
        criterion = fused if is_fused else CoarseToFineLoss(hierarchy)
        optimiser = torch.optim.SGD(fused.linear.parameters(), lr=0.5)
        curriculum, levels = Curriculum(criterion, epochs=4), []
        for _ in range(4):
            optimiser.zero_grad()
            criterion(inputs if is_fused else fused.linear(inputs), targets).backward()
            optimiser.step()
            levels.append(criterion.level)
            curriculum.step()
        weights.append(fused.linear.weight.detach())
    assert levels == [0, 1, 1, 2]
    torch.testing.assert_close(*weights)


@pytest.mark.parametrize("most", [2**23, 24])
def test_the_accuracy_at_a_level_comes_from_features(hierarchy, most, monkeypatch):
    monkeypatch.setattr(linear_loss, "_COUNTED", most)
    criterion = CoarseToFineLinearLoss(12, 12, hierarchy)
    with torch.no_grad():
        criterion.linear.weight.copy_(10 * torch.eye(12))
    shown, targets = torch.tensor([0, 1, 2, 3, 4]), torch.tensor([5, 1, 7, 8, 9])
    batches = [(torch.eye(12)[shown], targets)]
    assert level_accuracy(nn.Identity(), batches, criterion) == 2 / 5
    criterion.level = 2
    assert level_accuracy(nn.Identity(), batches, criterion) == 1 / 5


def test_another_number_of_classes_is_named(batch):
    criterion = CoarseToFineLinearLoss(5, 12, Hierarchy.from_levels([[0, 0, 1]]))
    with pytest.raises(ValueError, match=r"the level has 3 classes, so linear_weight must have"):
        criterion(*batch)


def test_a_validation_in_training_mode_is_noticed(hierarchy, batch):
    criterion = CoarseToFineLinearLoss(5, 12, hierarchy)
    with torch.no_grad(), pytest.warns(UserWarning, match=r"call criterion.eval\(\)") as record:
        criterion(*batch)
    assert record[0].filename == __file__


# What torch itself warns of while it compiles.
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
def test_a_compiled_training_step_is_the_same(hierarchy, batch):
    encoder, criterion = nn.Linear(5, 5), CoarseToFineLinearLoss(5, 12, hierarchy)
    inputs, targets = batch

    def loss():
        return criterion(torch.tanh(encoder(inputs)), targets)

    compiled = torch.compile(loss, backend="eager")
    for level in (0, 1, 2):
        criterion.level = level
        found, expected = compiled(), loss()
        parameters = [encoder.weight, criterion.linear.weight]
        torch.testing.assert_close(found, expected)
        grads = (torch.autograd.grad(each, parameters) for each in (found, expected))
        torch.testing.assert_close(*grads)
