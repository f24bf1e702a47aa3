"""A curriculum whose levels last as long as they teach."""

import io
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy, level_accuracies, level_accuracy

LEVELS = [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]]


@pytest.fixture
def criterion():
    return CoarseToFineLoss(Hierarchy.from_levels(LEVELS))


def walked(curriculum, accuracies):
    """The level of each epoch, given the accuracy after it."""
    levels = []
    for accuracy in accuracies:
        levels.append(curriculum.level)
        assert curriculum.criterion.level == curriculum.level
        curriculum.step(accuracy)
    return levels


def test_a_level_is_left_when_it_has_not_improved_for_as_long_as_its_patience(criterion):
    curriculum = Curriculum(criterion, patience=2)
    #             improves, improves, not, not | a new level: worse, better, not, not | classes
    accuracies = [0.5, 0.6, 0.6, 0.55, 0.3, 0.4, 0.35, 0.4, 0.1]
    assert walked(curriculum, accuracies) == [0, 0, 0, 0, 1, 1, 1, 1, 2]
    assert curriculum.boundaries == (4, 8)
    assert curriculum.finest_epoch == 8
    assert curriculum.is_finest


def test_a_level_that_is_as_good_as_perfect_is_left_at_once(criterion):
    curriculum = Curriculum(criterion, patience=5)
    assert walked(curriculum, [0.98, 0.99, 0.5, 1.0, 0.2]) == [0, 0, 1, 1, 2]


def test_an_improvement_starts_the_count_again(criterion):
    curriculum = Curriculum(criterion, patience=2)
    rising = [0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.3]
    assert walked(curriculum, rising) == [0] * 7
    assert curriculum.level == 1


def test_coarse_levels_take_at_most_their_share_of_all_epochs(criterion):
    curriculum = Curriculum(criterion, patience=5, total_epochs=20, share=0.5)
    endless = np.linspace(0.1, 0.5, 20)
    assert walked(curriculum, endless) == [0] * 5 + [1] * 5 + [2] * 10


def test_what_a_level_leaves_over_goes_to_the_next(criterion):
    curriculum = Curriculum(criterion, patience=5, total_epochs=20, share=0.5)
    assert walked(curriculum, [1.0, *np.linspace(0.1, 0.5, 12)]) == [0] + [1] * 9 + [2] * 3


def test_without_a_total_there_is_no_limit(criterion):
    curriculum = Curriculum(criterion, patience=3)
    assert set(walked(curriculum, np.linspace(0.1, 0.9, 500))) == {0}


@given(
    accuracies=st.lists(st.floats(0, 1), min_size=12, max_size=60),
    patience=st.integers(1, 6),
    share=st.floats(0.05, 0.9),
)
def test_levels_never_go_back_and_the_classes_are_always_reached(accuracies, patience, share):
    criterion = CoarseToFineLoss(Hierarchy.from_levels(LEVELS))
    total = len(accuracies)
    curriculum = Curriculum(criterion, patience=patience, total_epochs=total, share=share)
    levels = walked(curriculum, accuracies)
    assert levels == sorted(levels)
    assert levels[-1] == 2
    assert sum(level < 2 for level in levels) <= max(share * total, 2)
    # Told afterwards, the boundaries give the same levels.
    assert [curriculum.level_at(epoch) for epoch in range(total)] == levels


@pytest.mark.parametrize("cut", range(9))
def test_a_restored_curriculum_goes_on_as_if_nothing_had_happened(criterion, cut):
    accuracies = [0.5, 0.6, 0.6, 0.55, 0.3, 0.4, 0.35, 0.4, 0.1]
    whole = walked(Curriculum(criterion, patience=2), accuracies)
    first = Curriculum(criterion, patience=2)
    before = walked(first, accuracies[:cut])
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    other = CoarseToFineLoss(Hierarchy.from_levels(LEVELS))
    second = Curriculum(other, patience=2)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert other.level == first.criterion.level
    assert before + walked(second, accuracies[cut:]) == whole


def test_the_limit_is_that_of_the_restored_hierarchy(criterion):
    short = CoarseToFineLoss(Hierarchy.from_levels(LEVELS[1:]))
    restored = Curriculum(short, patience=5, total_epochs=8)
    restored.load_state_dict(Curriculum(criterion, patience=5, total_epochs=8).state_dict())
    assert walked(restored, np.linspace(0.1, 0.5, 8)) == [0, 0, 1, 1, 2, 2, 2, 2]


def test_a_state_of_the_other_kind_is_refused(criterion):
    fixed, adaptive = Curriculum(criterion, epochs=6), Curriculum(criterion, patience=2)
    with pytest.raises(ValueError, match="state is one of a curriculum with a fixed length, and"):
        adaptive.load_state_dict(fixed.state_dict())
    with pytest.raises(ValueError, match="state is one of a curriculum with patience, and"):
        fixed.load_state_dict(adaptive.state_dict())


