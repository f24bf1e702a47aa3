"""Training on labels of which some are coarser than classes, and what counts in its accuracies."""

import json
import math
from dataclasses import replace

import pytest
import torch
from studies import (
    CONFIG,
    NAMES,
    Interrupting,
    InterruptionError,
    compare,
    fresh,
    metrics,
    outcome,
    same_tensors,
    table,
    train,
    weights,
)

from coarse2fine import Config, Hierarchy, Result, RunError, fit, level_accuracies
from coarse2fine.data import Batches, Source, Split, Transform, sample
from coarse2fine.runs.checkpoint import save_tensors
from coarse2fine.runs.directory import Run
from coarse2fine.runs.result import RunResult
from coarse2fine.training.evaluation import evaluate, sample_losses
from coarse2fine.training.processes import launch

TREE = Hierarchy(
    [[0, 0, 0, 1, 1, 1], [0, 0, 1, 2, 2, 3], range(6)],
    NAMES,
    [["animal", "vehicle"], ["pet", "wild", "wheels", "van"]],
)
GROUPS = {"animal": ["cat", "dog", "fox"], "vehicle": ["car", "bus", "van"]}
OTHER = {"red": ["fox", "bus", "cat"], "blue": ["dog", "car", "van"]}


def coarsened(split, every=3):
    """The same samples, of which only each third, say, keeps its class, the others a group."""
    groups = torch.tensor(TREE.nodes.of_level[0][TREE.levels[0]])
    has_class = torch.arange(len(split)) % every == 0
    return replace(
        split, targets=split.targets.where(has_class, groups[split.targets]), hierarchy=TREE
    )


def mixed_source(count=200):
    return Source("table", coarsened(table(count)), coarsened(table(90, seed=1)))


def mixed_data():
    return sample(mixed_source(), val_share=0.2)


# ------------------------------------------------------------------------------- evaluation


class Given(torch.nn.Module):
    """Gives its inputs as logits."""

    def forward(self, inputs):
        return inputs


def scores(chances, labels, clusters=None):
    split = Split(torch.tensor(chances).log(), TREE.encode(labels), NAMES, hierarchy=TREE)
    clusters = None if clusters is None else torch.tensor(clusters)
    return evaluate(launch(CONFIG), Given(), Batches(split, Transform(), 2), clusters)


CHANCES = [
    [0.4, 0.2, 0.1, 0.1, 0.1, 0.1],  # cat
    [0.1, 0.1, 0.2, 0.3, 0.1, 0.2],  # car
    [0.1, 0.3, 0.3, 0.1, 0.1, 0.1],  # dog
    [0.1, 0.1, 0.1, 0.1, 0.1, 0.5],  # van
    [0.1, 0.1, 0.1, 0.2, 0.4, 0.1],  # bus
]
LABELS = ["cat", "fox", "animal", "pet", "(any)"]


def test_accuracies_count_only_labels_that_are_fine_enough():
    assert scores(CHANCES, LABELS).accuracy == 0.5  # cat and fox
    at_groups = scores(CHANCES, LABELS, TREE.levels[0])
    assert at_groups.accuracy == 0.5
    assert at_groups.level_accuracy == 0.5  # cat and animal of the first four
    # cat is in pet, fox is not in wheels, and pet is not van; animal may be pet or wild.
    assert scores(CHANCES, LABELS, TREE.levels[1]).level_accuracy == pytest.approx(1 / 3)
    # Of a level of another tree: cat and fox are of one cluster, animal is of two, pet is too.
    assert scores(CHANCES, LABELS, [0, 1, 0, 1, 0, 1]).level_accuracy == 0.5


def test_the_loss_is_the_mean_over_all_labels_of_what_each_leaves():
    wanted = -sum(map(math.log, (0.4, 0.2, 0.7, 0.2, 1))) / 5
    assert scores(CHANCES, LABELS).loss == pytest.approx(wanted)
    assert scores(CHANCES, LABELS, TREE.levels[0]).loss == pytest.approx(wanted)


