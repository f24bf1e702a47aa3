"""How long an experiment will take, and what is said about it."""

import math
import re

import pytest
from made_runs import make_run
from terminals import Terminal

from coarse2fine import Hierarchy, RunError, RunResult
from coarse2fine.experiments.declaration import Setting, Variant
from coarse2fine.experiments.progress import Board, Estimate, whole_minutes
from coarse2fine.experiments.tasks import expand


def tasks(tmp_path, *sizes, epochs=10):
    """A baseline and a curriculum for each size."""
    settings = [
        Setting(
            "", {"data": "shapes", "model": "cnn", "train_size": size, "epochs": epochs},
            (Variant("continuous"),),
        )
        for size in sizes
    ]  # fmt: skip
    return expand(tuple(settings), (0,), tmp_path)


def result(task, seconds):
    return RunResult(
        task.name, task.seed, 0.625, None, 8, 10, seconds, True, None, (), task.path
    )  # fmt: skip


def test_nothing_is_known_before_anything_is_done(tmp_path):
    assert math.isnan(Estimate(tasks(tmp_path, 100), 1).seconds_left({}))


def test_others_of_a_setting_take_as_long_as_those_that_are_done(tmp_path):
    a, b, c, d = tasks(tmp_path, 100, 300)
    estimate = Estimate([a, b, c, d], 1)
    estimate.done(a, 60.0)
    assert estimate.seconds_left({}) == 60 + 2 * 180  # three times the images of the other
    assert estimate.seconds_left({b: 20.0}) == 40 + 2 * 180
    estimate.done(c, 200.0)
    assert estimate.seconds_left({}) == 60 + 200
    estimate.done(b, 80.0)
    estimate.done(d, 100.0)
    assert estimate.seconds_left({}) == 0


def test_more_pixels_and_more_epochs_take_longer(tmp_path):
    small = tasks(tmp_path, 100)[0]
    for changes, factor in (({"image_size": 64}, 4), ({"epochs": 30}, 3)):
        row = Setting("", {**small.setting.settings, **changes}, ())
        (other,) = expand((row,), (0,), tmp_path)
        estimate = Estimate([small, other], 1)
        estimate.done(small, 10.0)
        assert estimate.seconds_left({}) == pytest.approx(factor * 10)


def test_several_workers_share_what_is_left_but_no_single_training(tmp_path):
    a, b, c, d = tasks(tmp_path, 100, 100_000)
    estimate = Estimate([a, b, c, d], 2)
    estimate.done(a, 1.0)
    assert estimate.seconds_left({}) == pytest.approx((1 + 2 * 1000) / 2)
    estimate.done(c, 1000.0)
    assert estimate.seconds_left({}) == 1000


def test_one_that_takes_longer_than_expected_counts_as_nearly_done(tmp_path):
    a, b = tasks(tmp_path, 100)
    estimate = Estimate([a, b], 1)
    estimate.done(a, 60.0)
    assert estimate.seconds_left({b: 300.0}) == 0


def test_one_that_failed_is_not_to_be_waited_for(tmp_path):
    a, b = tasks(tmp_path, 100)
    estimate = Estimate([a, b], 1)
    estimate.done(a, 60.0)
    estimate.done(b)
    assert estimate.seconds_left({}) == 0


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "1 min"), (60, "1 min"), (61, "2 min"), (3540, "59 min"), (3541, "1 h 0 min"),
     (90_000, "25 h 0 min")],
)  # fmt: skip
def test_a_duration_is_rounded_up_to_minutes(seconds, text):
    assert whole_minutes(seconds) == text


def test_the_board_writes_a_line_for_each_that_ends(tmp_path, capsys):
    a, b, c, d = tasks(tmp_path, 100, 300)
    board = Board()
    board.begin([a, b, c, d], 2)
    board.running([a, c])
    board.done(a, result(a, 600.0))
    board.retried(c)
    board.running([b, c])
    board.failed(c, RunError("[/tmp] is\nfull :x:"))
    board.failed(d, ValueError())
    board.done(b, result(b, 1200.0))
    board.close()
    died = "its process has died; it resumes from its last checkpoint"
    # A training of 300 images is expected to take 30 minutes, one of 100 ten.
    assert capsys.readouterr().err.splitlines() == [
        "4 runs to do, 2 at a time",
        f"1 of 4: {a}: test accuracy 62.50, 10 epochs, 600 s; 35 min left",
        f"{c}: {died}",
        f"2 of 4: {c}: failed: [/tmp] is full :x:; 30 min left",
        f"3 of 4: {d}: failed: ValueError; 10 min left",
        f"4 of 4: {b}: test accuracy 62.50, 10 epochs, 1200 s",
    ]
    assert str(d) == "shapes-cnn-300, seed 0, continuous"


def test_on_a_terminal_each_training_at_work_has_a_line(tmp_path, monkeypatch):
    a, b, c = tasks(tmp_path, 100, 300)[:3]
    tree = Hierarchy.from_levels([[0, 0, 1, 1]])
    begun = {"predictions": [0], "targets": [3], "class_names": tuple("abcd"), "is_done": False}
    make_run(a.path, method="baseline", epochs=2, **begun)
    make_run(b.path, method="continuous", hierarchy=tree, epochs=3, **begun)
    make_run(c.path, method="baseline", epochs=1, **begun)
    (c.path / "metrics.jsonl").write_text("damaged\n")
    screen = Terminal(monkeypatch, "stderr", columns=70)
    board = Board()
    board.begin([a, b, c], 3)
    board.running([a, b, c])
    board._live.refresh()
    board.close()
    text = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", screen.text())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[1:5] == [
        "0 of 3 runs",
        f"{a}  epoch 2",
        f"{b}  epoch 3  level 1: 4 classes",
        f"{c}  epoch 1",
    ]
