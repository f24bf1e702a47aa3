"""Classes that count the same however many samples they have."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from studies import compare, metrics

from coarse2fine import Config, balanced_accuracy
from coarse2fine.data.sampling import balanced_class_weights
from coarse2fine.methods.plain import Plain
from coarse2fine.runs.directory import Run

SETTINGS = {"class_names": ("many", "few"), "max_levels": None, "methods": ()}


class Own(Plain):
    """A loss of its own, which says nothing of weights."""

    def forward(self, logits, batch):
        return 2 * super().forward(logits, batch)


def imbalanced(count, seed):
    """Two classes that overlap, one of them with a tenth of the samples."""
    rng = torch.Generator().manual_seed(seed)
    targets = (torch.arange(count) % 10 == 0).long()
    return torch.randn(count, 10, generator=rng) + 0.4 * targets[:, None], targets


def test_weights_are_those_of_scikit_learn(rng):
    targets = rng.choice(7, 500, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.04, 0.01])
    wanted = compute_class_weight("balanced", classes=np.arange(7), y=targets)
    np.testing.assert_allclose(balanced_class_weights(targets, 7), wanted)
    assert balanced_class_weights(torch.tensor(targets), 7)[targets].mean() == pytest.approx(1)


def test_a_class_without_samples_changes_no_other_weight():
    targets = [0, 0, 0, 2]
    wanted = compute_class_weight("balanced", classes=np.array([0, 2]), y=np.array(targets))
    found = balanced_class_weights(targets, 4)
    np.testing.assert_allclose(found[[0, 2]], wanted)
    assert found[[1, 3]].tolist() == [1, 1]


def test_balanced_weights_find_the_rare_class(tmp_path):
    train, test = imbalanced(400, 0), imbalanced(400, 1)
    found = {}
    for weights in (None, "balanced"):
        path = tmp_path / str(weights)
        (run,) = compare(path, train, test, class_weights=weights, **SETTINGS).runs
        predictions, targets = run.predictions("test")
        found[weights] = balanced_accuracy(predictions, targets), run.accuracy
        assert Run(run.path).config.settings["class_weights"] == weights
    assert found["balanced"][0] > found[None][0] + 0.1
    assert found["balanced"][1] < found[None][1]  # and by accuracy it is no better


def test_weights_count_the_samples_to_train_on_and_parts_of_a_batch_add_up(tmp_path):
    train, test = imbalanced(400, 0), imbalanced(100, 1)
    options = {**SETTINGS, "class_weights": "balanced", "optimiser": "sgd", "epochs": 2}
    whole = compare(tmp_path / "whole", train, test, **options)
    parts = compare(tmp_path / "parts", train, test, accumulate=4, **options)
    losses = [[line["loss"] for line in metrics(result.runs[0].path)] for result in (whole, parts)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


def test_a_method_that_does_not_weigh_is_refused():
    Config(methods=("test_class_weights:Own",))
    with pytest.raises(ValueError, match="method test_class_weights:Own does not weigh classes"):
        Config(methods=("test_class_weights:Own",), class_weights="balanced")


def test_other_weights_are_refused():
    with pytest.raises(ValueError, match="class_weights must be one of balanced. Got 'inverse'"):
        Config(class_weights="inverse")