def test_the_loss_of_each_sample_is_that_of_what_its_label_leaves():
    split = Split(torch.tensor(CHANCES).log(), TREE.encode(LABELS), NAMES, hierarchy=TREE)
    found = sample_losses(launch(CONFIG), Given(), Batches(split, Transform(), 2))
    torch.testing.assert_close(found, -torch.tensor([0.4, 0.2, 0.7, 0.2, 1]).log())


def test_one_output_a_cluster_is_scored_on_the_clusters_that_labels_leave():
    chances = [[0.2, 0.5, 0.1, 0.2], [0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]]
    found = scores(chances, ["pet", "animal", "van"], TREE.levels[1])
    assert found.accuracy is None
    assert found.level_accuracy == 0.5  # pet is not wild, van is right, animal is two
    assert found.loss == pytest.approx(-(math.log(0.2) + math.log(0.7) + math.log(0.4)) / 3)


def test_labels_that_are_all_classes_score_the_same_with_a_tree_and_without():
    split = table(50)
    batches = [Batches(each, Transform(), 8) for each in (split, replace(split, hierarchy=TREE))]
    clusters = torch.tensor(TREE.levels[0])
    one, two = (evaluate(launch(CONFIG), fresh(), each, clusters) for each in batches)
    assert (one.accuracy, one.level_accuracy) == (two.accuracy, two.level_accuracy)
    assert one.loss == pytest.approx(two.loss)


# --------------------------------------------------------------------------------- training


def loss_by_hand(logits, targets, level):
    """The mean of -log of what each label leaves at a level, one sample after the other."""
    losses = []
    for row, target in zip(logits.softmax(1), targets.tolist(), strict=True):
        touched = {int(level[one]) for one in TREE.nodes.classes(target)}
        losses.append(-row[[int(cluster) in touched for cluster in level]].sum().log())
    return torch.stack(losses).mean()


@pytest.mark.parametrize("method", ["plain", "continuous"])
def test_training_is_a_loop_by_hand(method, tmp_path):
    data, model, epochs = mixed_data(), fresh(), 4
    optimiser = torch.optim.Adam(model.parameters(), 0.02, fused=True)
    best, kept = -1.0, {}
    for epoch in range(epochs):
        # T is 3, so each level but the last takes one or two epochs: 0, 1, 2, 2.
        level = TREE.levels[min(epoch, 2) if method == "continuous" else 2]
        model.train()
        for batch in Batches(data.train, Transform(), 32).shuffled((0, 0, epoch)):
            optimiser.zero_grad()
            loss_by_hand(model(batch.inputs), batch.targets, level).backward()
            optimiser.step()
        fine = data.val.with_class()
        accuracy = (model.eval()(fine.inputs).argmax(1) == fine.targets).double().mean().item()
        if accuracy > best and (method == "plain" or epoch >= 2):
            best, kept = accuracy, {name: x.clone() for name, x in model.state_dict().items()}
    run = train(tmp_path, method, data=data, levels=TREE)
    assert run.val_accuracy == best
    for name, weight in weights(run).items():
        torch.testing.assert_close(weight, kept[name], rtol=1e-3, atol=1e-4)
    fine = data.test.with_class()
    model.load_state_dict(weights(run))
    predicted = model(fine.inputs).argmax(1)
    assert run.accuracy == (predicted == fine.targets).double().mean().item()
    found, wanted = run.predictions()
    assert (found.tolist(), wanted.tolist()) == (predicted.tolist(), fine.targets.tolist())


@pytest.mark.parametrize("method", ["plain", "continuous", "staged", "multitask"])
def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(method, tmp_path):
    options = {"method": method, "data": mixed_data(), "levels": TREE, "epochs": 3}
    undisturbed = train(tmp_path / "undisturbed", **options)
    for epoch in (1, 2, 3):
        with pytest.raises(InterruptionError):
            train(
                tmp_path / "often", watcher=Interrupting(epoch), checkpoint_seconds=0.0, **options
            )
    often = train(tmp_path / "often", **options)
    assert outcome(often) == outcome(undisturbed)
    assert metrics(often.path) == metrics(undisturbed.path)
    assert same_tensors(weights(often), weights(undisturbed))


