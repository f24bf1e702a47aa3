"""The pages of the documentation, taken apart: code, what it prints, commands, prose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = (ROOT / "README.md", *sorted(DOCS.glob("*.md")))
NAMES = [page.name for page in PAGES]

_FENCE = re.compile(r"^( *)(```+)([^`\n]*)\n(.*?)^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
# In one line, or as a block, which ruff does not take for Python.
_SNIPPET = re.compile(r'^--8<-- "([^":]+)[^"]*"$|^--8<--\n([^:\n]+).*\n--8<--$', re.MULTILINE)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
SHELL = {"sh", "bash", "shell", "console"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Args:
        info: What stands behind the opening fence.
        code: What is in it.
        line: The line of the opening fence, from 1.
        section: Of the page, counted by its headings of the second rank.
        output: The block of text right behind it, if there is one.
    """

    info: str
    code: str
    line: int
    section: int
    output: str | None

    @property
    def language(self) -> str:
        return self.info.partition(" ")[0]

    @property
    def title(self) -> str | None:
        found = re.search(r'title="([^"]+)"', self.info)
        return found and found[1]

    @property
    def snippets(self) -> list[str]:
        """The files that are included."""
        return [inline or block for inline, block in _SNIPPET.findall(self.code)]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks_of(text: str) -> list[Block]:
    found = list(_FENCE.finditer(text))
    blocks = []
    for fence, after in zip_longest(found, found[1:]):
        output = None
        if after and after[3].strip() == "text" and not text[fence.end() : after.start()].strip():
            output = dedent(after[4])
        line = text.count("\n", 0, fence.start()) + 1
        section = text.count("\n## ", 0, fence.start())
        blocks.append(Block(fence[3].strip(), dedent(fence[4]), line, section, output))
    return blocks


def prose_of(text: str) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", text)


def commands_of(text: str) -> list[str]:
    """Return the command lines of a page, those within sentences included."""
    shell = [block.code for block in blocks_of(text) if block.language in SHELL]
    lines = [line.removeprefix("$ ") for code in shell for line in joined_lines(code)]
    inline = _INLINE.findall(prose_of(text))
    return [line.strip() for line in (*lines, *inline) if line.strip()]


def joined_lines(code: str) -> list[str]:
    """Return the lines of a shell block, those that end in a backslash joined."""
    return code.replace("\\\n", " ").splitlines()
