"""The torchmetrics are the plain functions, batch by batch and process by process."""

import copy
import pickle

import numpy as np
import pytest
import torch

pytest.importorskip("torchmetrics")

from torchmetrics import MetricCollection

import coarse2fine
from coarse2fine import Hierarchy
from coarse2fine.integrations import torchmetrics as measures

HIERARCHY = Hierarchy.from_levels([[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2]])
FUNCTIONS = {
    measures.HierarchicalF1: coarse2fine.hierarchical_f1,
    measures.HierarchicalPrecision: coarse2fine.hierarchical_precision,
    measures.HierarchicalRecall: coarse2fine.hierarchical_recall,
    measures.LevelAccuracy: coarse2fine.level_accuracies,
    measures.MistakeSeverity: coarse2fine.mistake_severity,
    measures.MeanHeight: coarse2fine.mean_height,
    measures.HeightDistribution: coarse2fine.height_distribution,
}
OF_SCORES = {
    measures.Hops: coarse2fine.hops,
    measures.LevelCalibrationErrors: coarse2fine.level_calibration_errors,
}
SETS = (measures.HierarchicalF1, measures.HierarchicalPrecision, measures.HierarchicalRecall)
EACH = pytest.mark.parametrize("kind", FUNCTIONS, ids=lambda kind: kind.__name__)


@pytest.fixture
def samples(rng):
    return torch.from_numpy(rng.integers(0, 6, 90)), torch.from_numpy(rng.integers(0, 6, 90))


def same(found, expected):
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)


@EACH
def test_batches_count_as_all_at_once(kind, samples):
    metric = kind(HIERARCHY)
    for preds, target in zip(*(part.split(40) for part in samples), strict=True):
        metric.update(preds, target)
    same(metric.compute(), FUNCTIONS[kind](*samples, HIERARCHY))
    metric.reset()
    metric.update(*(part[:50] for part in samples))
    same(metric.compute(), FUNCTIONS[kind](*(part[:50] for part in samples), HIERARCHY))


@EACH
def test_the_states_of_two_processes_add_up(kind, samples):
    whole, first, second = kind(HIERARCHY), kind(HIERARCHY), kind(HIERARCHY)
    whole.update(*samples)
    first.update(*(part[:33] for part in samples))
    second.update(*(part[33:] for part in samples))
    first.merge_state(second)
    torch.testing.assert_close(first.compute(), whole.compute())


@EACH
def test_every_state_is_a_sum_over_processes(kind):
    metric = kind(HIERARCHY)
    for name, reduce in metric._reductions.items():
        state = torch.ones_like(getattr(metric, name))
        assert torch.equal(reduce(torch.stack([state, state])), 2 * state)


@pytest.mark.parametrize("kind", SETS, ids=lambda kind: kind.__name__)
def test_answers_at_inner_nodes_count(kind, rng):
    preds = torch.from_numpy(rng.integers(0, len(HIERARCHY.nodes), 60))
    target = torch.from_numpy(rng.integers(0, 6, 60))
    same(kind(HIERARCHY)(preds, target), FUNCTIONS[kind](preds, target, HIERARCHY))


@EACH
def test_logits_are_taken_too(kind, rng):
    logits, target = torch.from_numpy(rng.normal(size=(80, 6))), torch.arange(80) % 6
    given = logits if kind is measures.LevelAccuracy else logits.argmax(1)
    same(kind(HIERARCHY)(logits, target), FUNCTIONS[kind](given, target, HIERARCHY))


def test_a_level_predicts_the_cluster_of_largest_total_probability():
    logits = torch.tensor([[0.30, 0.01, 0.25, 0.01, 0.22, 0.21]]).log()
    same(measures.LevelAccuracy(HIERARCHY)(logits, torch.tensor([4])), [0, 1, 0])


def test_a_level_counts_the_targets_that_tell_its_clusters():
    preds = torch.tensor([0, 2, 2, 4, 5, 1])
    target = HIERARCHY.nodes.encode(["1", "level 1 cluster 0", "level 0 cluster 0"])
    target = torch.from_numpy(target).repeat(2)
    metric = measures.LevelAccuracy(HIERARCHY)
    metric.update(preds, target)  # all tell the coarsest level, four the next one, two the class
    same(metric.compute(), [4 / 6, 1 / 4, 0])
    assert metric.total.tolist() == [6, 4, 2]
    metric.update(torch.tensor([1]), torch.tensor([HIERARCHY.nodes.root]))
    assert metric.total.tolist() == [6, 4, 2]


@EACH
def test_a_metric_is_copied_pickled_and_collected(kind, samples):
    metric = kind(HIERARCHY)
    metric.update(*samples)
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        torch.testing.assert_close(other.compute(), metric.compute())
    assert MetricCollection([kind(HIERARCHY)])(*samples).keys() == {kind.__name__}
    assert metric.state_dict() == {}


OPTIONS = [
    (measures.Hops, {}),
    (measures.Hops, {"k": 3}),
    (measures.LevelCalibrationErrors, {}),
    (measures.LevelCalibrationErrors, {"bins": 4}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
@pytest.mark.parametrize("is_probability", [False, True])
def test_scores_count_batch_by_batch_and_process_by_process(kind, options, is_probability, rng):
    scores = torch.from_numpy(rng.normal(size=(90, 6)))
    scores = scores.softmax(1) if is_probability else scores
    target = torch.from_numpy(rng.integers(0, 6, 90))
    first, second = kind(HIERARCHY, **options), kind(HIERARCHY, **options)
    for preds, wanted in zip(scores[:70].split(40), target[:70].split(40), strict=True):
        first.update(preds, wanted)
    second.update(scores[70:].float(), target[70:])
    first.merge_state(pickle.loads(pickle.dumps(second)))
    expected = OF_SCORES[kind](scores, target, HIERARCHY, **options)
    np.testing.assert_allclose(first.compute().numpy(), expected, rtol=1e-5)
    for name, reduce in first._reductions.items():
        state = getattr(first, name)
        assert torch.equal(reduce(torch.stack([state, state])), 2 * state)
    assert copy.deepcopy(first).compute().equal(first.compute())
    first.reset()
    assert first.samples == 0


def test_scores_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="the hierarchy has 6 classes, so scores need as many"):
        measures.Hops(HIERARCHY).update(torch.zeros(2, 5), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"targets must lie in 0\.\.5. Got 7 at position 1"):
        measures.LevelCalibrationErrors(HIERARCHY).update(torch.zeros(2, 6), torch.tensor([0, 7]))
    with pytest.raises(ValueError, match="bins must be at least 1"):
        measures.LevelCalibrationErrors(HIERARCHY, bins=0)


@EACH
def test_bad_input_is_named(kind):
    metric = kind(HIERARCHY)
    with pytest.raises(ValueError, match=r"same shape. Got \(1,\) and \(2,\)"):
        metric.update(torch.tensor([0]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="target must lie in 0.*Got -1"):
        metric.update(torch.tensor([0]), torch.tensor([-1]))
