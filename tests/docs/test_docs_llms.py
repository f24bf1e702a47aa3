"""llms.txt leads a language model to every page, in the form that https://llmstxt.org asks for."""

import re
from collections import Counter

from pages import DOCS, ROOT, read

TEXT = read(DOCS / "llms.txt")
LINE = re.compile(r"^- \[([^\]]+)\]\(([\w-]+\.md)\): (.+)$")


def test_it_has_a_title_a_summary_and_lists_of_links() -> None:
    start, *sections = re.split(r"^## .+\n", TEXT, flags=re.MULTILINE)
    assert re.match(r"# coarse2fine\n\n> .+\n\n", start)
    for section in sections:
        lines = section.strip().splitlines()
        assert lines
        assert all(map(LINE.match, lines)), section


def test_it_names_every_page_once_by_the_name_that_the_navigation_has() -> None:
    listed = re.findall(r"^ +- (.+): ([\w-]+\.md)$", read(ROOT / "mkdocs.yml"), re.MULTILINE)
    named = [found.groups() for found in map(LINE.match, TEXT.splitlines()) if found]
    pages = Counter(page for _, page, _ in named)
    assert pages == Counter(page for _, page in listed)
    titles = {"index.md": "Start in one minute"}  # the navigation has the word alone
    assert {page: name for name, page, _ in named} == {
        page: titles.get(page, name) for name, page in listed
    }
