"""Which level at which epoch, and the rules for T."""

import io

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import (
    CoarseToFineLoss,
    Curriculum,
    Hierarchy,
    best_candidate,
    capped_length,
    epochs_to_reach,
    share_of_best_epoch,
)
from coarse2fine.curriculum import equal_shares


def hierarchy_of(levels):
    """A hierarchy of so many levels: 2, 4, 8, ... clusters."""
    classes = torch.arange(2**levels)
    return Hierarchy.from_levels([classes // 2 ** (levels - 1 - i) for i in range(levels)])


@pytest.fixture
def criterion():
    return CoarseToFineLoss(hierarchy_of(3))


def test_every_level_gets_an_equal_share_and_the_finest_goes_on(criterion):
    curriculum = Curriculum(criterion, epochs=9)
    levels = []
    for _ in range(12):
        assert criterion.level == curriculum.level
        levels.append(curriculum.level)
        curriculum.step()
    assert levels == [0] * 3 + [1] * 3 + [2] * 6


def test_steps_of_the_optimiser_count_by_choice(criterion):
    curriculum = Curriculum(criterion, steps=300)
    assert [curriculum.level_at(step) for step in (0, 99, 100, 199, 200, 10**9)] == [
        0,
        0,
        1,
        1,
        2,
        2,
    ]


@given(length=st.integers(1, 1000), levels=st.integers(1, 30))
def test_shares_are_equal_but_for_rounding_and_never_empty(length, levels):
    boundaries = equal_shares(length, levels)
    lengths = [b - a for a, b in zip((0, *boundaries), boundaries, strict=False)]
    assert len(boundaries) == levels - 1
    assert all(share >= 1 for share in lengths)
    if length >= levels:
        assert all(abs(share - length / levels) <= 1 for share in lengths)
        for level, boundary in enumerate(boundaries, 1):
            assert abs(boundary - level * length / levels) <= 0.5


def test_the_level_is_a_function_of_the_epoch_alone(criterion):
    curriculum = Curriculum(criterion, epochs=9)
    for epoch in (7, 2, 4, 0):
        curriculum.step(epoch)
        assert curriculum.level == criterion.level == curriculum.level_at(epoch)
    assert curriculum.epoch == 0
    assert not curriculum.is_finest
    curriculum.step(6)
    assert curriculum.is_finest


def test_boundaries_of_ones_own(criterion):
    curriculum = Curriculum(criterion, boundaries=[1, 5])
    assert [curriculum.level_at(epoch) for epoch in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_without_coarse_levels_training_is_plain():
    with pytest.warns(UserWarning, match="plain training"):
        flat = Hierarchy.from_levels([[0, 1, 2]])
    curriculum = Curriculum(CoarseToFineLoss(flat), epochs=5)
    assert curriculum.level == 0
    assert curriculum.is_finest


def test_a_short_curriculum_gives_every_coarse_level_one_epoch():
    criterion = CoarseToFineLoss(hierarchy_of(5))
    with pytest.warns(UserWarning, match=r"2 epochs is shorter than .* 4 coarse.*max_levels\(3\)"):
        curriculum = Curriculum(criterion, epochs=2)
    assert curriculum.boundaries == (1, 2, 3, 4)


@pytest.mark.parametrize("epochs", [0, -3])
def test_a_curriculum_of_no_epochs_is_refused(criterion, epochs):
    with pytest.raises(ValueError, match=rf"epochs must be at least 1. Got {epochs}.*CrossEntropy"):
        Curriculum(criterion, epochs=epochs)


@pytest.mark.parametrize("epochs", [2.5, "3", True])
def test_a_length_must_be_an_integer(criterion, epochs):
    with pytest.raises(TypeError, match="epochs must be an integer"):
        Curriculum(criterion, epochs=epochs)


@pytest.mark.parametrize("boundaries", [[1], [1, 2, 3], [3, 3], [4, 2], [0, 2], [-1, 2]])
def test_boundaries_must_rise_and_be_as_many_as_the_changes(criterion, boundaries):
    with pytest.raises(ValueError, match=r"boundaries must be 2 rising epochs from 1 on"):
        Curriculum(criterion, boundaries=boundaries)


@pytest.mark.parametrize("arguments", [{}, {"epochs": 3, "steps": 3}])
def test_exactly_one_length_is_given(criterion, arguments):
    with pytest.raises(ValueError, match="exactly one of epochs, steps, boundaries and patience"):
        Curriculum(criterion, **arguments)


def test_the_criterion_must_have_levels():
    with pytest.raises(TypeError, match="CoarseToFineLoss. Got CrossEntropyLoss"):
        Curriculum(torch.nn.CrossEntropyLoss(), epochs=3)


def test_an_epoch_before_the_first_is_refused(criterion):
    with pytest.raises(ValueError, match="epoch must be 0 or more. Got -1"):
        Curriculum(criterion, epochs=3).step(-1)


def test_state_carries_epoch_boundaries_and_hierarchy(criterion):
    curriculum = Curriculum(criterion, epochs=9)
    for _ in range(4):
        curriculum.step()
    file = io.BytesIO()
    torch.save(curriculum.state_dict(), file)
    file.seek(0)
    fresh = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 0, 0, 0, 0, 0, 1]]))
    resumed = Curriculum(fresh, epochs=50)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert resumed.epoch == 4
    assert resumed.boundaries == curriculum.boundaries
    assert fresh.hierarchy == criterion.hierarchy
    assert fresh.level == criterion.level == 1


