"""What benchmarks/mechanism.py measures, against values by hand, and what its variants do."""

import math
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
from mechanism import records
from mechanism_looks import (
    class_spread,
    dimensions,
    group_means,
    head_gradient,
    head_scale,
    row_cosine,
    shortened,
)
from mechanism_made import CLASSES, COLUMNS, TREE, nested_table
from mechanism_tables import (
    at_equal_epochs,
    at_equal_loss,
    gains,
    in_points,
    lead_and_gain,
    level_gain,
    mean_of,
    measures,
)
from mechanism_tasks import Task, hierarchies_of, load_splits, recipe_of, task_of
from mechanism_training import Training, Variant, part_of

from coarse2fine import Hierarchy

PAIRS = Hierarchy.from_levels([[0, 0, 1, 1]])
PARTS = ("train", "val", "test")
RECIPE = {"rate": 1e-2, "batch": 8, "epochs": 8, "patience": 8, "decay": 0}


class Network(nn.Module):
    """One hidden layer and a head."""

    def __init__(self):
        super().__init__()
        self.hidden, self.head = nn.Linear(3, 5), nn.Linear(5, 4)

    def forward(self, inputs):
        return self.head(torch.relu(self.hidden(inputs)))


@pytest.fixture
def blobs():
    """Return four classes of points around corners, 16 in each part."""
    corners, targets = 3 * torch.randn(4, 3), torch.arange(16) % 4
    parts = {part: (corners[targets] + torch.randn(16, 3), targets) for part in PARTS}
    return Task("blobs", "mlp", 0, parts, RECIPE, Network)


def test_the_directions_of_a_cross_are_two_and_of_a_line_one():
    cross = torch.tensor([[1.0, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0]])
    assert dimensions(cross) == pytest.approx(2)
    assert dimensions(cross[:2] + 7) == pytest.approx(1)


def test_rows_of_a_cluster_are_compared_from_the_mean_of_all_rows():
    rows = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]]) + 5
    assert row_cosine(rows, torch.tensor([0, 1, 0, 1])) == pytest.approx(-1)
    assert row_cosine(rows, torch.tensor([0, 0, 1, 1])) == pytest.approx(0, abs=1e-6)


def test_the_class_spread_is_what_the_class_means_explain_within_clusters():
    # Class means at -2 and 2 in the one cluster, samples 1 from them: 4 of 5 is between.
    features, targets = torch.tensor([[-3.0], [-1], [1], [3]]), torch.tensor([0, 0, 1, 1])
    assert class_spread(features, targets, torch.tensor([0, 0])) == pytest.approx(4 / 5)


def test_padding_is_cut_off_tokens_alone():
    tokens = torch.tensor([[5, 6, 0, 0], [7, 0, 0, 0]])
    assert shortened(tokens).tolist() == [[5, 6], [7, 0]]
    assert shortened(tokens.float()).shape == (2, 4)


def test_the_gradient_in_the_head_is_that_of_the_class_loss():
    network, inputs, targets = Network(), torch.randn(6, 3), torch.tensor([0, 1, 2, 3, 0, 1])
    features = torch.relu(network.hidden(inputs))
    wrong = network(inputs).softmax(1) - F.one_hot(targets, 4)
    by_hand = (wrong.T @ features / 6).detach().square().mean().sqrt()
    assert head_gradient(network, (inputs, targets), 6) == pytest.approx(float(by_hand), rel=1e-5)


def test_the_scale_of_adam_after_one_step_is_the_gradient():
    network = Network()
    optimiser = torch.optim.Adam(network.parameters())
    network(torch.randn(6, 3)).square().sum().backward()
    optimiser.step()
    gradient = network.head.weight.grad.square().mean().sqrt()
    assert head_scale(optimiser, network) == pytest.approx(float(gradient), rel=1e-5)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("head.weight", "head"),
        ("bag.weight", "words"),
        ("bert.embeddings.word_embeddings.weight", "words"),
        ("bert.encoder.layer.0.output.dense.bias", "between"),
        ("hidden.0.weight", "between"),
    ],
)
def test_every_parameter_has_a_part(name, part):
    assert part_of(name) == part


