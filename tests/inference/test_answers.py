"""A classifier that answers at any level once it is calibrated."""

import numpy as np
import pytest
import torch

from coarse2fine import Hierarchy, LevelPredictor
from coarse2fine.inference.classifier import Classifier
from coarse2fine.inference.clusters import node_names
from coarse2fine.inference.preprocessing import Preprocessing

NAMES = ("cat", "dog", "car", "bus")
HIERARCHY = Hierarchy.from_levels([[0, 0, 1, 1]], NAMES, [["pet", ""]])


def made(hierarchy=HIERARCHY):
    """A classifier whose logits are its inputs."""
    model = torch.nn.Linear(4, 4, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.eye(4))
    return Classifier(model, Preprocessing("table", (4,)), NAMES, hierarchy)


def held_out(rng, count=400):
    """Half of them can only be told apart as pets and vehicles."""
    targets = rng.integers(4, size=count)
    rows = 8.0 * (HIERARCHY.levels[0] == HIERARCHY.levels[0][targets][:, None])
    rows[::2] += 8.0 * np.eye(4)[targets[::2]]
    return rows + rng.normal(0, 0.1, rows.shape), [NAMES[target] for target in targets]


def test_it_answers_with_classes_and_clusters(rng):
    classifier = made()
    inputs, labels = held_out(rng)
    predictor = classifier.calibrate(inputs, labels, 0.9, 0.8)
    assert (predictor.accuracy, predictor.confidence) == (0.9, 0.8)
    assert predictor is classifier.level_predictor
    targets = [NAMES.index(label) for label in labels]
    same = LevelPredictor(HIERARCHY, 0.9, 0.8).fit(inputs.astype(np.float32), targets)
    assert predictor.threshold_ == same.threshold_
    new = np.array([[16.0, 8, 0, 0], [8, 8, 0, 0], [0, 0, 8, 8], [0, 0, 0, 0]])
    answers = ["cat", "pet", "car, bus", "(any)"]
    assert classifier.answer(new) == answers
    found = list(classifier.stream(new, batch_size=3))
    assert [each.answer for each in found] == answers
    assert [each.to_dict()["answer"] for each in found] == answers


def test_without_calibration_there_is_no_answer():
    classifier = made()
    (found,) = classifier.stream(np.zeros((1, 4)))
    assert found.answer is None
    with pytest.raises(ValueError, match="not calibrated yet; call calibrate first"):
        classifier.answer(np.zeros((1, 4)))


def test_what_cannot_calibrate_is_refused(rng):
    inputs, labels = held_out(rng, 60)
    with pytest.raises(ValueError, match="need a hierarchy, and the model has none"):
        made(None).calibrate(inputs, labels)
    with pytest.raises(ValueError, match=r"labels\[0\] is 'fox', which is not one of the model's"):
        made().calibrate(inputs, ["fox", *labels[1:]])
    with pytest.raises(ValueError, match=r"classes\. Did you mean 'cat'\?"):
        made().calibrate(inputs, ["catt", *labels[1:]])
    with pytest.raises(ValueError, match=r"'pet', which is not .* classes\. It is a cluster; give"):
        made().calibrate(inputs, ["pet", *labels[1:]])
    with pytest.raises(ValueError, match="there are 60 inputs but 59 labels"):
        made().calibrate(inputs, labels[1:])
    classifier = made()
    with pytest.raises(ValueError, match="at least 56 samples"):
        classifier.calibrate(inputs[:50], labels[:50])
    assert classifier.level_predictor is None


def test_nodes_are_called_as_the_clusters_of_a_prediction():
    levels = [[0, 0, 0, 1], [0, 0, 1, 2]]
    hierarchy = Hierarchy.from_levels(levels, NAMES, [["thing", ""], ["", "", ""]])
    assert node_names(hierarchy) == [*NAMES, "(any)", "thing", "cat, dog"]