def test_a_result_says_how_many_samples_have_a_class(tmp_path):
    data = mixed_data()
    run = train(tmp_path, data=data)
    counts = {
        part: [int((split.targets < 6).sum()), len(split)]
        for part, split in (("train", data.train), ("val", data.val), ("test", data.test))
    }
    assert run.with_class == RunResult.load(run.path).with_class == counts
    assert run.val_samples == counts["val"][0] < counts["val"][1]
    assert len(run.predictions("val")[0]) == run.val_samples
    assert Run(run.path).config.data.tree() == TREE
    stored = Run(run.path).predictions()
    assert torch.equal(stored["test.targets"], data.test.targets)


def test_at_each_level_count_the_samples_that_are_labelled_finely_enough(tmp_path):
    data = mixed_data()
    run = train(tmp_path, data=data)
    predicted = Run(run.path).predictions()["test.predictions"].tolist()
    for hierarchy in (TREE, Hierarchy.from_taxonomy(OTHER, NAMES)):
        hits, counts = run.level_hits(hierarchy)
        for level, found, count in zip(hierarchy.levels, hits, counts, strict=True):
            possible = [{*level[TREE.nodes.classes(one)]} for one in data.test.targets.tolist()]
            told = [(level[p], *s) for p, s in zip(predicted, possible, strict=True) if len(s) == 1]
            assert (found, count) == (sum(a == b for a, b in told), len(told))
    assert run.level_hits(TREE)[1].tolist() == [90, 30, 30]
    assert run.level_hits(TREE)[0][-1] == round(30 * run.accuracy)


def test_where_all_samples_have_a_class_nothing_is_said_of_labels(tmp_path):
    run = train(tmp_path)
    assert run.with_class == {}
    assert "test.has_class" not in Run(run.path).predictions()


@pytest.mark.parametrize("has_class", [torch.ones(3, dtype=torch.bool), torch.ones(90)])
def test_predictions_that_do_not_say_what_has_a_class_are_damaged(has_class, tmp_path):
    run = train(tmp_path, data=mixed_data(), epochs=1)
    stored = {**Run(run.path).predictions(), "test.has_class": has_class}
    (run.path / "result.json").rename(run.path / "kept.json")  # with its checksums
    save_tensors(run.path / "predictions.safetensors", stored)
    with pytest.raises(RunError, match="it does not say which test samples have a class"):
        run.predictions()


# ---------------------------------------------------------------------------- the whole of it


def small(data, path, **changes):
    given = {"model": "mlp", "epochs": 3, "patience": 0, "batch_size": 32, "out": path}
    machine = {"accelerator": "cpu", "devices": 1, "curriculum_epochs": 2}
    return fit(data, **{**given, **machine, **changes})


@pytest.fixture
def rows(write):
    """A table whose second label is empty in two of three rows."""
    split, above = table(300), {kind: group for group, kinds in GROUPS.items() for kind in kinds}
    lines = [[*(f"x{at}" for at in range(10)), "group", "kind"]]
    for row, (inputs, target) in enumerate(zip(split.inputs.tolist(), split.targets, strict=True)):
        kind = NAMES[target]
        lines.append([*inputs, above[kind], "" if row % 3 else kind])
    return write("rows.csv", lines)


def test_columns_of_labels_make_the_hierarchy_that_is_trained_on(rows, tmp_path):
    result = small(rows, tmp_path / "run", target=("group", "kind"), baseline=False)
    (run,) = result.runs
    names = ("bus", "car", "cat", "dog", "fox", "van")
    assert run.hierarchy() == Hierarchy.from_taxonomy(GROUPS, names)
    counts = run.with_class
    assert [every for _, every in counts.values()] == [192, 48, 60]
    assert sum(found for found, _ in counts.values()) == 100
    val, test = counts["val"][0], counts["test"][0]
    note = f"{val} of 48 validation and {test} of 60 test samples have a class"
    assert note in str(result)
    assert note in str(Result.load(tmp_path / "run"))
    assert level_accuracies(*run.predictions(), run.hierarchy())[-1] == pytest.approx(run.accuracy)
    again = small(rows, tmp_path / "run", target=["group", "kind"], baseline=False)
    assert [one.to_dict() for one in again.runs] == [run.to_dict()]


