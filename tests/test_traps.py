"""What is easily done wrong in a loop of one's own is noticed."""

import gc
import warnings

import pytest
import torch
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3]])
LOGITS, TARGETS = torch.randn(4, 6), torch.tensor([0, 2, 3, 5])


class Net(nn.Module):
    def __init__(self, criterion):
        super().__init__()
        self.net, self.criterion = nn.Linear(3, 6), criterion


# ------------------------------------------------------------------------------- validation


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_validation_in_training_mode_at_a_coarse_level_warns_once_at_the_call(mode):
    criterion = CoarseToFineLoss(HIERARCHY)
    with mode(), pytest.warns(UserWarning, match=r"call criterion.eval\(\) before") as caught:
        [criterion(LOGITS, TARGETS) for _ in range(2)]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_what_is_done_right_does_not_warn():
    criterion = CoarseToFineLoss(HIERARCHY)
    criterion(LOGITS, TARGETS)
    with torch.no_grad():
        criterion.eval()(LOGITS, TARGETS)
        criterion.level = -1
        criterion.train()(LOGITS, TARGETS)
        CoarseToFineLoss()(LOGITS, TARGETS)  # no hierarchy yet


# ------------------------------------------------------------------------------ the length


@pytest.mark.parametrize("total", [1, 3, 4])
def test_a_curriculum_that_never_reaches_the_classes_is_refused(total):
    with pytest.raises(ValueError, match=rf"from epoch 5 on, and there are {total} in all"):
        Curriculum(CoarseToFineLoss(HIERARCHY), epochs=6, total_epochs=total)


@pytest.mark.parametrize("length", [{"epochs": 6}, {"steps": 6}, {"boundaries": (2, 4)}])
def test_one_epoch_of_the_classes_is_enough(length):
    assert Curriculum(CoarseToFineLoss(HIERARCHY), **length, total_epochs=5).finest_epoch == 4


# --------------------------------------------------------------------------- forgotten steps


def train_and_validate(criterion, epochs, step=lambda: None):
    for _ in range(epochs):
        criterion.train()(LOGITS, TARGETS)
        step()
        with torch.no_grad():
            criterion.eval()(LOGITS, TARGETS)


def test_a_step_that_is_never_called_is_noticed_while_training():
    curriculum = Curriculum(criterion := CoarseToFineLoss(HIERARCHY), epochs=3)
    train_and_validate(criterion, 2 * curriculum.finest_epoch + 1)
    with pytest.warns(UserWarning, match="though training has gone on after 5 eval") as caught:
        train_and_validate(criterion, 5)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_step_that_is_never_called_is_noticed_at_the_end():
    curricula = [Curriculum(criterion := CoarseToFineLoss(HIERARCHY), epochs=3)]
    for _ in range(101):
        criterion(LOGITS, TARGETS)
    with pytest.warns(UserWarning, match="though its loss was computed 101 times"):
        curricula.clear()


@pytest.mark.parametrize("length", [3, 30])
def test_a_curriculum_that_is_stepped_does_not_warn(length):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        curriculum = Curriculum(criterion := CoarseToFineLoss(HIERARCHY), epochs=length)
        train_and_validate(criterion, 120, curriculum.step)
        del curriculum
        gc.collect()


@pytest.mark.filterwarnings("ignore:The hierarchy of 6 classes has no level above")
def test_one_level_alone_needs_no_step():
    one_level = Hierarchy.from_levels([list(range(6))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        flat = CoarseToFineLoss(one_level)
        curriculum = Curriculum(flat, epochs=3)
        train_and_validate(flat, 120)
        del curriculum
        gc.collect()


# -------------------------------------------------------------------------------- state dicts


@pytest.mark.parametrize("weight", [None, torch.ones(6)])
def test_modules_with_either_loss_load_each_other_strictly(weight):
    ours, plain = Net(CoarseToFineLoss(HIERARCHY, weight)), Net(nn.CrossEntropyLoss(weight))
    ours.criterion.level = 1
    plain.load_state_dict(ours.state_dict(), strict=True)
    assert torch.equal(plain.net.weight, ours.net.weight)
    other = Net(CoarseToFineLoss(HIERARCHY, weight))
    other.criterion.level = 2
    other.load_state_dict(nn.Module.state_dict(plain), strict=True)
    assert other.criterion.level == 2  # a state without a level leaves it


def test_the_level_is_saved_with_a_module(tmp_path):
    ours, other = Net(CoarseToFineLoss(HIERARCHY)), Net(CoarseToFineLoss(HIERARCHY))
    ours.criterion.level = 1
    torch.save(ours.state_dict(), tmp_path / "state.pt")
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert other.criterion.level == 1


def test_a_state_of_0_1_brings_its_level():
    ours = Net(CoarseToFineLoss(HIERARCHY))
    state = {**ours.state_dict(), "criterion._level": torch.tensor(2)}
    ours.load_state_dict(state, strict=True)
    assert ours.criterion.level == 2
