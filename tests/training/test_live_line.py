"""The live line of a training."""

import re
import sys

import pytest
from studies import Interrupting, InterruptionError, metrics, train
from terminals import Terminal

from coarse2fine.training import terminal
from coarse2fine.training.progress import Watcher, Watchers
from coarse2fine.training.terminal import LiveLine, TerminalProgress, standing

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"  # the cursor


def epoch(number, level=None, accuracy=None, stage=0, seconds=1.0):
    return {
        "stage": stage,
        "epoch": number,
        "level": level,
        "level_accuracy": accuracy,
        "seconds": seconds * number,
    }


class Redrawing(Watcher):
    """Has a line redrawn after every epoch, so that no test depends on how long one takes."""

    def __init__(self, shown):
        self.shown = shown

    def epoch(self, metrics):  # noqa: ARG002
        self.shown._live.refresh()


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; set ``now`` to move it."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(terminal, "time", clock)
    return clock


def test_before_the_first_epoch_it_says_how_many_there_may_be(tmp_path):
    assert LiveLine(tmp_path, "seed 0 baseline", 8).text() == "seed 0 baseline  up to 8 epochs"


@pytest.mark.usefixtures("clock")
def test_a_baseline_has_no_level(tmp_path):
    line = LiveLine(tmp_path, "seed 0 baseline", 8)
    line.epoch(epoch(1, accuracy=0.25))
    line.epoch(epoch(2, accuracy=0.125))
    told = "seed 0 baseline  epoch 2/8  validation 12.5 (best 25.0)  up to 6 s left"
    assert line.text() == told


def test_the_time_left_is_that_of_all_epochs_allowed_and_passes(tmp_path, clock):
    line = LiveLine(tmp_path, "a", 8)
    line.epoch(epoch(2, seconds=50.0))
    assert line.text() == "a  epoch 2/8  up to 5 min left"  # six epochs of 50 seconds
    clock.now += 245
    assert line.text() == "a  epoch 2/8  up to 55 s left"
    clock.now += 1000  # this epoch takes longer than those before
    assert line.text() == "a  epoch 2/8  up to 0 s left"


def test_the_best_is_that_of_the_same_level_and_stage():
    done = [epoch(1, 0, 0.75), epoch(2, 1, 0.5), epoch(3, 1, 0.375)]
    assert standing(done, (3, 9)) == "level 1: 9 classes  validation 37.5 (best 50.0)"
    again = [*done, epoch(4, 1, 0.25, stage=1)]
    assert standing(again, (3, 9)) == "level 1: 9 classes  validation 25.0 (best 25.0)"


def test_without_validation_samples_there_is_the_level_alone():
    assert standing([epoch(1, 0)], (3, 9)) == "level 0: 3 clusters"
    assert standing([], (3, 9)) == ""


def test_on_a_terminal_each_training_has_a_live_line_and_leaves_one(tmp_path, monkeypatch):
    screen = Terminal(monkeypatch, "stderr")
    watcher = TerminalProgress()
    result = train(tmp_path, "continuous", watcher=Watchers([watcher, Redrawing(watcher)]))
    watcher.close()
    text = screen.text()
    assert re.search(
        r"seed 0 continuous  epoch 4/4  level 2: 6 classes  validation \d+\.\d \(best", text
    )
    assert text.count(HIDE) == text.count(SHOW) == 1
    last = text.rpartition("seed 0 continuous: test accuracy ")[2]
    assert last.startswith(f"{100 * result.accuracy:.2f}, best epoch ")
    assert "epoch 4/4" not in last


def test_on_a_narrow_terminal_the_line_is_folded(tmp_path, monkeypatch):
    screen = Terminal(monkeypatch, "stderr", columns=40)
    watcher = TerminalProgress()
    train(tmp_path, "continuous", watcher=Watchers([watcher, Redrawing(watcher)]))
    watcher.close()
    text = screen.text()
    assert "seed 0 continuous  epoch 4/4  level 2: 6" in text
    assert re.search(r"classes  validation \d+\.\d \(best", text)


def test_the_best_so_far_of_a_resumed_training_is_of_all_its_epochs(tmp_path):
    with pytest.raises(InterruptionError):
        train(tmp_path, watcher=Interrupting(3), checkpoint_seconds=0.0)
    line = LiveLine(tmp_path, "a", 4)

    class Following(Watcher):
        def epoch(self, metrics):
            line.epoch(metrics)

    train(tmp_path, watcher=Following())
    best = max(each["level_accuracy"] for each in metrics(tmp_path))
    assert f"(best {100 * best:.1f})" in line.text()


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_cannot_redraw_gets_lines(tmp_path, monkeypatch, name):
    screen = Terminal(monkeypatch, "stderr", TERM=name)
    watcher = TerminalProgress()
    train(tmp_path, epochs=2, watcher=watcher)
    watcher.close()
    assert re.fullmatch(r"seed 0 baseline: test accuracy .*\n", screen.text())


def test_what_is_piped_beside_a_live_line_stays_out_of_the_terminal(monkeypatch, capsys, tmp_path):
    screen = Terminal(monkeypatch, "stderr")
    watcher = TerminalProgress()
    watcher.begin(tmp_path, "baseline", 0, 3)
    sys.stdout.write("a result\n")
    watcher.close()
    assert capsys.readouterr().out == "a result\n"
    assert "a result" not in screen.text()
