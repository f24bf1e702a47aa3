"""Whatever the page of other libraries says of one, it says where and when that was read."""

import re

import pytest
from pages import DOCS, read

TEXT, _, SOURCES = read(DOCS / "comparison.md").partition("\n## Sources\n")
OURS = "coarse2fine"
SOURCE = re.compile(
    r"^\| ([^|]+) \| \[([\w.-]+/[\w.-]+)@([0-9a-f]{7})\]"
    r"\(https://github\.com/([\w.-]+/[\w.-]+)/tree/([0-9a-f]{40})\) \| (\d{4}-\d\d-\d\d) \| `",
    re.MULTILINE,
)
NAMED = {name for name, *_ in SOURCE.findall(SOURCES)}


def rows(section: str) -> dict[str, list[str]]:
    """Return the cells of each library in the table of a section, by its name."""
    table = TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line.strip("| ").split(" | ") for line in table.splitlines() if line[:1] == "|"]
    return {name: cells for names, *cells in lines[2:] for name in names.split(", ")}


@pytest.mark.parametrize(
    "section",
    ["Training from coarse to fine", "What else the hierarchy is used for", "In use"],
)
def test_what_a_table_tells_of_has_its_source(section: str) -> None:
    assert len(NAMED) == SOURCES.count("https:") == 8
    told = set(rows(section))
    assert OURS in told
    assert told - {OURS} <= NAMED


def test_a_source_is_a_commit_and_its_date() -> None:
    newest = {name: cells[4] for name, cells in rows("What they are").items()}
    assert newest.keys() == {OURS, *NAMED}
    for name, repository, short, linked, commit, date in SOURCE.findall(SOURCES):
        assert (repository, short) == (linked, commit[:7])
        assert newest[name] == date
