"""All Python code in README.md and docs/ runs, page by page, and prints what the page says."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from pages import NAMES, PAGES, ROOT, SHELL, Block, blocks_of, read
from yours import YOURS

pytestmark = [
    # Trainings of a few seconds are too short for the rule that gives T.
    pytest.mark.filterwarnings("ignore:The curriculum would take:UserWarning"),
    # Keras' own variables lack an argument that numpy asks for.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    # On speed, as Lightning would have loaders with workers.
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    # Within Lightning, of what torch has renamed.
    pytest.mark.filterwarnings("ignore:`isinstance.treespec, LeafSpec.` is deprecated"),
]
DATA = "COARSE2FINE_DATA"
# Pages that take more than a few seconds.
SLOW = {"paper.md", "results.md"}
# What would take many minutes runs shorter: the same code otherwise.
SHORTER = {"results.md": ("epochs=15", "epochs=1")}


@pytest.fixture(autouse=True)
def _somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A page starts in an empty folder, and leaves neither variables nor modules of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    modules = set(sys.modules)
    with mock.patch.dict(os.environ):
        yield
    mock.patch.stopall()  # what a page was given in place of the network
    for path in tmp_path.glob("*.py"):
        if path.stem not in modules:
            sys.modules.pop(path.stem, None)


def run(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    """Return what a block prints; a traceback of it has the lines of the page."""
    code = block.code
    if page.name in SHORTER:
        code = code.replace(*SHORTER[page.name])
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + code, str(page), "exec"), namespace)
    return printed.getvalue()


def append(name: str, code: str) -> None:
    with Path(name).open("a", encoding="utf-8") as file:
        file.write(f"{code}\n\n")


def matches(printed: str, shown: str) -> bool:
    """Say whether the output is the one shown, where a line of "…" stands for any lines."""
    parts = re.split(r"^…\n", shown, flags=re.MULTILINE)
    return re.fullmatch(".*".join(map(re.escape, parts)), printed, re.DOTALL) is not None


def python_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are run, in order; what is included is run elsewhere."""
    blocks = [block for block in blocks_of(read(page)) if block.language == "python"]
    return [block for block in blocks if not block.snippets]


def lacking_data(blocks: list[Block]) -> list[Block]:
    """Return the blocks that need data that are not there, and what follows in their section."""
    asking = [block for block in blocks if DATA in block.code or "cifar" in block.code]
    return [
        block
        for block in blocks
        if not os.environ.get(DATA)
        and any(block.section == it.section and block.line >= it.line for it in asking)
    ]


def parameters() -> list[Any]:
    marked = {name: [pytest.mark.slow] for name in SLOW}
    return [pytest.param(page, id=page.name, marks=marked.get(page.name, ())) for page in PAGES]


@pytest.mark.parametrize("page", parameters())
def test_the_code_of_a_page_runs(page: Path) -> None:
    namespace = {"__name__": "__main__", **YOURS.get(page.name, dict)()}
    assert SHORTER.get(page.name, ("",))[0] in read(page)
    blocks = python_blocks(page)
    lacking = lacking_data(blocks)
    for block in (block for block in blocks if block not in lacking):
        if block.title:
            append(block.title, block.code)
            continue
        printed = run(page, block, namespace)
        if block.output is not None and not matches(printed, block.output):
            raise AssertionError(f"{page}:{block.line} prints\n{printed}")
    if lacking:
        lines = ", ".join(str(block.line) for block in lacking)
        pytest.skip(f"the code at {lines} needs {DATA}; all other code of the page has run")


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_code_goes_unrun_by_another_name_of_its_language(page: Path) -> None:
    languages = {block.language for block in blocks_of(read(page))}
    assert languages <= {"python", "text", "bibtex", *SHELL}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_a_page_includes_is_there(page: Path) -> None:
    for block in blocks_of(read(page)):
        assert block.snippets or "--8<--" not in block.code, f"{page.name}:{block.line}"
        for name in block.snippets:
            assert (ROOT / name).is_file(), f"{page.name}:{block.line} includes {name}"


def test_a_line_of_dots_stands_for_any_lines() -> None:
    assert matches("a\nb\nc\n", "a\n…\nc\n")
    assert matches("a\nb, …\n", "a\nb, …\n")
    assert not matches("a\nb\nc\n", "a\n…\nd\n")
    assert not matches("a\n", "b\n")
