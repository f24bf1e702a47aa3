"""The summary on the page of results is that of the files it stands on."""

from pages import DOCS, read

from coarse2fine.experiments.content import read_all
from coarse2fine.experiments.lines import lines_of
from coarse2fine.experiments.summary import table
from coarse2fine.experiments.tables import markdown


def test_the_page_has_the_tables_that_the_summary_makes_of_the_stored_results() -> None:
    made = table(lines_of(read_all(DOCS / "results")), markdown)
    rows = [line for line in made.splitlines() if line.startswith("| ")]
    shown = set(read(DOCS / "results.md").splitlines())
    assert len(rows) > 20
    assert [row for row in rows if row not in shown] == []
