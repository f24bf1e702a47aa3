"""Tables: by rich on a terminal, else as plain text."""

import re

import pytest
from terminals import Terminal

from coarse2fine._util.columns import Better, Worse, aligned
from coarse2fine.cli.process import show

ROWS = [
    ["method", "accuracy", "gain"],
    ["baseline", "31.50", ""],
    ["continuous", "34.00", Better("+2.50 ± 0.40")],
    ["staged", "30.00", Worse("-1.50 ± 0.30")],
    ["spl", "31.40", "-0.10 ± 0.90"],
]
GREEN, ORANGE = "38;2;0;158;115", "38;2;213;94;0"  # of the figures, #009e73 and #d55e00
CODE = re.compile(r"\x1b\[[\d;]*m")


def shown(monkeypatch, *parts, **options):
    terminal = Terminal(monkeypatch, "stdout", **options)
    show(*parts)
    return terminal.text()


def lines_of(text):
    """The lines without colours and without the rule below the headings."""
    lines = [line.rstrip() for line in CODE.sub("", text).splitlines()]
    return [line for line in lines if line and not set(line) <= {"─"}]


def test_numbers_stand_to_the_right_and_names_to_the_left(monkeypatch):
    assert lines_of(shown(monkeypatch, ROWS)) == [
        "method      accuracy          gain",
        "baseline       31.50",
        "continuous     34.00  +2.50 ± 0.40",
        "staged         30.00  -1.50 ± 0.30",
        "spl            31.40  -0.10 ± 0.90",
    ]


def test_only_what_is_beyond_chance_has_a_colour(monkeypatch):
    text = shown(monkeypatch, ROWS)
    assert re.findall(rf"\x1b\[{GREEN}m([^\x1b]+)", text) == ["+2.50 ± 0.40"]
    assert re.findall(rf"\x1b\[{ORANGE}m([^\x1b]+)", text) == ["-1.50 ± 0.30"]
    coloured = {code for code in CODE.findall(text) if "38;" in code or "48;" in code}
    assert coloured == {f"\x1b[{GREEN}m", f"\x1b[{ORANGE}m"}


def test_of_sixteen_colours_the_named_ones_are_taken(monkeypatch):
    text = shown(monkeypatch, ROWS, TERM="xterm", COLORTERM="")
    assert re.findall(r"\x1b\[(3\dm[^\x1b]+)", text) == ["32m+2.50 ± 0.40", "33m-1.50 ± 0.30"]


def test_no_color_is_respected(monkeypatch):
    text = shown(monkeypatch, ROWS, NO_COLOR="1")
    assert "38;" not in text
    assert len(lines_of(text)) == 5


@pytest.mark.parametrize("name", ["dumb", "unknown"])
def test_a_terminal_that_can_do_nothing_gets_plain_text(monkeypatch, name):
    assert shown(monkeypatch, "first", ROWS, "last", TERM=name) == f"first\n{aligned(ROWS)}\nlast\n"


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE"])
def test_what_is_piped_is_plain_text_whatever_is_forced(capsys, monkeypatch, variable):
    monkeypatch.setenv(variable, "1")
    show("first", ROWS, "last")
    assert capsys.readouterr().out == f"first\n{aligned(ROWS)}\nlast\n"


def test_letters_that_take_two_columns_leave_the_others_in_place(monkeypatch):
    rows = [["name", "n"], ["猫と犬", "12"], ["car", "3"]]
    assert lines_of(shown(monkeypatch, rows)) == ["name     n", "猫と犬  12", "car      3"]


def test_text_between_tables_is_not_wrapped(monkeypatch):
    sentence = "word " * 40 + "end"
    assert shown(monkeypatch, sentence, ROWS, columns=50).startswith(f"{sentence}\n")


def test_cells_are_folded_between_words_before_anything_else(monkeypatch):
    rows = [["name", "methods", "n"], ["one", "baseline, continuous, staged", "1234567"]]
    assert lines_of(shown(monkeypatch, rows, columns=30)) == [
        "name  methods                n",
        "one   baseline,        1234567",
        "      continuous,",
        "      staged",
    ]


def test_columns_without_room_come_below_with_the_name_again(monkeypatch):
    rows = [["run", *"abc"], ["first", "a" * 9, "b" * 9, "1"], ["second", "", "bb", "22"]]
    assert lines_of(shown(monkeypatch, rows, columns=20)) == [
        "run     a",
        "first   aaaaaaaaa",
        "second",
        "run     b",
        "first   bbbbbbbbb",
        "second  bb",
        "run      c",
        "first    1",
        "second  22",
    ]


def test_lines_of_the_same_setting_are_called_by_their_method_too(monkeypatch):
    rows = [["setting", "method", "a"], ["one", "x", "a" * 9], ["", "y", "b" * 9]]
    rows = [[*row, f"{place}{'c' * 9}"] for place, row in enumerate(rows)]
    lines = lines_of(shown(monkeypatch, rows, columns=30))
    assert [line.split() for line in lines[3:]] == [
        ["setting", "method", "0ccccccccc"],
        ["one", "x", "1ccccccccc"],
        ["y", "2ccccccccc"],
    ]


def test_a_word_longer_than_the_terminal_loses_no_letter(monkeypatch):
    text = shown(monkeypatch, [["a", "b"], ["x", "y" * 95]], columns=20)
    assert text.count("y") == 95
    assert max(map(len, CODE.sub("", text).splitlines())) <= 20


def test_nothing_in_a_cell_steers_the_terminal(monkeypatch):
    hostile = "[bold red]loud[/] :smile: \x1b]0;title\x07\x1b[2J\u202e"
    text = shown(monkeypatch, hostile, [["a"], [hostile]])
    assert text.count(r"[bold red]loud[/] :smile: \x1b]0;title\x07\x1b[2J\u202e") == 2
    assert set(re.findall(r"\x1b.{2}", text)) <= {"\x1b[1", "\x1b[0"}  # a bold heading


def test_of_several_processes_only_the_first_shows_a_table(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    assert shown(monkeypatch, ROWS) == ""
