"""An adaptive curriculum in the loop, in fit, and in runs that are taken up again."""

import pytest
from studies import (
    NAMES,
    Interrupting,
    InterruptionError,
    compare,
    dropping,
    method_state,
    metrics,
    outcome,
    same_tensors,
    train,
    weights,
)
from test_longer import Listening, assert_same

from coarse2fine import CoarseToFineLoss, Curriculum, Hierarchy

LEVELS = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]], NAMES)
ADAPTIVE = {"curriculum_epochs": "adaptive", "max_levels": None, "hierarchy": LEVELS}


def replayed(lines, patience, epochs):
    """The levels that the logged accuracies lead to."""
    curriculum = Curriculum(CoarseToFineLoss(LEVELS), patience=patience, total_epochs=epochs)
    levels = []
    for line in lines:
        levels.append(curriculum.level)
        curriculum.step(line["level_accuracy"])
    return levels, curriculum.finest_epoch


@pytest.mark.parametrize("patience", [1, 3])
def test_levels_follow_from_the_accuracies_at_them(patience, tmp_path):
    options = {"method_settings": {"continuous.patience": patience}, "epochs": 16}
    _, run = compare(tmp_path, **ADAPTIVE, **options).runs
    lines = metrics(run.path)
    levels, finest = replayed(lines, patience, 16)
    assert [line["level"] for line in lines] == levels
    assert set(levels) == {0, 1, 2}
    assert run.curriculum_epochs == finest
    assert run.best_epoch > finest


def test_the_best_epoch_and_patience_are_of_the_finest_level(tmp_path):
    options = {"method_settings": {"continuous.patience": 1}, "patience": 2, "epochs": 40}
    _, run = compare(tmp_path, **ADAPTIVE, **options).runs
    fine = [line for line in metrics(run.path) if line["level"] == 2]
    best = max(fine, key=lambda line: line["accuracy"])
    assert run.best_epoch == best["epoch"]
    assert run.epochs == max(best["epoch"], run.curriculum_epochs) + 2


def test_a_run_interrupted_in_every_epoch_ends_as_if_it_had_not_been(tmp_path):
    options = {"method": "continuous", "model": dropping, "epochs": 12, "length": None}
    options |= {"curriculum_epochs": "adaptive", "method_settings": {"continuous.patience": 2}}
    undisturbed = train(tmp_path / "undisturbed", **options)
    levels = [line["level"] for line in metrics(undisturbed.path)]
    assert levels != sorted(range(3), key=levels.index)  # some level lasts for several epochs
    often = tmp_path / "often"
    for epoch in range(1, 13):
        with pytest.raises(InterruptionError):
            train(often, watcher=Interrupting(epoch), checkpoint_seconds=0.0, **options)
    run = train(often, checkpoint_seconds=0.0, **options)
    assert outcome(run) == outcome(undisturbed)
    assert metrics(run.path) == metrics(undisturbed.path)
    assert same_tensors(weights(run), weights(undisturbed))
    assert same_tensors(method_state(run), method_state(undisturbed))


@pytest.mark.parametrize(
    ("fewer", "patience", "said"),
    [
        (12, 1, "goes on from epoch 12"),
        (4, 3, "trained anew: its level 1 would begin later than at epoch 2"),  # was cut short
    ],
)
def test_more_epochs_go_on_only_where_levels_would_have_been_the_same(
    fewer, patience, said, tmp_path
):
    options = {**ADAPTIVE, "method_settings": {"continuous.patience": patience}}
    compare(tmp_path / "out", epochs=fewer, **options)
    watcher = Listening()
    found = compare(tmp_path / "out", epochs=16, watcher=watcher, **options)
    assert_same(found, compare(tmp_path / "fresh", epochs=16, **options))
    assert f"seed 0 continuous: {said}." in watcher.said


def test_it_needs_no_baseline_but_validation_samples(tmp_path):
    (run,) = compare(tmp_path / "alone", baseline=False, **ADAPTIVE).runs
    assert run.method == "continuous"
    with pytest.raises(ValueError, match="'adaptive' for curriculum_epochs needs validation sampl"):
        compare(tmp_path / "none", val_share=0.0, **ADAPTIVE)