@pytest.mark.parametrize("form", ["hierarchy", "dict", "file"])
def test_one_column_may_name_the_clusters_of_a_given_tree(form, tmp_path):
    split = coarsened(table(200))
    labels = TREE.decode(split.targets)
    given = {"hierarchy": TREE, "dict": GROUPS, "file": tmp_path / "tree.json"}[form]
    (tmp_path / "tree.json").write_text(json.dumps(GROUPS))
    result = small((split.inputs, labels), tmp_path / "run", hierarchy=given)
    assert [run.method for run in result.runs] == ["baseline", "continuous"]
    assert all(run.with_class for run in result.runs)
    assert result.of("continuous")[0].hierarchy().for_classes(NAMES).num_clusters[0] == 2


def test_a_split_with_a_tree_needs_no_baseline(tmp_path):
    split = coarsened(table(200))
    (run,) = small(split, tmp_path / "run", baseline=False).runs
    assert run.hierarchy() == TREE


def test_another_hierarchy_over_the_classes_may_be_trained_on(tmp_path):
    split = coarsened(table(200))
    result = small(split, tmp_path / "run", hierarchy=OTHER, methods=("continuous", "staged"))
    hierarchy = result.of("staged")[0].hierarchy()
    assert hierarchy == Hierarchy.from_taxonomy(OTHER).for_classes(NAMES)
    thin = small(split, tmp_path / "thin", max_levels=2, class_weights="balanced")
    assert thin.of("continuous")[0].num_clusters == (2, 6)


def test_the_hierarchy_may_be_made_from_a_training_or_from_features_all_the_same(tmp_path):
    split = coarsened(table(200))
    made = small(split, tmp_path / "short", hierarchy_epochs=1, max_levels=2)
    assert (tmp_path / "short" / "seed-0" / "hierarchy-1-epochs").is_dir()
    assert made.of("continuous")[0].with_class
    fine = split.with_class()
    options = {"hierarchy": "features", "encoder": seen_rows(seen := [])}
    small(split, tmp_path / "means", max_levels=2, val_share=0.0, test_share=0.1, **options)
    assert 0 < sum(map(len, seen)) <= len(fine)


def seen_rows(seen):
    def encode(inputs):
        seen.append(inputs)
        return inputs

    return encode


# ------------------------------------------------------------------------------ what is refused


def test_methods_that_need_every_class_are_refused_before_anything_is_trained(tmp_path):
    with pytest.raises(
        ValueError, match="the method spl needs the class of every training sample, and"
    ):
        small(coarsened(table(200)), tmp_path / "run", methods=("continuous", "spl"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("part", ["test", "val"])
def test_a_part_without_any_class_is_refused_before_anything_is_trained(part, tmp_path):
    split = coarsened(table(60, seed=1))
    none = split.take((~split.has_class).nonzero().flatten())
    options = {"class_names": None, "hierarchy": TREE, part: none}
    with pytest.raises(ValueError, match=r"none of the 40 (test|validation) samples has a class"):
        compare(tmp_path / "run", coarsened(table()), **{"test": split, **options})
    assert not (tmp_path / "run" / "seed-0").exists()


def test_a_single_column_is_stored_as_ever():
    assert Config(target="kind").to_dict()["target"] == "kind"
    assert Config(target=["kind"]) == Config(target="kind")
    several = Config(target=["group", "kind"])
    assert several == Config.from_dict(json.loads(json.dumps(several.to_dict())))
    for wrong in ((), ("kind", "kind")):
        with pytest.raises(ValueError, match="target must be a column or several different ones"):
            Config(target=wrong)
    with pytest.raises(TypeError, match="target must be a string or a list or None. Got 5"):
        Config(target=5)