def test_the_learning_rate_rises_at_first_and_after_a_change(blobs):
    task = replace(blobs, recipe={**RECIPE, "warmup": 2})
    training = Training(task, Variant("warm-up", each=4, warmup=4), PAIRS)
    rates, step = [], training.optimiser.step
    training.optimiser.step = lambda: (
        rates.append(training.optimiser.param_groups[0]["lr"]),
        step(),
    )
    training.run()
    first, second = [0.25, 0.5, 0.75, 1, 1, 1, 1, 1], [k / 8 for k in range(1, 9)]
    assert rates == pytest.approx([1e-2 * share for share in first + second])


def test_norms_begin_anew_and_directions_stay(blobs):
    training = Training(blobs, Variant("norms", fresh=("norms",)), PAIRS)
    first = training.network.head.weight.detach().norm(dim=1).mean()
    training.network.head.weight.data *= torch.tensor([[2.0], [3], [4], [5]])
    before = training.network.head.weight.detach().clone()
    training._begin_anew()
    after = training.network.head.weight.detach()
    assert after.norm(dim=1).mean() == pytest.approx(float(first))
    assert torch.allclose(F.normalize(after), F.normalize(before))


def test_clusters_alone_leave_the_rows_of_a_cluster_alike(blobs):
    common = {"each": 6, "clusters": "pairs"}
    variants = [Variant("levels", **common), Variant("both", **common, class_share=0.5)]
    found = list(records(blobs, variants, {"pairs": PAIRS}))
    levels, both = (record["curriculum"]["looks"][0] for record in found)
    assert [record["curriculum"]["boundaries"] for record in found] == [[6], [6]]
    assert found[0]["baseline"] == found[1]["baseline"]
    assert levels["row_cosine"] > both["row_cosine"]
    assert levels["class_loss"] > both["class_loss"]
    assert "| levels |" in gains(found)
    assert "cosine of rows" in measures(found)


def test_epochs_on_the_classes_are_compared():
    record = {
        "curriculum": {
            "boundaries": [2],
            "accuracies": [0.1, 0.2, 0.3, 0.5],
            "losses": [9, 9, 1, 0.4],
        },
        "baseline": {"boundaries": [], "accuracies": [0.4, 0.6, 0.7], "losses": [2, 0.5, 0.1]},
    }
    assert at_equal_loss(record) == (0.5, 0.6)
    assert math.isnan(at_equal_loss(record, 0.05)[1])
    assert at_equal_epochs(record) == (0.5, 0.6)


def test_the_level_is_compared_when_it_is_left():
    looks = [{"val_accuracy": [0.9, level, 0.1]} for level in (0.5, 0.6, 0.8)]
    record = {
        "curriculum": {"looks": looks},
        "baseline": {"looks": [{"val_accuracy": [1, 0.7, 0]}]},
    }
    assert level_gain(record) == pytest.approx(0.6 - 0.7)


def test_means_have_a_standard_error_where_there_are_several_seeds():
    assert mean_of([(1.0, 0.5), (3.0, 0.7)], ".1f") == "2.0 ± 1.0, 0.6 ± 0.1"
    assert mean_of([(0.25,)], ".1%") == "25.0%"
    assert in_points([0.01, 0.03]) == "+2.0 ± 1.0"


