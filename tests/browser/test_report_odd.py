"""Odd reports in a real browser: hostile names, missing parts, very many classes."""

from __future__ import annotations

import numpy as np
import pytest

from coarse2fine import write_report

from .reporting import COLOUR_SCHEMES, NAMES, comparison, look_up, open_report

HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "קוף ירוק",
    "🦊 fox & <b>hound</b>",
    "${alert(3)} {{ 7*7 }}",
    "%{x} </script><script>alert(4)</script>",
    "  ",
    "a very long name " * 12,
)


@pytest.mark.parametrize("colour_scheme", COLOUR_SCHEMES)
def test_hostile_names_are_text_and_run_nothing(new_page, tmp_path, axe, colour_scheme):
    clusters = [HOSTILE[:2], (*HOSTILE[2:5], HOSTILE[0])]
    comparison(tmp_path, HOSTILE, cluster_names=clusters)
    write_report(tmp_path, tmp_path / "report.html")
    page = open_report(new_page(color_scheme=colour_scheme), tmp_path / "report.html")
    for item in page.locator("#tree > [role=treeitem] > .row").all():
        item.click()
    names = page.locator("#class-table tbody bdi").all_text_contents()
    assert sorted(names) == sorted(name if name.strip() else "“  ”" for name in HOSTILE)
    for button in page.locator("#class-table tbody button").all():
        button.click()
        assert page.locator("#details h3 bdi").first.text_content() == button.text_content()
    assert HOSTILE[0] in look_up(page, HOSTILE[0], HOSTILE[1])
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 4  # content, plotly packed and running, our own
    axe(page)


def test_one_run_by_itself_can_be_shown(page, tmp_path):
    comparison(tmp_path, NAMES, seeds=(0,))
    write_report(tmp_path / "seed-0" / "continuous", tmp_path / "one.html")
    open_report(page, tmp_path / "one.html")
    assert page.locator("#summary tbody tr").count() == 1
    assert page.locator("[data-which]").count() == 0
    assert page.locator("#gains-plot").count() == 0
    assert "% before" not in look_up(page, NAMES[0], NAMES[1])


def test_a_baseline_has_no_hierarchy_to_show(page, tmp_path):
    comparison(tmp_path, NAMES, seeds=(0,))
    write_report(tmp_path / "seed-0" / "baseline", tmp_path / "plain.html")
    open_report(page, tmp_path / "plain.html")
    assert page.locator("#hierarchy").count() == 0
    assert page.locator("#class-table tbody tr").count() == 12
    assert page.locator("#class-table tbody button").count() == 0
    assert page.locator("#confusion-plot .main-svg").first.is_visible()


def test_a_thousand_classes_stay_small_and_can_be_explored(page, tmp_path):
    names = tuple(f"class {number}" for number in range(1000))
    levels = [np.arange(1000) // 200, np.arange(1000) // 10]
    comparison(tmp_path, names, samples=20, levels=levels)
    path = tmp_path / "report.html"
    write_report(tmp_path, path)
    assert path.stat().st_size < 15_000_000
    open_report(page, path)
    assert "% before" in look_up(page, names[999], names[998])
    page.wait_for_function(
        "document.querySelector('#confusion-plot').layout.xaxis.ticktext?.includes('class 998')"
    )
    page.locator("#tree > [role=treeitem] > .row").first.click()
    assert "200 classes" in page.inner_text("#details")
    page.locator("#details .chips button", has_text="and 140 more").press("Enter")
    assert page.evaluate("document.activeElement.textContent") == "class 60"
    assert page.locator("#details .chips button").count() == 200


def test_more_classes_than_a_matrix_can_show_are_shown_by_cluster(page, tmp_path):
    names = tuple(f"class {number}" for number in range(2000))
    comparison(tmp_path, names, samples=2, levels=[np.arange(2000) // 100, np.arange(2000) // 10])
    write_report(tmp_path, tmp_path / "report.html")
    open_report(page, tmp_path / "report.html")
    assert page.evaluate("document.querySelector('#confusion-plot').data[0].z.length") == 200
    assert "true clusters" in page.inner_text("#confusion .lead")
    page.locator("#class-table tbody button").first.click()
    assert "right class" in page.inner_text("#details")
    assert "No mistakes" not in page.inner_text("#details")


def test_what_no_matrix_can_show_is_said(page, tmp_path):
    names = tuple(f"class {number}" for number in range(2000))
    comparison(tmp_path, names, samples=1, seeds=(0,))
    write_report(tmp_path / "seed-0" / "baseline", tmp_path / "report.html")
    open_report(page, tmp_path / "report.html")
    assert "too many for a matrix" in page.inner_text("#confusion")
    assert page.locator("#confusion-plot").count() == 0


def test_a_class_below_what_the_icicle_draws_is_shown_by_its_cluster(page, tmp_path):
    names = tuple(f"class {number}" for number in range(10_004))
    levels = [np.arange(10_004) // 1000, np.arange(10_004) // 2]
    comparison(tmp_path, names, samples=1, seeds=(0,), levels=levels)
    write_report(tmp_path, tmp_path / "report.html")
    open_report(page, tmp_path / "report.html")
    page.fill("#class-filter", "class 1234")
    page.locator("#class-table tbody button").first.click()
    page.wait_for_function("document.querySelector('#icicle').data[0].level === '0:1'")


def test_a_class_without_test_samples_has_no_rates(page, tmp_path):
    comparison(tmp_path, NAMES, samples=[30] * 11 + [0])
    write_report(tmp_path, tmp_path / "report.html")
    open_report(page, tmp_path / "report.html")
    assert look_up(page, NAMES[11], NAMES[0]) == "animal 11 has no test samples."
    assert "% before" in look_up(page, NAMES[0], NAMES[11])
    page.locator("#class-table button", has_text="animal 11").click()
    assert "right class\t–\t–\t–" in page.inner_text("#details")
    assert "No mistakes" not in page.inner_text("#details")
