"""Run directories: what is on disk when, and which directory can be taken up."""

import json
import re
import subprocess
import sys

import pytest
import torch
from studies import Interrupting, InterruptionError, metrics, settings, table_source, train

from coarse2fine import Hierarchy, RunError
from coarse2fine.data import sample
from coarse2fine.runs import writer as module
from coarse2fine.runs.checkpoint import Checkpoint
from coarse2fine.runs.directory import read_lines
from coarse2fine.runs.guards import check_same, locked
from coarse2fine.runs.writer import RunWriter, provenance, write_json

TENSORS = {"model": {"w": torch.ones(2)}}


def names(path):
    return sorted(entry.name for entry in path.iterdir())


# -------------------------------------------------------------------------------- metrics


def test_each_epoch_is_a_line_and_is_told(tmp_path):
    told = []
    run = RunWriter(tmp_path / "run", watch=told.append)
    for epoch in (1, 2):
        run.log({"epoch": epoch, "accuracy": None})
    assert run.metrics() == told == [{"epoch": 1, "accuracy": None}, {"epoch": 2, "accuracy": None}]


def test_on_resuming_metrics_are_cut_back_to_the_checkpoint(tmp_path):
    run = RunWriter(tmp_path)
    assert run.resume() is None
    for epoch in (1, 2, 3):
        run.log({"epoch": epoch})
        if epoch == 2:
            run.save(Checkpoint(epoch, {}, TENSORS))
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"epoch": 4, "lo')
    again = RunWriter(tmp_path)
    assert again.metrics() == [{"epoch": 1}, {"epoch": 2}, {"epoch": 3}]
    assert again.resume().number == 2
    assert (tmp_path / "metrics.jsonl").read_text() == '{"epoch": 1}\n{"epoch": 2}\n'


def test_without_a_checkpoint_metrics_begin_anew(tmp_path):
    RunWriter(tmp_path).log({"epoch": 1})
    assert RunWriter(tmp_path).resume() is None
    assert RunWriter(tmp_path).metrics() == []


@pytest.mark.parametrize(
    ("content", "lines"),
    [("", []), ("a\nb\n", ["a\n", "b\n"]), ("a\nb", ["a\n"]), ("a", [])],
)
def test_a_half_written_last_line_is_left_out(content, lines, tmp_path):
    (tmp_path / "x").write_text(content)
    assert read_lines(tmp_path / "x") == lines
    assert read_lines(tmp_path / "missing") == []


# ---------------------------------------------------------------------------- checkpoints


def test_a_checkpoint_is_due_by_the_clock_and_at_the_end_of_a_stage(tmp_path):
    assert not RunWriter(tmp_path, checkpoint_seconds=1000.0).wants_checkpoint(is_last=False)
    assert RunWriter(tmp_path, checkpoint_seconds=1000.0).wants_checkpoint(is_last=True)
    assert RunWriter(tmp_path, checkpoint_seconds=0.0).wants_checkpoint(is_last=False)


def test_only_the_writer_writes(tmp_path):
    told = []
    run = RunWriter(tmp_path / "run", is_writer=False, watch=told.append)
    run.log({"epoch": 1})
    run.save(Checkpoint(1, {}, TENSORS))
    run.begin({"config": {}, "data": {}})
    assert run.resume() is None
    assert not (tmp_path / "run").exists()
    assert told == []


# -------------------------------------------------------------------------------- the end


def test_a_finished_run_holds_what_the_design_says(tmp_path):
    run = train(tmp_path, "continuous")
    assert names(tmp_path) == [
        ".lock",
        "checkpoint",
        "config.json",
        "hierarchy.json",
        "metrics.jsonl",
        "predictions.safetensors",
        "result.json",
    ]
    assert names(tmp_path / "checkpoint") == ["method.safetensors", "model.safetensors"]
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored["format"] == "coarse2fine run"
    assert stored["config"]["learning_rate"] == 0.02
    assert stored["config"]["seeds"] == [0]
    assert stored["data"]["class_names"] == ["cat", "dog", "fox", "car", "bus", "van"]
    assert stored["data"]["samples"] == [160, 40, 60]
    assert stored["versions"]["torch"] == torch.__version__
    found, targets = run.predictions("test")
    assert (found == targets).mean() == run.accuracy
    found, targets = run.predictions("val")
    assert (found == targets).mean() == run.val_accuracy


def test_every_epoch_has_all_its_metrics(tmp_path):
    train(tmp_path, "continuous")
    lines = [json.loads(line) for line in read_lines(tmp_path / "metrics.jsonl")]
    assert [line["epoch"] for line in lines] == [1, 2, 3, 4]
    wanted = {"loss", "val_loss", "accuracy", "level_accuracy", "learning_rate", "level", "stage"}
    for line in lines:
        assert line.keys() == wanted | {"epoch", "seconds", "images_per_second"}
        assert line["images_per_second"] > 0
    assert sorted(line["seconds"] for line in lines) == [line["seconds"] for line in lines]


def test_a_method_without_state_leaves_none(tmp_path):
    train(tmp_path)
    # The last checkpoint stays, as a baseline may have to go on.
    assert names(tmp_path / "checkpoint") == ["000004", "model.safetensors"]


