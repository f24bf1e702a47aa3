"""Who is told what a training does."""

import json

import pytest
import studies
from studies import Interrupting, InterruptionError, train

from coarse2fine.training.progress import (
    JsonLines,
    TensorBoard,
    Watcher,
    Watchers,
)
from coarse2fine.training.terminal import TerminalProgress


class Recording(Watcher):
    def __init__(self):
        self.told = []

    def begin(self, path, method, seed, epochs):
        self.told.append(("begin", path.name, method, seed, epochs))

    def epoch(self, metrics):
        self.told.append(("epoch", metrics["epoch"]))

    def end(self, result):
        self.told.append(("end", result.method))

    def close(self):
        self.told.append("close")


def test_a_watcher_is_told_the_begin_every_epoch_and_the_end(tmp_path):
    watcher = Recording()
    train(tmp_path / "run", "staged", epochs=1, seed=3, watcher=watcher)
    assert watcher.told == [
        ("begin", "run", "staged", 3, 3),
        ("epoch", 1),
        ("epoch", 2),
        ("epoch", 3),
        ("end", "staged"),
    ]


def test_a_resumed_training_tells_only_the_epochs_it_does(tmp_path):
    with pytest.raises(InterruptionError):
        train(tmp_path, watcher=Interrupting(3), checkpoint_seconds=0.0)
    watcher = Recording()
    train(tmp_path, watcher=watcher)
    assert [told[1] for told in watcher.told if told[0] == "epoch"] == [3, 4]


def test_several_watchers_are_told_in_order(tmp_path):
    first, second = Recording(), Recording()
    both = Watchers([first, second])
    train(tmp_path, epochs=1, watcher=both)
    both.close()
    assert first.told == second.told
    assert [told[0] for told in first.told[:-1]] == ["begin", "epoch", "end"]
    assert first.told[-1] == "close"


def test_json_lines_are_for_programs(tmp_path, capsys):
    result = train(tmp_path, epochs=2, watcher=JsonLines())
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in lines] == ["begin", "epoch", "epoch", "end"]
    assert lines[0] == {
        "event": "begin",
        "path": str(tmp_path),
        "method": "baseline",
        "seed": 0,
        "epochs": 2,
    }
    assert lines[1]["epoch"] == 1
    assert lines[-1]["accuracy"] == result.accuracy


def test_without_a_terminal_there_is_one_line_a_training(tmp_path, capsys):
    watcher = TerminalProgress()
    result = train(tmp_path, epochs=2, watcher=watcher)
    watcher.close()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert (
        shown.err.split()
        == (
            f"seed 0 baseline: test accuracy {100 * result.accuracy:.2f}, best epoch "
            f"{result.best_epoch}, 2 epochs, {result.seconds:.0f} s"
        ).split()
    )


def events(path):
    """The values of each metric by epoch, as TensorBoard reads them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(path / "tensorboard"))
    found.Reload()
    return {
        name: [(event.step, event.value) for event in found.Scalars(name)]
        for name in found.Tags()["scalars"]
    }


def test_tensorboard_has_the_metrics_and_the_test_accuracy(tmp_path):
    result = train(tmp_path, "continuous", watcher=TensorBoard())
    found = events(tmp_path)
    assert found["test_accuracy"] == [(4, pytest.approx(result.accuracy))]
    for name in ("loss", "accuracy", "level_accuracy", "level", "learning_rate"):
        wanted = [(line["epoch"], pytest.approx(line[name])) for line in studies.metrics(tmp_path)]
        assert found[name] == wanted


def test_tensorboard_shows_each_epoch_of_a_resumed_run_once(tmp_path):
    both = Watchers([TensorBoard(), Interrupting(3)])
    with pytest.raises(InterruptionError):
        train(tmp_path, watcher=both)  # no checkpoint yet, so all begins anew
    both.close()
    train(tmp_path, watcher=TensorBoard())
    assert [step for step, _ in events(tmp_path)["loss"]] == [1, 2, 3, 4]
