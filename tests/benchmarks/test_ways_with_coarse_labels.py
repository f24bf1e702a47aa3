"""What benchmarks/any_level.py trains on and predicts, against values by hand; and its resume."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import any_level
from any_level import Place, begin, collected, together, write_rows
from any_level_tables import gains_of, report
from any_level_tasks import domains, mixed_samples, superclasses
from any_level_training import (
    ALL_FINE,
    ANY_LEVEL,
    EVEN,
    EXTRA,
    FINE,
    PSEUDO,
    WAYS,
    Training,
    Ways,
    guessed,
    scores,
)

from coarse2fine import Hierarchy
from coarse2fine.data.split import Source, Split

GROUPS = Hierarchy.from_levels([[0, 1, 0, 1, 2, 2]])
CLASSES, SIZE = 6, 120
SHORT = {"rate": 1e-2, "batch": 16, "every": 5, "patience": 10, "steps": 40}
PLACE = Place("made", 50, 0)


def made(count, seed):
    """Columns around a corner for each class."""
    torch.manual_seed(seed)
    corners, targets = torch.eye(CLASSES), torch.arange(count) % CLASSES
    inputs = 3 * corners[targets] + torch.randn(count, CLASSES)
    return Split(inputs, targets, tuple("abcdef"))


def made_samples(share=0.5, seed=0):
    source = Source("table", made(2 * SIZE, 1), made(60, 2), made(30, 3))
    mixed = mixed_samples("made", "mlp", source, GROUPS, SIZE, share, seed)
    return replace(mixed, task=replace(mixed.task, recipe=SHORT))


@pytest.fixture
def mixed():
    return made_samples()


# ------------------------------------------------------------------------------- samples


@pytest.mark.parametrize(("share", "fine", "held"), [(0.5, 60, 12), (0.1, 12, 2)])
def test_a_fifth_of_the_fine_labels_is_held_out_of_every_way(share, fine, held):
    found = made_samples(share)
    assert len(found.is_fine) == SIZE - held
    assert int(found.is_fine.sum()) == fine - held
    assert [len(found.task.parts[part][1]) for part in ("val", "test")] == [held, 60]


def test_fine_labels_are_stratified(mixed):
    assert torch.bincount(mixed.classes[mixed.is_fine]).tolist() == [8] * CLASSES
    assert torch.bincount(mixed.task.parts["val"][1]).tolist() == [2] * CLASSES
    assert torch.bincount(mixed.classes[~mixed.is_fine]).tolist() == [10] * CLASSES


def test_a_seed_settles_the_samples_and_another_one_takes_others(mixed):
    same, other = made_samples(), made_samples(seed=1)
    for part in ("train", "val", "test"):
        assert torch.equal(mixed.task.parts[part][0], same.task.parts[part][0])
    assert torch.equal(mixed.is_fine, same.is_fine)
    assert not torch.equal(mixed.task.parts["val"][0], other.task.parts["val"][0])


def test_no_sample_to_train_on_is_validated_on(mixed):
    train, val = ({tuple(row) for row in mixed.task.parts[p][0].tolist()} for p in ("train", "val"))
    assert len(train) + len(val) == SIZE
    assert not train & val


def test_a_coarse_label_is_the_node_of_the_group(mixed):
    names = GROUPS.nodes.decode(mixed.nodes)
    for name, is_fine, wanted in zip(names, mixed.is_fine, mixed.classes.tolist(), strict=True):
        group = [0, 1, 0, 1, 2, 2][wanted]
        assert name == (str(wanted) if is_fine else f"level 0 cluster {group}")


def test_groups_are_those_that_people_made(tmp_path):
    names = ("apple", "cat", "dog", "pear")
    source = Source("text", Split(torch.zeros(4, 2), torch.arange(4), names))
    (tmp_path / "clinc150").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no .*domains\.json; put"):
        domains(source, tmp_path)
    tree = {"animal": ["dog", "cat"], "fruit": ["pear", "apple"]}
    (tmp_path / "clinc150" / "domains.json").write_text(json.dumps(tree))
    hierarchy = domains(source, tmp_path)
    animals = hierarchy.nodes.classes(hierarchy.encode(["animal"])[0])
    assert animals.tolist() == [1, 2]


def test_superclasses_are_the_second_label_of_the_images(monkeypatch, tmp_path):
    fine = Split(torch.zeros(3, 2), torch.tensor([2, 0, 1]), ("cat", "elm", "oak"))
    coarse = Split(torch.zeros(3, 2), torch.tensor([1, 0, 1]), ("animal", "tree"))
    asked = []
    monkeypatch.setattr(
        "any_level_tasks.load_data",
        lambda name, folder: asked.append((name, folder)) or Source("image", coarse),
    )
    hierarchy = superclasses(Source("image", fine), tmp_path)
    assert asked == [("cifar100-coarse", tmp_path)]
    assert hierarchy.nodes.classes(hierarchy.encode(["tree"])[0]).tolist() == [1, 2]
    assert hierarchy.num_clusters == (2, 3)


# ---------------------------------------------------------------------------------- ways


def test_all_ways_see_the_same_samples_and_fine_labels(mixed):
    ways = Ways(mixed)
    fine = ways.lesson(FINE)
    assert fine.rows.tolist() == mixed.is_fine.nonzero()[:, 0].tolist()
    assert torch.equal(fine.targets, mixed.classes[fine.rows])
    for way in set(WAYS) - {FINE}:
        lesson = ways.lesson(way)
        assert lesson.rows.tolist() == list(range(len(mixed.is_fine)))
        assert torch.equal(lesson.targets[mixed.is_fine], mixed.classes[mixed.is_fine])


def test_what_a_way_learns_of_coarse_labels(mixed):
    ways, is_coarse = Ways(mixed), ~mixed.is_fine
    groups = torch.tensor([0, 1, 0, 1, 2, 2])[mixed.classes][is_coarse]
    coarse_ways = (ANY_LEVEL, EXTRA, PSEUDO, ALL_FINE)
    learned = {way: ways.lesson(way).targets[is_coarse] for way in coarse_ways}
    assert torch.equal(learned[ANY_LEVEL], 7 + groups)  # nodes: 6 classes, the root, the groups
    assert torch.equal(learned[EXTRA], 6 + groups)
    assert torch.equal(learned[ALL_FINE], mixed.classes[is_coarse])
    assert torch.equal(torch.tensor([0, 1, 0, 1, 2, 2])[learned[PSEUDO]], groups)
    outputs = {way: ways.lesson(way).num_outputs for way in (FINE, *coarse_ways)}
    assert outputs == {FINE: 6, ANY_LEVEL: 6, EXTRA: 9, PSEUDO: 6, ALL_FINE: 6}


def test_only_the_reference_knows_the_classes_of_coarse_labels(mixed):
    # Within its group every coarse sample is given another class.
    swap = torch.tensor([2, 3, 0, 1, 5, 4])
    inputs, classes = mixed.task.parts["train"]
    other = torch.where(mixed.is_fine, classes, swap[classes])
    parts = {**mixed.task.parts, "train": (inputs, other)}
    swapped = Ways(replace(mixed, task=replace(mixed.task, parts=parts)))
    for way in WAYS:
        same = torch.equal(Ways(mixed).lesson(way).targets, swapped.lesson(way).targets)
        assert same == (way != ALL_FINE)


def test_a_guess_is_the_most_probable_class_of_the_group():
    logits = torch.tensor([[9.0, 1, 2, 3, 4, 5], [0, 0, 0, 0, -9, -8]])
    groups, group_of = torch.tensor([1, 2]), torch.tensor([0, 1, 0, 1, 2, 2])
    assert guessed(logits, groups, group_of).tolist() == [3, 5]


def test_extra_classes_never_win_but_count_for_their_group():
    logits = torch.tensor([[1.0, 0, 0, 0, 0, 0, -9, 20, -9]])  # the extra class of group 1
    found = scores(logits, torch.tensor([0]), GROUPS)
    assert found == {"classes": 1.0, "groups": 0.0}
    assert scores(logits, torch.tensor([3]), GROUPS) == {"classes": 0.0, "groups": 1.0}


def test_the_group_is_that_of_the_largest_total_probability():
    logits = torch.tensor([[2.0, 1.9, 0, 1.9, 0, 0]])
    assert scores(logits, torch.tensor([1]), GROUPS) == {"classes": 0.0, "groups": 1.0}


@pytest.mark.parametrize("way", [FINE, ANY_LEVEL, EXTRA])
def test_the_loss_is_that_of_the_probability_of_what_is_known(mixed, way):
    lesson = Ways(mixed).lesson(way)
    logits = torch.randn(len(lesson.rows), lesson.num_outputs)
    by_hand = F.cross_entropy(logits, lesson.targets) if way != ANY_LEVEL else None
    if by_hand is None:
        known = [mixed.hierarchy.nodes.classes(node) for node in lesson.targets.tolist()]
        shares = logits.softmax(1)
        sums = [row[own].sum() for row, own in zip(shares, known, strict=True)]
        by_hand = -torch.stack(sums).log().mean()
    loss = Training(mixed, lesson).criterion(logits, lesson.targets)
    assert loss.item() == pytest.approx(by_hand.item(), rel=1e-5)


# ------------------------------------------------------------------------------ training


def with_recipe(mixed, **settings):
    return replace(mixed, task=replace(mixed.task, recipe={**SHORT, **settings}))


def test_patience_and_the_longest_training_count_steps(mixed):
    capped = Ways(with_recipe(mixed, patience=999, steps=35))
    ends = {way: capped.trained(way) for way in (FINE, ANY_LEVEL)}
    assert [one.steps for one in ends.values()] == [35, 35]
    assert [len(one.accuracies) for one in ends.values()] == [7, 7]
    still = Ways(with_recipe(mixed, rate=0.0)).trained(FINE)
    assert (still.best_step, still.steps) == (5, 15)


def test_the_network_is_that_of_the_best_step(mixed):
    trained = Ways(mixed).trained(ANY_LEVEL)
    inputs, classes = mixed.task.parts["val"]
    with torch.no_grad():
        found = trained.network.eval()(inputs).argmax(1)
    assert float((found == classes).float().mean()) == pytest.approx(trained.val)
    assert trained.val == max(trained.accuracies)
    assert trained.best_step == 5 * (1 + int(np.argmax(trained.accuracies)))


@pytest.mark.parametrize("way", [ANY_LEVEL, EXTRA, PSEUDO])
def test_even_batches_differ_in_how_they_are_drawn_alone(way):
    mixed = made_samples(0.1)
    ways = Ways(mixed)
    plain, even = ways.lesson(way), ways.lesson(way + EVEN)
    assert torch.equal(plain.rows, even.rows)
    assert torch.equal(plain.targets, even.targets)
    batches = Training(mixed, even)._batches()
    drawn = [next(batches) for _ in range(14)]  # 108 coarse samples, 8 at a time
    assert all(int(mixed.is_fine[places].sum()) in (8, 2) for places in drawn)
    coarse = torch.cat([places[~mixed.is_fine[places]] for places in drawn])
    assert sorted(coarse.tolist()) == (~mixed.is_fine).nonzero()[:, 0].tolist()


def test_every_way_has_the_first_batches_of_its_own_samples(mixed):
    batches = Training(mixed, Ways(mixed).lesson(FINE))._batches()
    epoch = [next(batches) for _ in range(3)]  # 48 samples in batches of 16
    assert sorted(torch.cat(epoch).tolist()) == list(range(48))
    assert torch.cat(epoch).tolist() != torch.cat([next(batches) for _ in range(3)]).tolist()


# ------------------------------------------------------------------------ rows and tables


def without_time(row):
    return {key: value for key, value in row.items() if key != "seconds_in_all"}


def test_a_command_that_is_killed_goes_on_with_the_same_rows(mixed, tmp_path):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    begin(whole), begin(cut)
    rows = list(write_rows(mixed, PLACE, whole))
    assert [row["way"] for row in rows] == list(WAYS)

    for row in write_rows(mixed, PLACE, cut):
        if row["way"] == EXTRA + EVEN:
            break  # so before pseudo-labels, which need the network of fine labels
    rest = list(write_rows(made_samples(), PLACE, cut))
    assert [row["way"] for row in rest] == [PSEUDO, PSEUDO + EVEN, ALL_FINE]
    found, wanted = (collected([PLACE], folder, {})["runs"] for folder in (cut, whole))
    assert list(map(without_time, found)) == list(map(without_time, wanted))
    assert list(write_rows(mixed, PLACE, cut)) == []


def test_a_row_tells_what_it_took(mixed, tmp_path):
    begin(tmp_path)
    rows = {row["way"]: row for row in write_rows(mixed, PLACE, tmp_path)}
    assert rows[FINE]["samples"] == {"fine": 48, "coarse": 60, "val": 12, "test": 60}
    first, second = rows[FINE], rows[PSEUDO]
    assert second["steps_in_all"] == first["steps"] + second["steps"]
    assert second["seconds_in_all"] > first["seconds_in_all"]
    assert 0 < second["guessed_right"] <= 1
    ways = Ways(mixed)
    right = (ways.guesses == mixed.classes)[~mixed.is_fine].float().mean()
    assert second["guessed_right"] == pytest.approx(right.item())


def test_rows_of_other_settings_are_not_mixed(tmp_path, monkeypatch):
    mine = begin(tmp_path)
    assert begin(tmp_path) == mine
    monkeypatch.setattr(any_level, "VAL_SHARE", 0.5)
    with pytest.raises(SystemExit, match=r"rows of other val_share; give another folder by --out"):
        begin(tmp_path)


def run_of(seed, way, classes, **more):
    about = {"set": "made", "model": "mlp", "percent": 10, "seed": seed, "way": way}
    samples = {"fine": 1960, "coarse": 18000, "val": 40, "test": 60}
    test = {"classes": classes, "groups": 0.5}
    return {
        **about,
        "samples": samples,
        "test": test,
        "val": 0.25,
        "steps": 30,
        "steps_in_all": 1030,
        **more,
    }


RUNS = [
    run_of(0, FINE, 0.10),
    run_of(1, FINE, 0.30),
    run_of(0, PSEUDO, 0.20, guessed_right=0.4),
    run_of(1, PSEUDO, 0.42, guessed_right=0.5),
    run_of(2, PSEUDO, 0.9, guessed_right=0.6, steps=40),  # its partner is not there yet
]


def test_gains_are_paired_by_seed():
    assert gains_of(RUNS, PSEUDO, "classes") == pytest.approx([10, 12])
    assert gains_of(RUNS, FINE, "classes") == []


def test_the_table_has_means_gains_and_intervals():
    # The gains are 10 and 12: their standard error is 1, and t of one degree 12.706.
    content = {"runs": RUNS, "settings": {"sets": {"made": {"recipe": {"steps": 40}}}}}
    lines = report(content).splitlines()
    cells = "| made, mlp, 10% fine | fine labels alone | 2 | 1,030 | 25.00 ± 0.00 | 20.00 ± 10.00 |"
    assert lines[2].startswith(cells)
    assert "| 25.00 ± 0.00 | 50.67 ± 20.67 | +11.00 ± 1.00 | -1.71 to +23.71 |" in lines[3]
    assert "1,960 samples with fine and 18,000 with coarse labels to train on" in lines[5]
    assert lines[6].endswith("50.0% of the pseudo-labels are right.")
    assert lines[7].endswith("1 of 5 trainings were cut short.")


def test_seeds_of_several_files_are_put_together(tmp_path):
    def stored(seed, **changes):
        runs = [run for run in RUNS if run["seed"] == seed]
        settings = {"sets": {"made": {"recipe": {"steps": 40}}}, "versions": {"torch": seed}}
        content = {"runs": runs, "seeds": [seed], "settings": {**settings, **changes}}
        path = tmp_path / f"{seed}-{len(changes)}.json"
        path.write_text(json.dumps(content))
        return path

    found = together([stored(1), stored(0), stored(2)])
    assert found["seeds"] == [0, 1, 2]
    whole = report({**found, "runs": RUNS})
    assert report(found) == whole
    with pytest.raises(SystemExit, match="two of the files have the same seed"):
        together([stored(0), stored(0)])
    with pytest.raises(SystemExit, match="the files are of other settings"):
        together([stored(0), stored(1, val_share=0.5)])


def test_the_command_has_no_folder_of_this_machine(monkeypatch):
    words = ["any_level.py", "--data", "/some/where", "--out=/else", "--jobs", "2"]
    monkeypatch.setattr(sys, "argv", words)
    assert any_level.command() == ("python benchmarks/any_level.py --data DIR --out DIR --jobs 2")