@pytest.mark.parametrize(
    "broken",
    ["model.safetensors", "method.safetensors", "predictions.safetensors", "result.json"],
)
def test_the_result_comes_last_and_a_run_without_it_is_taken_up(broken, tmp_path, monkeypatch):
    """Whatever cannot be written, the run is not done and its checkpoint is there."""
    whole = train(tmp_path / "whole", "dp-l")

    def failing(write):
        def write_unless_broken(path, content):
            if path.name.lstrip(".") == broken:
                raise InterruptionError
            write(path, content)

        return write_unless_broken

    for name in ("save_tensors", "write_json"):
        monkeypatch.setattr(module, name, failing(getattr(module, name)))
    with pytest.raises(InterruptionError):
        train(tmp_path / "run", "dp-l")
    monkeypatch.undo()
    assert not RunWriter(tmp_path / "run").is_done
    again = train(tmp_path / "run", "dp-l", watcher=Interrupting(1))  # no epoch is trained again
    assert (again.accuracy, again.best_epoch) == (whole.accuracy, whole.best_epoch)


def test_json_is_written_whole_or_not_at_all(tmp_path):
    write_json(tmp_path / "x.json", {"name": "日本"})
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == {"name": "日本"}
    with pytest.raises(TypeError):
        write_json(tmp_path / "x.json", {"name": object()})
    assert names(tmp_path) == ["x.json"]
    assert "日本" in (tmp_path / "x.json").read_text(encoding="utf-8")


# -------------------------------------------------------------------------- the same run?


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.5}, "was begun with learning_rate = 0.02, now it is 0.5"),
        ({"epochs": 9}, "was begun with epochs = 4, now it is 9"),
        ({"seed": 1}, "was begun with (seeds|fingerprint) ="),
        ({"val_share": 0.3}, "was begun with val_share = 0.2, now it is 0.3"),
        ({"clip": 1.0}, "was begun with clip = null, now it is 1.0"),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_done", [False, True])
def test_other_settings_are_refused_by_their_name(changes, message, is_done, tmp_path):
    if is_done:
        train(tmp_path)
    else:
        with pytest.raises(InterruptionError):
            train(tmp_path, watcher=Interrupting(2))
    before = metrics(tmp_path)
    with pytest.raises(RunError, match=f"{re.escape(str(tmp_path))} {message}.*another folder"):
        train(tmp_path, **changes)
    assert metrics(tmp_path) == before


def test_the_number_of_workers_may_differ(tmp_path):
    assert train(tmp_path) == train(tmp_path, workers=2)


def test_other_data_are_refused(tmp_path):
    train(tmp_path)
    with pytest.raises(RunError, match="was begun with fingerprint ="):
        train(tmp_path, data=sample(table_source(), seed=5))


def test_another_hierarchy_is_refused(tmp_path):
    train(tmp_path, "continuous")
    with pytest.raises(RunError, match="hierarchy"):
        train(tmp_path, "continuous", levels=Hierarchy.from_levels([[0, 1, 0, 1, 0, 1]]))


def test_long_values_are_cut_in_the_message(tmp_path):
    write_json(tmp_path / "config.json", {"config": {"x": "a" * 500}})
    with pytest.raises(RunError) as caught:
        check_same(tmp_path, {"config": {"x": "b"}})
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


def test_a_setting_that_is_new_or_gone_counts(tmp_path):
    write_json(tmp_path / "config.json", {"config": {"old": 1}})
    with pytest.raises(RunError, match="begun with new = null, now it is 2"):
        check_same(tmp_path, {"config": {"old": 1, "new": 2}})
    with pytest.raises(RunError, match="begun with old = 1, now it is null"):
        check_same(tmp_path, {"config": {}})
    check_same(tmp_path, {"config": {}}, but=("old",))


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"config": 3}', '{"config": {"a": 1}}', "null"]
)
def test_a_config_that_is_none_is_refused(content, tmp_path):
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(RunError, match="config.json is not a run's config.*choose another folder"):
        check_same(tmp_path, {"config": {"a": 1}, "data": {}})


def test_provenance_is_settings_versions_and_command(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["c2f", "train", "my data"])
    found = provenance(settings())
    assert found["command"] == "c2f train 'my data'"
    assert found["config"] == settings().to_dict()
    assert found["versions"].keys() == {
        "python",
        "coarse2fine",
        "torch",
        "numpy",
        "lightning-fabric",
        "scipy",
    }


# --------------------------------------------------------------------------------- locked

HOLDER = """
import sys
from pathlib import Path
from coarse2fine.runs.guards import locked
with locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the directory."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path / "run")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"locked\n"
    yield process
    process.kill()
    process.communicate()


def test_a_directory_is_for_one_process_until_that_ends(holder, tmp_path):
    path = tmp_path / "run"
    with pytest.raises(RunError, match=f"{path} is in use by another process"), locked(path):
        pass
    holder.kill()
    holder.wait()
    with locked(path):
        pass
    with locked(path):
        assert path.is_dir()
