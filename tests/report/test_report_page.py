"""The HTML page, without a browser."""

import json
from html import unescape

import pytest

from coarse2fine import write_report
from coarse2fine.report.content import report_content
from coarse2fine.report.page import render

HOSTILE = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>{{ 7 * 7 }}"


def test_the_same_runs_make_the_same_page(made, tmp_path):
    made("baseline"), made("continuous")
    pages = [tmp_path / name for name in ("one.html", "two.html")]
    for page in pages:
        write_report(tmp_path / "run", page)
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_hostile_settings_and_commands_are_text(made):
    page = render(report_content([made("continuous", data=HOSTILE, command=HOSTILE)]))
    assert HOSTILE not in page
    assert unescape(page).count(HOSTILE) == 2
    assert page.count("<script") == 3  # content, plotly, and what draws with them


def test_runs_that_do_not_tell_their_versions_can_be_shown(made):
    path = made("baseline") / "config.json"
    content = json.loads(path.read_text())
    del content["versions"], content["command"]
    path.write_text(json.dumps(content))
    content = report_content([path.parent])
    assert content.repeat.versions == content.repeat.commands == []
    assert "Made by:" not in render(content)


def test_without_a_hierarchy_none_is_spoken_of(made):
    page = render(report_content([made("baseline")]))
    text = page[page.index("<main>") : page.index("</main>")]
    assert "order of the hierarchy" not in text
    assert "height 1" not in text
    assert "height 1" in render(report_content([made("continuous")]))


def test_both_tables_show_after_how_many_epochs_the_baseline_stopped_by_itself(made, tmp_path):
    made("baseline", epochs=112, own_epochs=63), made("continuous", epochs=112)
    page = render(report_content([tmp_path / "run"]))
    assert page.count("<td>112 (stopped by itself after 63)</td>") == 2
    assert page.count("<td>112</td>") == 2


def test_both_tables_show_the_epochs_that_were_only_for_the_hierarchy(made, tmp_path):
    made("baseline", epochs=45), made("continuous", epochs=45, hierarchy_epochs=12)
    page = render(report_content([tmp_path / "run"]))
    assert page.count("<td>45 + 12 for the hierarchy</td>") == 2
    assert page.count("<td>45</td>") == 2


def test_a_folder_is_no_file_to_write_to(made, tmp_path):
    with pytest.raises(ValueError, match=r"is a folder; give the name of a file"):
        write_report(made("baseline"), tmp_path)
