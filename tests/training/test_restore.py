"""The model of a finished run, and which run of a comparison is meant."""

import json
import os

import pytest
from studies import NAMES, SmallNet, table, train, weights

from coarse2fine import RunError
from coarse2fine.runs.find import find_run
from coarse2fine.runs.restore import load_trained


def test_a_finished_run_gives_its_model_and_what_it_needs(tmp_path):
    run = train(tmp_path / "run", normalise=True)
    trained = load_trained(run.path)
    assert trained.class_names == NAMES
    assert (trained.kind, trained.input_shape, trained.columns) == ("table", (10,), ())
    assert trained.config.seeds == (run.seed,)
    assert not trained.model.training
    assert weights(run)["head.bias"].equal(trained.model.state_dict()["head.bias"])


def test_its_logits_are_those_of_the_training(tmp_path):
    run = train(tmp_path / "run", normalise=True)
    predictions, _ = run.predictions("test")
    logits = load_trained(run.path).logits(table(60, seed=1), batch_size=7)
    assert logits.shape == (60, 6)
    assert logits.argmax(1).tolist() == predictions.tolist()
    assert load_trained(run.path).logits(table(0)).shape == (0, 6)


def test_a_model_that_cannot_be_made_again_is_a_run_error(tmp_path):
    run = train(tmp_path / "run")
    with pytest.raises(RunError, match=r"cannot be made again .*studies has no Gone.* load the w"):
        load_trained(run.path, "studies:Gone")
    with pytest.raises(RunError, match=r"(?s)cannot be made again .*Missing key"):
        load_trained(run.path, SmallNet)


@pytest.mark.parametrize("content", ["{}", "[", '{"config": {"color": 1}, "data": {}}'])
def test_a_damaged_config_is_a_run_error(tmp_path, content):
    run = train(tmp_path / "run")
    (run.path / "config.json").write_text(content)
    with pytest.raises(RunError, match=r"config.json cannot be used"):
        load_trained(run.path)


def test_a_run_that_is_not_done_is_a_run_error(tmp_path):
    with pytest.raises(RunError, match="it is not a run, or not done"):
        load_trained(tmp_path)


@pytest.mark.parametrize("name", ["mlp", "coarse2fine.models.table:TableMLP"])
def test_a_model_of_ours_that_no_memory_holds_is_not_made(tmp_path, name):
    run = train(tmp_path / "run")
    content = json.loads((run.path / "config.json").read_text())
    content["config"]["model"], content["data"]["input_shape"] = name, [10**11]
    (run.path / "config.json").write_text(json.dumps(content))
    result = json.loads((run.path / "result.json").read_text())
    (run.path / "result.json").write_text(json.dumps({"result": result["result"]}))
    with pytest.raises(RunError, match=r"the weights are those of another model"):
        load_trained(run.path)


def test_a_run_says_not_how_many_processes_are_started(tmp_path, monkeypatch):
    run = train(tmp_path / "run")
    content = json.loads((run.path / "config.json").read_text())
    content["config"]["workers"] = 10**6
    (run.path / "config.json").write_text(json.dumps(content))
    asked = []

    def batches(*_, workers, **__):
        asked.append(workers)
        raise InterruptedError

    monkeypatch.setattr("coarse2fine.runs.restore.Batches", batches)
    with pytest.raises(InterruptedError):
        load_trained(run.path).logits(table(10))
    assert asked == [os.cpu_count()]


@pytest.fixture
def comparison(tmp_path):
    for run in ("seed-10/staged", "seed-2/baseline", "seed-2/continuous", "seed-2/hierarchy-cnn"):
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "config.json").write_text("{}")
    (tmp_path / "seed-2" / "search").mkdir()
    (tmp_path / "seed-old-1").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        ({}, "seed-2/continuous"),
        ({"method": "baseline"}, "seed-2/baseline"),
        ({"seed": 10}, "seed-10/staged"),
        ({"seed": 2, "method": "hierarchy-cnn"}, "seed-2/hierarchy-cnn"),
    ],
)
def test_of_a_comparison_one_run_is_chosen(comparison, choice, found):
    assert find_run(comparison, **choice) == comparison / found


def test_a_run_is_itself(comparison):
    run = comparison / "seed-2" / "baseline"
    assert find_run(run) == run
    with pytest.raises(RunError, match="is not a comparison, so there is no method or seed"):
        find_run(run, method="staged")


def test_what_a_comparison_does_not_have_is_refused(comparison):
    with pytest.raises(RunError, match="has no seed 3, but 2, 10."):
        find_run(comparison, seed=3)
    with pytest.raises(RunError, match="has no method x, but baseline, continuous, hierarchy-cnn."):
        find_run(comparison, method="x")
    with pytest.raises(RunError, match="there is no run"):
        find_run(comparison / "nothing")
    (comparison / "seed-1").mkdir()
    with pytest.raises(RunError, match="seed-1 holds no run yet"):
        find_run(comparison)