def test_leads_and_gains_are_counted_where_levels_were_learned():
    def record(variant, lead, gain):
        looks = [{"val_accuracy": [0.5 + lead, 0.1]}, {"val_accuracy": [0.9, 0.4]}]
        plain = {"val": 0.4, "looks": [{"val_accuracy": [0.5, 0.4]}]}
        curriculum = {"val": 0.4 + gain, "looks": looks}
        return {"variant": variant, "curriculum": curriculum, "baseline": plain}

    found = [record("adaptive", *pair) for pair in ((0.1, 0.2), (0.05, 0.1), (-0.1, -0.2))]
    found += [record("random", -0.05, 0.1), record("one epoch a level", -0.5, 0.3)]
    # By hand: leads (2, 1, -2, -1), gains (2, 1, -2, 1), so 8 / sqrt(10 * 9).
    assert lead_and_gain(found) == (
        "4 trainings: 2 of the 2 that led at the level gained in validation, and 1 of the 2 "
        "others; correlation of lead and gain 0.84"
    )


def test_tables_are_normalised_by_the_samples_to_train_on():
    kind, splits = load_splits("digits", 0, per_class=5, val_size=20)
    task = task_of("digits", "mlp", 0, kind, splits)
    inputs = task.parts["train"][0]
    assert [len(task.parts[part][1]) for part in ("train", "val")] == [50, 20]
    assert inputs.mean(0) == pytest.approx(0, abs=1e-5)
    assert task.network().head.out_features == 10
    assert recipe_of("mlp")["batch"] == 64


def test_the_hidden_layers_may_have_another_size_and_the_same_recipe():
    kind, splits = load_splits("digits", 0, per_class=5, val_size=20)
    network = task_of("digits", "mlp-64", 0, kind, splits).network()
    assert [network.head.in_features, network.head.out_features] == [64, 10]
    assert recipe_of("mlp-64") == recipe_of("mlp")


def test_a_nested_table_varies_between_groups_classes_and_rows():
    split, groups = nested_table(20_000).train, torch.tensor(TREE.levels[0])
    classes = group_means(split.inputs, split.targets)
    rows = split.inputs - classes[split.targets]
    inner = classes - group_means(classes, groups)[groups]
    assert groups.bincount().tolist() == [5] * 10
    assert float(rows.square().mean()) == pytest.approx(1, rel=0.01)
    # Five centres around their own mean have four fifths of the variance.
    assert float(inner.square().mean()) == pytest.approx(0.8 * 0.4**2, rel=0.1)
    assert classes.shape == (CLASSES, COLUMNS)


def test_the_class_means_of_a_table_are_clustered():
    corners = torch.tensor([[1.0, 0], [1, 0.1], [-1, 0.1], [-1, 0]])
    parts = {part: (corners.repeat(3, 1), torch.arange(12) % 4) for part in PARTS}
    task = Task("nested-table", "mlp", 0, parts, RECIPE, Network)
    made = hierarchies_of(task)
    assert made["means"].levels[0].tolist() == [0, 0, 1, 1]
    assert made["true"] == TREE
    assert set(hierarchies_of(replace(task, name="other"))) == {"means"}


def test_sentences_have_no_hierarchy_without_a_baseline(blobs):
    tokens = {part: (torch.ones(16, 5, dtype=torch.long), blobs.parts[part][1]) for part in PARTS}
    assert hierarchies_of(replace(blobs, parts=tokens)) == {}
    variant = Variant("the true clusters", clusters="true")
    with pytest.raises(SystemExit, match=r"^This set has no such hierarchy as 'the true clusters'"):
        list(records(blobs, [variant], {}))


def test_the_bert_gives_the_logits_of_hugging_faces_and_leaves_padding_out():
    transformers = pytest.importorskip("transformers")
    from mechanism_bert import Bert

    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=9, intermediate_size=8, num_labels=3, **sizes)
    model = transformers.BertForSequenceClassification(config).eval()
    tokens = torch.tensor([[2, 5, 7, 0], [2, 3, 0, 0]])
    found = Bert(model).eval()(tokens)
    whole = model(tokens[:1, :3]).logits, model(tokens[1:, :2]).logits
    assert torch.allclose(found, torch.cat(whole), atol=1e-6)
