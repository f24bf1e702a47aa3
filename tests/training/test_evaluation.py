"""How good a model is on a split, at the classes and at a level, and on each of its samples."""

import pytest
import torch
import torch.nn.functional as F
from studies import CONFIG, ConvNet, Net, hierarchy, image_data, table
from torch import nn

from coarse2fine import level_accuracies
from coarse2fine.data import Batches, Split, Transform
from coarse2fine.training.evaluation import evaluate, sample_losses
from coarse2fine.training.processes import launch


class Given(nn.Module):
    """Gives its inputs as logits, so that the right scores can be told."""

    def forward(self, inputs):
        return inputs


def batches_of(logits, targets, classes=None, batch_size=3, **process):
    names = [str(name) for name in range(classes or logits.shape[1])]
    return Batches(Split(logits, targets, names), Transform(), batch_size, **process)


def scores(logits, targets, clusters=None, classes=None, batch_size=3, **options):
    batches = batches_of(logits, targets, classes, batch_size)
    clusters = None if clusters is None else torch.tensor(clusters)
    return evaluate(launch(CONFIG), Given(), batches, clusters, **options)


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


# --------------------------------------------------------------------- rules of inference


def by_least_and_most(logits):
    return {"least": logits.argmin(1), "most": logits.argmax(1)}


def test_the_most_probable_class_is_the_only_rule_unless_others_are_given():
    found = scores(torch.eye(4), torch.arange(4))
    assert list(found.by_rule) == ["argmax"]
    assert found.by_rule["argmax"].tolist() == found.predictions.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("batch_size", [1, 2, 9])
def test_predictions_are_kept_by_every_rule_and_the_first_counts(batch_size):
    """By hand: the least are 1, 0, 2, 2 and 0, of which three are right."""
    logits = torch.tensor([[2, 0, 1], [0, 1, 2], [1, 2, 0], [2, 1, 0], [0, 2, 1]]).float()
    targets = torch.tensor([1, 0, 2, 1, 1])
    found = scores(logits, targets, batch_size=batch_size, decide=by_least_and_most)
    assert list(found.by_rule) == ["least", "most"]
    assert found.predictions.tolist() == found.by_rule["least"].tolist() == [1, 0, 2, 2, 0]
    assert found.by_rule["most"].tolist() == [0, 2, 1, 0, 1]
    assert found.accuracy == found.level_accuracy == 0.6
    assert found.loss == pytest.approx(F.cross_entropy(logits, targets).item())


def test_at_a_level_rules_decide_between_classes_and_probabilities_between_clusters():
    chances = torch.tensor([[0.35, 0.25, 0.4]])
    found = scores(chances.log(), torch.tensor([1]), [0, 0, 1], decide=by_least_and_most)
    assert (found.accuracy, found.level_accuracy) == (1.0, 1.0)
    assert found.predictions.tolist() == [1]


# ---------------------------------------------------------------------- losses of samples


@pytest.mark.parametrize("batch_size", [1, 3, 50])
def test_each_sample_has_its_own_loss_in_the_order_of_the_split(batch_size):
    logits, targets = torch.randn(10, 4), torch.randint(4, (10,))
    found = sample_losses(launch(CONFIG), Given(), batches_of(logits, targets, None, batch_size))
    pairs = zip(logits, targets, strict=True)
    wanted = [-row.softmax(0)[target].log().item() for row, target in pairs]
    assert found.tolist() == pytest.approx(wanted, rel=1e-5)


class Dropping(ConvNet):
    def forward(self, images):
        return F.dropout(super().forward(images), 0.5, self.training)


def test_losses_of_samples_are_those_of_evaluation_without_augmentation():
    model, data = Dropping(6).train(), image_data()
    statistics = model.norm.running_mean.clone()
    batches = Batches(data.train, Transform(padding=2, flip=True), 8)
    found = sample_losses(launch(CONFIG), model, batches)
    assert not model.training
    assert torch.equal(model.norm.running_mean, statistics)
    assert not found.requires_grad
    logits = model(data.train.inputs.float() / 255)
    wanted = F.cross_entropy(logits, data.train.targets, reduction="none")
    torch.testing.assert_close(found, wanted.detach())


# ----------------------------------------------------------------------- several processes


@pytest.mark.parametrize("world", [2, 3])
def test_what_processes_find_sums_up_to_what_one_finds(world):
    """Of the batches of 5 and 2 samples, a third process has nothing to do in the second."""
    logits, targets = torch.randn(7, 4), torch.randint(4, (7,))
    fabric, clusters = launch(CONFIG), torch.tensor([0, 0, 1, 1])
    parts = [batches_of(logits, targets, None, 5, rank=k, world=world) for k in range(world)]
    whole = batches_of(logits, targets, None, 5)
    losses = sum(sample_losses(fabric, Given(), part) for part in parts)
    torch.testing.assert_close(losses, sample_losses(fabric, Given(), whole), rtol=0, atol=0)
    found = [evaluate(fabric, Given(), part, clusters, by_least_and_most) for part in parts]
    wanted = evaluate(fabric, Given(), whole, clusters, by_least_and_most)
    for name in ("loss", "accuracy", "level_accuracy"):
        together = sum(getattr(part, name) for part in found)
        assert together == pytest.approx(getattr(wanted, name))
    for rule, classes in wanted.by_rule.items():
        assert torch.equal(sum(part.by_rule[rule] for part in found), classes)
