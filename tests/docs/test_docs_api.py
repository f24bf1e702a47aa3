"""The public API is what docs/api.md lists, and does not change unnoticed."""

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
