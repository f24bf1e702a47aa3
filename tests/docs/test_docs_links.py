"""Every link within README.md and docs/ leads somewhere, whatever builds the site."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from pages import DOCS, LINK, NAMES, PAGES, ROOT, prose_of, read

HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
DOCUMENTED = re.compile(r"^::: (\S+)$", re.MULTILINE)
CODE = re.compile(r"(`+)[^`]+\1")


def links_of(page: Path) -> list[tuple[bool, str, str]]:
    """Return whether each link of a page is an image, its text and its target."""
    prose = CODE.sub("code", prose_of(read(page)))
    outer = LINK.findall(prose)
    inner = [link for _, text, _ in outer for link in LINK.findall(text)]  # pictures that are links
    return [(mark == "!", text, target) for mark, text, target in (*outer, *inner)]


def site_slug(heading: str) -> str:
    """Return the anchor that Python-Markdown makes of a heading, as the site has it."""
    plain = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())


def github_slug(heading: str) -> str:
    """Return the anchor that GitHub makes of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors_of(page: Path) -> set[str]:
    """Return the anchors of a page that hold both on the site and on GitHub, and the API's."""
    text = read(page)
    headings = [LINK.sub(r"\2", heading) for heading in HEADING.findall(prose_of(text))]
    both = [Counter(map(slug, headings)) for slug in (site_slug, github_slug)]
    shared = {name for name in both[0] if both[0][name] == both[1][name] == 1}
    return shared | set(DOCUMENTED.findall(text))


def broken(page: Path, target: str) -> str | None:
    """Return what is wrong with a link, if anything is."""
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    if not file.exists():
        return "there is no such file"
    if page.parent == DOCS and DOCS not in file.parents:
        return "it leaves docs/, so the site does not have it"
    if page.parent == DOCS and file.suffix == ".py":
        return "the site has no .py files"
    if anchor and anchor not in anchors_of(file):
        return "there is no such heading, or not one alone"
    return None


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    inside = [target for _, _, target in links_of(page) if not re.match(r"[a-z]+:", target)]
    found = {target: broken(page, target) for target in inside}
    assert {target: what for target, what in found.items() if what} == {}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_pictures_are_described(page: Path) -> None:
    assert all(text.strip() for is_image, text, _ in links_of(page) if is_image)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = re.findall(r": ([\w/-]+\.md)$", read(ROOT / "mkdocs.yml"), re.MULTILINE)
    assert Counter(listed) == Counter(page.name for page in DOCS.glob("*.md"))


def test_every_page_begins_with_its_only_title() -> None:
    for page in PAGES:
        titles = re.findall(r"^# .+$", prose_of(read(page)), re.MULTILINE)
        assert len(titles) == 1, page.name
        assert read(page).startswith(titles[0]), page.name


def test_broken_links_are_found() -> None:
    page = DOCS / "index.md"
    assert broken(page, "runs.md#your-own-model") is None
    assert broken(page, "training.md#no-such-heading")
    assert broken(page, "nothing.md")
    assert broken(page, "figures/nothing.svg")
    assert broken(page, "../README.md")
    assert broken(page, "figures/draw.py")
    assert broken(page, "#no-such-heading")