@pytest.mark.parametrize(
    ("accuracy", "error", "message"),
    [
        (None, ValueError, "step needs the validation accuracy at the level"),
        (57.0, ValueError, "accuracy must lie between 0 and 1. Got 57."),
        (-0.1, ValueError, "accuracy must lie between 0 and 1"),
        (float("nan"), ValueError, "accuracy must lie between 0 and 1. Got nan"),
        ("good", TypeError, "accuracy must be a number. Got 'good'"),
    ],
)
def test_what_is_no_accuracy_is_refused_and_changes_nothing(criterion, accuracy, error, message):
    curriculum = Curriculum(criterion, patience=2)
    before = curriculum.state_dict()
    with pytest.raises(error, match=message):
        curriculum.step(accuracy)
    assert curriculum.state_dict() == before


def test_an_epoch_cannot_be_gone_to(criterion):
    with pytest.raises(ValueError, match="the level of an epoch is not known ahead"):
        Curriculum(criterion, patience=2).step(epoch=3)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"patience": 0}, ValueError, "patience must be at least 1. Got 0"),
        ({"patience": 2.5}, TypeError, "patience must be an integer"),
        ({"patience": 2, "share": 1.0}, ValueError, "share must be at least 0 and less than 1"),
        ({"patience": 2, "share": -0.1}, ValueError, "share must be at least 0 and less than 1"),
        ({"patience": 2, "epochs": 3}, ValueError, "exactly one of epochs, steps, boundaries and"),
        ({"patience": 2, "total_epochs": 2}, ValueError, "they would never be reached"),
    ],
)
def test_faulty_settings_are_refused(criterion, options, error, message):
    with pytest.raises(error, match=message):
        Curriculum(criterion, **options)


def test_the_finest_level_needs_no_accuracy(criterion):
    curriculum = Curriculum(criterion, patience=1)
    walked(curriculum, [1.0, 1.0])
    curriculum.step()
    assert curriculum.epoch == 3


def test_a_forgotten_step_is_noticed(criterion):
    curriculum = Curriculum(criterion, patience=1)
    with pytest.warns(UserWarning, match="step of a Curriculum has never been called"):
        train_and_validate(criterion, 10)
    assert curriculum.epoch == 0


def train_and_validate(criterion, epochs):
    logits, targets = torch.zeros(2, 6, requires_grad=True), torch.tensor([0, 5])
    for _ in range(epochs):
        criterion.train()(logits, targets)
        criterion.eval()(logits, targets)


# ------------------------------------------------------------------------- level_accuracy


def random_batches(generator, classes=6, count=5):
    shapes = [(7, 4), (3, 4), (7, 4), (1, 4), (7, 4)][:count]
    return [
        (torch.randn(shape, generator=generator), torch.randint(classes, shape[:1]))
        for shape in shapes
    ]


@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_accuracy_is_that_of_the_metrics(criterion, level):
    model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.9)).train()
    batches = random_batches(torch.Generator().manual_seed(1))
    inputs, targets = map(torch.cat, zip(*batches, strict=True))
    criterion.level = level
    found = level_accuracy(model, batches, criterion)
    logits = model.eval()(inputs).detach()
    wanted = level_accuracies(logits, targets, criterion.hierarchy)[level]
    assert found == pytest.approx(wanted, abs=1e-12)


def test_the_model_is_left_in_its_mode_even_if_it_fails(criterion):
    model = nn.Linear(4, 6).train()
    level_accuracy(model, random_batches(torch.Generator()), criterion)
    assert model.training
    with pytest.raises(RuntimeError):
        level_accuracy(model, [(torch.zeros(2, 3), torch.zeros(2).long())], criterion)
    assert model.training


def test_ignored_targets_do_not_count(criterion):
    logits = 10 * torch.eye(6)[None].repeat(2, 1, 1)  # (N, K, d)
    targets = torch.tensor([[0, 1, 2, 3, 4, -100], [-100] * 6])
    found = level_accuracy(nn.Identity(), [(logits, targets)], criterion)
    assert found == 1.0
    targets[0, 0] = 5
    assert level_accuracy(nn.Identity(), [(logits, targets)], criterion) == 0.8


def test_nothing_to_measure_on_is_an_error(criterion):
    with pytest.raises(ValueError, match="no samples to measure the accuracy on"):
        level_accuracy(nn.Identity(), [], criterion)


SCRIPT = """
    from pathlib import Path
    import torch, torch.distributed as dist
    from torch import nn
    from coarse2fine import CoarseToFineLoss, Hierarchy, level_accuracy

    def work(rank, port):
        dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
        criterion = CoarseToFineLoss(Hierarchy.from_levels([[0, 0, 1, 1]]))
        targets = [torch.tensor([1, 1, 2, 2]), torch.tensor([2])][rank]
        found = level_accuracy(nn.Identity(), [(torch.eye(4)[: len(targets)], targets)], criterion)
        Path(__file__).with_name(f"{rank}").write_text(f"{found:.4f}")  # gloo prints things, too
        dist.destroy_process_group()

    if __name__ == "__main__":
        import socket
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        torch.multiprocessing.start_processes(work, (port,), 2, start_method="fork")
"""


def test_all_processes_get_the_accuracy_over_all_samples(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [(tmp_path / rank).read_text() for rank in "01"]
    assert found == ["0.8000", "0.8000"]  # 4 of 4, and 0 of 1