def test_a_state_of_other_classes_is_refused_and_changes_nothing(criterion):
    other = Curriculum(CoarseToFineLoss(hierarchy_of(2)), epochs=4)
    curriculum = Curriculum(criterion, epochs=9)
    curriculum.step()
    with pytest.raises(ValueError, match="hierarchy has 4 classes, the loss 8"):
        curriculum.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match="lacks boundaries, hierarchy"):
        curriculum.load_state_dict({"epoch": 1})
    assert (curriculum.epoch, curriculum.boundaries) == (1, (3, 6))


def test_t_is_when_ninety_percent_of_the_best_are_reached():
    assert epochs_to_reach([0.1, 0.53, 0.54, 0.6, 0.2]) == 3
    assert epochs_to_reach([0.6]) == 1
    assert epochs_to_reach([0.1, 0.3, 0.6], fraction=0.5) == 2
    assert epochs_to_reach([0.0, 0.0]) == 1


def test_t_is_ninety_percent_of_the_best_epoch():
    assert share_of_best_epoch([0.1] * 9 + [0.5] + [0.4] * 20) == 9
    assert share_of_best_epoch([0.5, 0.5, 0.4]) == 1
    assert share_of_best_epoch([0.1, 0.2, 0.3], fraction=0.5) == 2


def test_t_is_the_best_candidate_the_shortest_of_equals():
    assert best_candidate([5, 10, 20], [0.1, 0.3, 0.2]) == 10
    assert best_candidate([20, 10, 5], [0.3, 0.3, 0.2]) == 10


def test_t_is_at_most_a_third_of_the_epochs():
    assert capped_length(10, 30) == 10
    with pytest.warns(UserWarning, match="42 of 50 epochs.*a third of them, 16"):
        assert capped_length(42, 50) == 16


@pytest.mark.parametrize("rule", [epochs_to_reach, share_of_best_epoch])
def test_rules_refuse_no_accuracies_and_nan(rule):
    with pytest.raises(ValueError, match="at least one epoch"):
        rule([])
    with pytest.raises(ValueError, match=r"accuracies\[1\] is nan"):
        rule([0.1, float("nan")])


def test_every_candidate_needs_an_accuracy():
    with pytest.raises(ValueError, match="each of the 2 candidates. Got 1"):
        best_candidate([5, 10], [0.1])


def test_a_loss_without_a_hierarchy_has_no_curriculum():
    with pytest.raises(ValueError, match="set criterion.hierarchy first"):
        Curriculum(CoarseToFineLoss(), epochs=3)


def test_says_when_the_finest_level_begins(criterion):
    curriculum = Curriculum(criterion, epochs=6)
    assert curriculum.level_at(curriculum.finest_epoch - 1) < len(curriculum.boundaries)
    assert curriculum.level_at(curriculum.finest_epoch) == len(curriculum.boundaries)
