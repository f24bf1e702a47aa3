"""What CoarseToFineClassifier refuses, and what it says then."""

import numpy as np
import pytest
import torch
from sklearn_cases import NAMES, grouped, quick
from torch import nn

from coarse2fine import Hierarchy


class Untrainable(nn.Linear):
    """Says so when training begins."""

    def forward(self, inputs):
        assert not self.training, "training has begun"
        return super().forward(inputs)


@pytest.fixture(scope="module")
def data():
    return grouped()


@pytest.mark.parametrize(
    ("settings", "error", "match"),
    [
        ({"max_epochs": 0}, ValueError, "max_epochs must be at least 1. Got 0"),
        ({"patience": -1}, ValueError, "patience must be at least 0. Got -1"),
        ({"batch_size": 1.5}, TypeError, "batch_size must be an integer. Got 1.5"),
        ({"width": 0}, ValueError, "width must be at least 1. Got 0"),
        ({"curriculum_epochs": -1}, ValueError, "curriculum_epochs must be at least 0. Got -1"),
        ({"curriculum_epochs": "long"}, TypeError, "an integer, 'adaptive' or 'reach-90'. Got 'lo"),
        ({"validation_fraction": 1.0}, ValueError, "more than 0 and less than 1. Got 1.0"),
        ({"validation_fraction": "0.2"}, TypeError, "fraction must be a number. Got '0.2'"),
        ({"lr": "0.1"}, TypeError, "lr must be a number. Got '0.1'"),
        ({"lr": True}, TypeError, "lr must be a number. Got True"),
        ({"lr": 0}, ValueError, "lr must be more than 0 and finite. Got 0"),
        ({"lr": float("nan")}, ValueError, "lr must be more than 0 and finite. Got nan"),
        ({"label_smoothing": 1.5}, ValueError, "label_smoothing must be from 0 to 1. Got 1.5"),
        ({"label_smoothing": -0.1}, ValueError, "label_smoothing must be from 0 to 1. Got -0.1"),
        ({"device": "gpu"}, ValueError, "one of those here: cpu.* Got 'gpu'"),
        ({"device": "cuda:99"}, ValueError, "one of those here: cpu.* Got 'cuda:99'"),
        ({"device": "meta"}, ValueError, "one of those here: cpu.* Got 'meta'"),
        ({"device": None}, ValueError, "one of those here: cpu.* Got None"),
        ({"optimizer": "adam"}, TypeError, "a class such as torch.optim.SGD. Got 'adam'"),
        ({"metric": "cosine"}, ValueError, "metric must be one of embedding, .*Got 'cosine'"),
        ({"linkage": "ward"}, ValueError, "linkage must be one of single, .*Got 'ward'"),
        ({"hierarchy": [[0, 1]]}, TypeError, "the hierarchy must be .*Got list"),
    ],
)
def test_bad_settings_are_refused_before_training(data, settings, error, match):
    with pytest.raises(error, match=match):
        quick(module=Untrainable(6, 8), **settings).fit(*data)


def test_a_loss_that_is_no_number_ends_training(data):
    message = (
        r"the loss became (nan|inf) in epoch 1, batch 2: first in what the model itself "
        r"\(Linear\) gives; lower the learning rate, or clip the gradients\. lr is 1e\+38\.$"
    )
    with pytest.raises(ValueError, match=message):
        quick(module=nn.Linear(6, 8), lr=1e38, optimizer=torch.optim.SGD).fit(*data)


PAIRS = Hierarchy.from_levels([np.arange(8) // 2])
THREE = Hierarchy.from_levels([np.arange(8) // 4, np.arange(8) // 2])


@pytest.mark.parametrize(
    ("hierarchy", "length", "takes"),
    [
        (PAIRS, 16, 8),  # half of T
        (THREE, 9, 6),  # two thirds
        (THREE, "reach-90", 2),  # an epoch for each coarse level
        (THREE, "adaptive", 2),
        (None, 12, 6),  # half of T, as there is one coarse level at least
        (None, "reach-90", 1),
        (None, "adaptive", 1),
    ],
)
def test_a_curriculum_without_room_for_the_finest_level_is_refused_before_training(
    data, hierarchy, length, takes
):
    settings = {"module": Untrainable(6, 8), "hierarchy": hierarchy, "curriculum_epochs": length}
    match = rf"at least {takes} epochs .* max_epochs is {takes}; give more"
    with pytest.raises(ValueError, match=match):
        quick(max_epochs=takes, **settings).fit(*data)
    with pytest.raises(AssertionError, match="training has begun"):
        quick(max_epochs=takes + 1, **settings).fit(*data)


def test_levels_that_only_the_baseline_tells_are_refused_after_it(data):
    # Half of T would leave room, two thirds of it would not.
    places = np.array([0, 1, 10, 11, 100, 101, 110, 111])  # pairs of pairs
    distances = np.abs(np.subtract.outer(places, places)) + 0.0
    with pytest.raises(ValueError, match="at least 7 epochs .* max_epochs is 6"):
        quick(max_epochs=6, metric=distances, curriculum_epochs=10).fit(*data)


def test_a_hierarchy_of_other_classes_is_refused(data):
    X, y = data
    with pytest.warns(UserWarning, match="plain training"):
        flat = Hierarchy.from_levels([np.arange(3)])
    with pytest.raises(ValueError, match="the hierarchy has 3 classes, the data 8"):
        quick(hierarchy=flat).fit(X, y)
    with pytest.raises(ValueError, match="the hierarchy has 4 classes, the data 8"):
        quick(hierarchy=Hierarchy.from_levels([[0, 0, 1, 1]])).fit(X, y)
    named = Hierarchy.from_levels([np.arange(8) // 2], [*NAMES[:7], "yak"])
    with pytest.raises(ValueError, match="hierarchy has no class or cluster 'hen'"):
        quick(hierarchy=named).fit(X, NAMES[y])


@pytest.mark.parametrize(
    ("module", "got"),
    [(nn.Linear(6, 7), r"\(2, 7\)"), (nn.LSTM(6, 8), "tuple"), (nn.Identity(), r"\(2, 6\)")],
)
def test_a_module_must_give_a_logit_for_each_class(data, module, got):
    with pytest.raises(ValueError, match=rf"each of the 8 classes, .* \(2, 8\) .* Got {got}"):
        quick(module=module).fit(*data)


@pytest.mark.parametrize(
    "module",
    [nn.Linear(7, 8), nn.Conv2d(1, 8, 3), nn.BatchNorm2d(6), nn.Bilinear(6, 6, 8)],
)
def test_a_module_must_take_the_samples(data, module):
    match = r"fails on 2 of them, a float32 tensor of the shape \(2, 6\): "
    with pytest.raises(ValueError, match=match) as caught:
        quick(module=module).fit(*data)
    assert str(caught.value).endswith(str(caught.value.__cause__))
