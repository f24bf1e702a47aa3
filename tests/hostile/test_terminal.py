"""Names of others do not steer the terminal: neither escape sequences nor rich's markup."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from made_runs import make_run

from coarse2fine import Hierarchy
from coarse2fine.cli.app import _show_warning, run
from coarse2fine.experiments.declaration import Setting, Variant
from coarse2fine.experiments.progress import Board
from coarse2fine.experiments.tasks import Task
from coarse2fine.training.terminal import TerminalProgress

# Sets the title, clears the screen, hides text, turns its direction, makes a link, by 7 and 8 bits.
STEERING = "\x1b]0;title\x07\x1b[2J\x1b[8m\u202e\x1b]8;;x:\x1b\\\x9b31m\x00\x7f\r\b"
MARKUP = "[bold red]loud[/] [link=x:y]here[/link] :smile:"
HOSTILE = f"cat {MARKUP} {STEERING}"
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


@pytest.fixture
def c2f(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def c2f(*words):
        code = run([str(word) for word in words])
        captured = capsys.readouterr()
        assert not UNSAFE.search(captured.out + captured.err)
        return code, captured.out, captured.err

    return c2f


@pytest.fixture
def hierarchy(tmp_path):
    names = [HOSTILE, f"{HOSTILE}2", "dog", "car"]
    found = Hierarchy.from_levels([[0, 0, 1, 1]], names, cluster_names=[[HOSTILE, "rest"]])
    found.save(tmp_path / "h.json")
    return found


@pytest.mark.usefixtures("hierarchy")
def test_names_in_a_tree_are_shown_letter_by_letter(c2f):
    code, out, _ = c2f("hierarchy", "h.json")
    assert code == 0
    assert MARKUP in out
    assert r"\x1b]0;title\x07" in out


def test_names_in_json_are_escaped(c2f, hierarchy):
    _, out, _ = c2f("hierarchy", "h.json", "--json")
    assert Hierarchy.from_dict(json.loads(out)) == hierarchy


@pytest.mark.parametrize("words", [["hierarchy"], ["report"], ["evaluate", "x", "y", "--split"]])
def test_names_in_an_error_are_escaped(c2f, words):
    code, _, err = c2f(*words, f"no {STEERING.replace(chr(0), '')}.json")
    assert code == 2
    assert r"\x1b" in err


def test_names_in_a_traceback_are_escaped(c2f):
    code, _, err = c2f("hierarchy", f"no {MARKUP} \x1b[2J.json", "--debug")
    assert code == 2
    assert "Traceback" in err
    assert MARKUP in err


def test_names_in_a_warning_are_escaped(capsys):
    _show_warning(UserWarning(HOSTILE))
    err = capsys.readouterr().err
    assert err.startswith(f"warning: cat {MARKUP}")
    assert not UNSAFE.search(err)


def test_a_run_of_others_steers_nothing(c2f, hierarchy, tmp_path):
    names, targets = hierarchy.class_names, np.arange(4)
    for method in ("baseline", "continuous"):
        made = {"hierarchy": hierarchy} if method == "continuous" else {}
        make_run(
            tmp_path / "run" / "seed-0" / method, method=method, predictions=targets,
            targets=targets, class_names=names, command=HOSTILE, data=HOSTILE, **made,
        )  # fmt: skip
    result = tmp_path / "run" / "seed-0" / "continuous" / "result.json"
    content = json.loads(result.read_text())
    del content["checksums"], content["own"]
    content["result"]["method"] = HOSTILE
    result.write_text(json.dumps(content))
    for words in (["report", "run"], ["figure", "curves", "run"], ["hierarchy", "run"]):
        code, out, err = c2f(*words)
        assert code == 0, (words, out, err)
    assert c2f("figure", "gains", "run", "--method", "x")[0] == 2


class Ended:
    """What the display is told of a training's result."""

    seed, method, accuracy, best_epoch, epochs, seconds = 0, HOSTILE, 0.5, 1, 2, 3.0


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_progress_of_a_training(capsys, monkeypatch, is_terminal):
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
    shown = TerminalProgress()
    shown.begin(Path("run"), HOSTILE, 0, 3)
    shown.epoch({"epoch": 1, "accuracy": 0.5, "level": 0})
    shown.end(Ended())
    shown.close()
    _check_shown(capsys.readouterr().err)


def test_the_progress_of_an_experiment(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("FORCE_COLOR", "1")
    variant = Variant("continuous")
    setting = Setting(HOSTILE, {"data": "shapes:60", "model": "cnn"}, (variant,))
    task = Task(setting, variant, 0, tmp_path)
    shown = Board()
    shown.begin([task], 1)
    shown.running([task])
    shown.retried(task)
    shown.failed(task, ValueError(HOSTILE))
    shown.close()
    _check_shown(capsys.readouterr().err)


def _check_shown(text: str) -> None:
    """Rich itself steers the terminal, but by nothing of what it was told to show."""
    assert MARKUP in text
    assert "\x1b]" not in text  # titles and links
    assert "\x1b[2J" not in text
    assert "\x1b[8m" not in text
    assert not re.search(r"[\x00\x07\x08\x7f-\x9f\u202e]", text)


def test_what_steers_is_told_from_what_does_not():
    assert len(UNSAFE.findall(STEERING)) == 12
    assert not UNSAFE.search(f"{MARKUP}\tgrößer\n")
