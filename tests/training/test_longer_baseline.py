"""A baseline is trained for as many epochs as the longest method it is compared with."""

import shutil

import pytest
import torch
from studies import (
    Interrupting,
    InterruptionError,
    Net,
    compare,
    metrics,
    outcome,
    same_tensors,
    train,
    weights,
)
from torch import nn

from coarse2fine import RunResult
from coarse2fine.runs.find import find_run

IMPATIENT = {"patience": 1, "epochs": 12, "checkpoint_seconds": 0.0}


def files(path):
    return {file.relative_to(path): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def baseline_and_method(result):
    (baseline,), (method,) = result.of("baseline"), result.of("continuous")
    return baseline, method


def test_it_goes_on_until_it_has_had_as_many_epochs(tmp_path):
    baseline, method = baseline_and_method(compare(tmp_path, curriculum_epochs=8, **IMPATIENT))
    first = RunResult.load(tmp_path / "seed-0" / "baseline")
    assert first.epochs < method.epochs
    assert (baseline.epochs, baseline.own_epochs) == (method.epochs, first.epochs)
    assert first.own_epochs is method.own_epochs is None


def test_it_is_the_training_that_never_stopped_to_the_bit(tmp_path):
    result = compare(tmp_path / "a", curriculum_epochs=8, **IMPATIENT)
    longer, method = baseline_and_method(result)
    patient = {**IMPATIENT, "patience": 0, "epochs": method.epochs}
    (whole,) = compare(tmp_path / "b", methods=(), **patient).runs
    assert metrics(longer.path) == metrics(whole.path)
    assert same_tensors(weights(longer), weights(whole))
    assert (longer.accuracy, longer.best_epoch) == (whole.accuracy, whole.best_epoch)


def test_hierarchy_and_length_stay_those_of_the_first(tmp_path):
    options = {**IMPATIENT, "curriculum_epochs": "reach-90", "max_levels": None}
    compare(tmp_path / "a", **options)
    before = files(tmp_path / "a" / "seed-0" / "continuous")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / "b" / "seed-0" / "continuous")
    compare(tmp_path / "b", **options)
    after = files(tmp_path / "b" / "seed-0" / "continuous")
    hierarchy = next(name for name in before if name.name == "hierarchy.json")
    assert before[hierarchy] == after[hierarchy]


def test_the_first_directory_is_left_as_it_was(tmp_path):
    compare(tmp_path, methods=(), **IMPATIENT)
    before = files(tmp_path / "seed-0" / "baseline")
    compare(tmp_path / "other", curriculum_epochs=8, **IMPATIENT)
    timed = [name for name in before if name.name in ("metrics.jsonl", "state.json", "result.json")]
    after = files(tmp_path / "other" / "seed-0" / "baseline")
    assert before.keys() == after.keys()
    same = [name for name in before if name not in timed and name.name != "config.json"]
    assert all(before[name] == after[name] for name in same)


@pytest.mark.parametrize("is_mid_copy", [False, True])
def test_killed_on_its_way_it_comes_to_the_same_bits(tmp_path, is_mid_copy):
    wanted, method = baseline_and_method(compare(tmp_path / "a", curriculum_epochs=8, **IMPATIENT))
    options = {**IMPATIENT, "curriculum_epochs": 8}

    class OnTheWay(Interrupting):
        def begin(self, path, method, seed, epochs):  # noqa: ARG002
            self.is_longer = path.name.startswith("baseline-")

        def epoch(self, found):
            if self.is_longer:
                super().epoch(found)

    with pytest.raises(InterruptionError):
        compare(tmp_path / "b", watcher=OnTheWay(method.epochs), **options)
    if is_mid_copy:  # killed after the metrics were copied, before the checkpoint was
        shutil.rmtree(tmp_path / "b" / "seed-0" / wanted.path.name / "checkpoint")
    found, _ = baseline_and_method(compare(tmp_path / "b", **options))
    assert outcome(found) == outcome(wanted)
    assert same_tensors(weights(found), weights(wanted))
    assert metrics(found.path) == metrics(wanted.path)


def test_one_that_took_longer_anyway_does_not_go_on(tmp_path):
    baseline, method = baseline_and_method(compare(tmp_path, patience=0))
    assert (baseline.epochs, baseline.own_epochs) == (method.epochs, None)
    assert baseline.path.name == "baseline"


def test_the_longest_is_what_a_comparison_calls_its_baseline(tmp_path):
    baseline, _ = baseline_and_method(compare(tmp_path, curriculum_epochs=8, **IMPATIENT))
    assert find_run(tmp_path, "baseline") == baseline.path
    assert find_run(tmp_path).name == "continuous"


def test_the_table_has_the_epochs_of_both(tmp_path):
    result = compare(tmp_path, curriculum_epochs=8, **IMPATIENT)
    epochs = str(result.of("continuous")[0].epochs)
    line = next(line for line in str(result).splitlines() if line.startswith("epochs"))
    assert line.split() == ["epochs", epochs, epochs]


class HeadFirst(nn.Module):
    """Draws its head before its encoder, so that a wider head shifts what the encoder draws."""

    def __init__(self, num_classes):
        super().__init__()
        self.head = nn.Linear(16, num_classes)
        self.encoder = nn.Linear(10, 16)

    def forward(self, inputs):
        return self.head(self.encoder(inputs).relu())


@pytest.mark.parametrize("model", [Net, HeadFirst])
def test_staged_begins_with_the_baseline_s_encoder(tmp_path, model):
    still = {"learning_rate": 1e-30, "epochs": 1, "model": model}
    plain = weights(train(tmp_path / "plain", **still))
    staged = weights(train(tmp_path / "staged", "staged", **still))
    encoder = [name for name in plain if name.startswith("encoder")]
    assert encoder
    assert all(torch.equal(plain[name], staged[name]) for name in encoder)
