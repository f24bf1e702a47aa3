"""How good a model is on a split, at the classes and at a level."""

import pytest
import torch
import torch.nn.functional as F
from studies import CONFIG, Net, hierarchy, table
from torch import nn

from coarse2fine import level_accuracies
from coarse2fine.data import Batches, Split, Transform
from coarse2fine.training.evaluation import evaluate
from coarse2fine.training.fit import launch


class Given(nn.Module):
    """Gives its inputs as logits, so that the right scores can be told."""

    def forward(self, inputs):
        return inputs


def scores(logits, targets, clusters=None, classes=None, batch_size=3):
    names = [str(name) for name in range(classes or logits.shape[1])]
    batches = Batches(Split(logits, targets, names), Transform(), batch_size)
    clusters = None if clusters is None else torch.tensor(clusters)
    return evaluate(launch(CONFIG), Given(), batches, clusters)


def test_scores_by_hand():
    chances = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.2, 0.6, 0.2], [0.6, 0.2, 0.2]])
    found = scores(chances.log(), torch.tensor([0, 1, 1, 2]))
    assert found.loss == pytest.approx(-chances[range(4), [0, 1, 1, 2]].log().mean().item())
    assert found.accuracy == found.level_accuracy == 0.5
    assert found.predictions.tolist() == [0, 2, 1, 0]


def test_at_a_level_a_cluster_is_as_probable_as_its_classes_together():
    """The most probable class is 2, but 0 and 1 together are more probable."""
    chances = torch.tensor([[0.35, 0.25, 0.4]])
    found = scores(chances.log(), torch.tensor([1]), clusters=[0, 0, 1])
    assert (found.accuracy, found.level_accuracy) == (0.0, 1.0)
    assert found.predictions.tolist() == [2]
    assert found.loss == pytest.approx(-torch.tensor(0.25).log().item())


def test_one_output_a_cluster_is_scored_on_the_clusters():
    logits = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0]])
    targets, groups = torch.tensor([0, 1, 2]), torch.tensor([0, 0, 1])
    found = scores(logits, targets, clusters=[0, 0, 1], classes=3)
    assert found.accuracy is None
    assert found.level_accuracy == pytest.approx(1 / 3)
    assert found.loss == pytest.approx(F.cross_entropy(logits, groups).item())
    assert found.predictions.tolist() == [0, 1, 0]


@pytest.mark.parametrize("batch_size", [1, 7, 200])
@pytest.mark.parametrize("level", [0, 1, 2])
def test_the_level_accuracy_is_that_of_the_metrics(level, batch_size):
    logits, targets = torch.randn(50, 6), torch.randint(6, (50,))
    clusters = hierarchy().levels[level].tolist()
    found = scores(logits, targets, clusters, batch_size=batch_size)
    wanted = level_accuracies(logits, targets, hierarchy())
    assert found.level_accuracy == pytest.approx(wanted[level])
    assert found.accuracy == pytest.approx(wanted[-1])
    assert found.predictions.tolist() == logits.argmax(1).tolist()


def test_the_model_is_left_in_evaluation_mode_and_without_gradients():
    model = Net(6, dropout=0.5)
    batches = Batches(table(), Transform(), 32)
    first = evaluate(launch(CONFIG), model, batches)
    assert not model.training
    assert evaluate(launch(CONFIG), model, batches).loss == first.loss
    assert model.head.weight.grad is None


def test_no_samples_have_no_scores_to_divide():
    found = scores(torch.zeros(0, 3), torch.zeros(0).long())
    assert (found.loss, found.accuracy, len(found.predictions)) == (0.0, 0.0, 0)
