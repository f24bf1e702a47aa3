"""The public API is what docs/api.md lists, and does not change unnoticed."""

import ast
import re
import sys
from pathlib import Path

import pytest

import coarse2fine

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import public_api  # noqa: E402

SECTIONS = dict(public_api.sections())
STORED = {
    part.partition("\n")[0]: part.partition("\n")[2].split("\n")
    for part in public_api.LIST.read_text().removeprefix("# ").split("\n# ")
}


@pytest.mark.parametrize("title", [*SECTIONS, public_api.COMMAND_LINE])
def test_the_public_api_is_the_stored_one(title):
    is_python = title in SECTIONS
    lines = public_api.lines_of(SECTIONS[title]) if is_python else public_api.command_line()
    found, stored = set(lines), set(filter(None, STORED[title]))
    changed = [f"+ {line}" for line in found - stored] + [f"- {line}" for line in stored - found]
    assert not changed, "the public API has changed, see CONTRIBUTING.md:\n" + "\n".join(changed)


def test_no_part_is_stored_that_is_gone():
    assert list(STORED) == [*SECTIONS, public_api.COMMAND_LINE]


def test_the_page_has_every_name_of_the_package():
    listed = re.findall(r"^::: \S+\.(\w+)$", public_api.PAGE.read_text(), re.M)
    assert len(set(coarse2fine.__all__)) > 50
    assert set(coarse2fine.__all__) <= set(listed)


class Base:
    inherited: int

    def kept(self, value: int) -> str:
        return str(value)

    def _hidden(self) -> None: ...


class Made(Base):
    def __init__(self, size: "int | None" = 3, *, name: str) -> None: ...

    @property
    def width(self) -> float:
        return 1.0

    @classmethod
    def load(cls, path: str) -> "Made":
        return cls(name=path)


def test_a_class_is_listed_with_its_constructor_and_public_members(monkeypatch):
    for cls in (Base, Made):
        monkeypatch.setattr(cls, "__module__", "coarse2fine.made")
    assert list(public_api.described(Made, "Made")) == [
        "Made(size: int | None = 3, *, name: str) -> None",
        "Made.inherited: int",
        "Made.kept(value: int) -> str",
        "Made.load(path: str) -> Made",
        "Made.width: float",
    ]
    assert list(public_api.described(Made, "Made", "[width]"))[1:] == ["Made.width: float"]
    assert len(list(public_api.described(Made, "Made", "false"))) == 1


OLD = (ROOT / "tests" / "old_runs" / "0.1.0" / "public_api.txt").read_text().splitlines()
NOW = [line for lines in STORED.values() for line in lines if line]
# Settings are given by keyword since 0.2; a number that is given to step is the epoch, as it was.
OTHERWISE = {"coarse2fine.Config", "coarse2fine.Curriculum.step"}


def name_of(line):
    """What a line is about: a Python name, or a command and its option."""
    return re.match(r"c2f( [a-z]+)*( --[\w/-]+)?|[\w.]+", line)[0]


def arguments_of(line):
    """The arguments of a function: those that may be given by their place, and all."""
    signature = re.sub(r"<.*?>+", "...", line[line.index("(") :])
    given = ast.parse(f"def f{signature}: ...").body[0].args
    placed = [each.arg for each in (*given.posonlyargs, *given.args)]
    return placed, {*placed, *(each.arg for each in given.kwonlyargs)}


@pytest.mark.parametrize("line", OLD, ids=name_of)
def test_what_was_public_in_0_1_still_is(line):
    same = [now for now in NOW if name_of(now) == name_of(line)]
    assert same
    if "(" not in line:
        return
    (placed, every), (placed_now, every_now) = map(arguments_of, (line, same[0]))
    assert every <= every_now
    if name_of(line) not in OTHERWISE:
        assert placed_now[: len(placed)] == placed
