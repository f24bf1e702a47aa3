"""`c2f train` on a terminal."""

import re

from terminals import Terminal

from coarse2fine.cli.app import run
from coarse2fine.training import terminal

from .calls import SHORT

CODE = re.compile(r"\x1b\[[?\d;]*[A-Za-z]")


def test_it_ends_with_a_line_for_each_training(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    screen = Terminal(monkeypatch, "stderr")
    assert run(["train", *SHORT, "--out", "here"]) == 0
    text = CODE.sub("", screen.text())
    for method in ("baseline", "continuous"):
        assert len(re.findall(rf"seed 0 {method}: test accuracy", text)) == 1
    assert re.search(r"seed 0 continuous: test accuracy .* s\s*$", text)
    assert capsys.readouterr().out.startswith("use ")  # piped, and nothing live in it


def test_after_ctrl_c_the_terminal_is_as_it_was(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    screen = Terminal(monkeypatch, "stderr")
    own = terminal.LiveLine.epoch

    def interrupted(line, metrics):
        own(line, metrics)
        raise KeyboardInterrupt

    monkeypatch.setattr(terminal.LiveLine, "epoch", interrupted)
    assert run(["train", *SHORT, "--out", "here"]) == 130
    text = screen.text()
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1  # the cursor is back
    live, _, rest = text.rpartition("\x1b[2K")
    assert "seed 0 baseline  epoch 1/2" in live  # and the line is gone
    assert CODE.sub("", rest).split("\n")[-2:] == [
        "stopped; the same command resumes from the last checkpoint in here",
        "",
    ]


def test_the_comparison_is_a_table_with_a_rule_below_its_headings(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    screen = Terminal(monkeypatch, "stdout")
    assert run(["train", *SHORT, "--out", "here"]) == 0
    lines = [CODE.sub("", line).rstrip() for line in screen.text().splitlines()]
    table = lines[lines.index("test accuracy:") + 1 :]
    assert table[0].split() == ["seed", "baseline", "continuous", "gain", "of", "continuous"]
    assert set(table[1]) == {"─"}
    assert [line.split()[0] for line in table[2:5]] == ["0", "mean", "epochs"]
