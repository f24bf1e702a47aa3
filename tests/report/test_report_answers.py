"""The section of a report that tells how fine the model can answer."""

import json
import re
from html import unescape

import numpy as np
import pytest
from plain import plain_content

from coarse2fine import Hierarchy, fit
from coarse2fine.report.content import report_content
from coarse2fine.report.page import render

TREE = Hierarchy.from_levels([[0, 0, 1, 1]], ("cat", "dog", "car", "bus"))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The folder of a comparison on table.csv, which lies beside it."""
    folder, rng = tmp_path_factory.mktemp("answers"), np.random.default_rng(0)
    places = {"cat": (0, 0), "dog": (0, 2), "car": (9, 0), "bus": (9, 2)}
    lines = [
        f"{x:.3f},{y:.3f},{name}"
        for _ in range(150)
        for name, place in places.items()
        for x, y in [rng.normal(place, 1)]
    ]
    data = folder / "table.csv"
    data.write_text("\n".join(["width,height,label", *lines, ""]))
    given = {"epochs": 4, "curriculum_epochs": 1, "batch_size": 16, "hierarchy": TREE}
    fit(str(data), out=folder / "run", **given)
    return folder / "run"


def section(content):
    page = render(content)
    return page[page.index('<section id="answers"') : page.index('<section id="repeat"')]


def test_the_sentence_and_the_table_are_of_the_same_answers(run):
    found = plain_content([run])["answers"]
    json.dumps(found, allow_nan=False)
    assert found["columns"] == ["one of 4 classes", "one of 2 clusters", "no class or cluster"]
    assert [row["promised"] for row in found["rows"]][-3:] == [90, 95, 97]
    row = next(row for row in found["rows"] if row["promised"] == 95)
    assert sum(row["shares"]) == pytest.approx(100, abs=0.01)
    assert row["depth"] == pytest.approx((2 * row["shares"][0] + row["shares"][1]) / 100, abs=1e-4)
    told = re.search(
        r"So that 95 % .* right, (\d+) % of them are one of 4 classes,? (?:and )?(\d+)"
        r" % one of 2 clusters.* On the test samples (\S+) % ",
        found["sentence"],
    )
    classes, clusters, right = map(float, told.groups())
    assert (classes, clusters) == tuple(map(round, row["shares"][:2]))
    assert right == round(row["right"], 1)


def test_text_and_table_are_in_the_page_without_scripts(run):
    content = report_content([run])
    text = section(content)
    found = content.answers
    assert found.sentence in unescape(text)
    assert text.count("<tr>") == 1 + len(found.rows)
    row = found.rows[-1]
    cells = [f"{row.right:.1f}", *(f"{share:.1f}" for share in row.shares), f"{row.depth:.2f}"]
    assert re.findall(r"<td>([^<]*)</td>", text)[-len(cells) :] == cells
    # 0.98^114 = 0.0999, and of 142 samples 114 are tested; a fifth of the 480 validate.
    few = "from 98 % on, a promise needs 142 validation samples or more; there are 96."
    assert f"The validation samples are few: {few}" in text
    assert '<figure class="panel js-only"><div id="answers-plot"' in text


def test_it_can_be_left_out(run):
    assert plain_content([run], answers=False)["answers"] is None
    assert 'id="answers"' not in render(report_content([run], answers=False))
    assert plain_content([run / "seed-0" / "baseline"])["answers"] is None  # has no hierarchy


def test_why_it_cannot_be_told_is_said_in_the_section(run):
    file = run.parent / "table.csv"
    before = file.read_text()
    file.write_text(before.replace("cat", "bus", 1))
    try:
        content = report_content([run])
    finally:
        file.write_text(before)
    sentence = content.answers.sentence
    assert sentence.startswith(f"This cannot be told of {run}/seed-0/continuous: the data ")
    assert sentence.endswith("table.csv are not those that the run was trained with.")
    text = section(content)
    assert sentence in unescape(text)
    assert "answers-plot" not in text
    assert "<table" not in text


def test_models_that_are_not_ours_are_not_imported_for_it(made):
    hostile = "<b>mine</b>:net"
    content = report_content([made("continuous", model=hostile)])
    assert "code from outside this package" in content.answers.sentence
    assert hostile not in section(content)
