"""The report in a real browser."""

from __future__ import annotations

import numpy as np
import pytest

from coarse2fine import Hierarchy, confusion_matrix, fit, write_report

from .reporting import COLOUR_SCHEMES, NAMES, comparison, look_up, open_report


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report of twelve animals, and what was predicted."""
    path = tmp_path_factory.mktemp("animals")
    targets, found = comparison(path, NAMES)
    content = write_report(path, path / "report.html")
    return path / "report.html", content, targets, found


@pytest.fixture
def report(page, made):
    return open_report(page, made[0])


def rate(method, truth, predicted, targets, found):
    """The share of a class that was predicted as another, over all seeds, by plain counting."""
    chosen = [p for (name, _), p in found.items() if name == method]
    hits = sum(int(((targets == truth) & (p == predicted)).sum()) for p in chosen)
    return 100 * hits / (int((targets == truth).sum()) * len(chosen))


# ---------------------------------------------------------------------------------- opening


def test_it_opens_without_errors_and_asks_for_nothing_else(new_page, made):
    page = new_page()
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_report(page, made[0])
    assert [url for url in asked if not url.startswith(("data:", "blob:"))] == [made[0].as_uri()]


def test_the_top_says_whether_it_helped(report, made):
    content = made[1]
    assert report.text_content(".choice") == content["choice"]
    assert report.inner_text(".verdict") == content["sentence"]
    rows = report.locator("#summary tbody tr")
    assert rows.count() == 2
    gain = content["table"][1]["gain"]
    assert f"{gain[0]:+.2f} ± {gain[1]:.2f}" in rows.nth(1).inner_text()


def test_without_scripts_the_results_can_still_be_read(new_page, made):
    page = new_page(java_script_enabled=False)
    page.goto(made[0].as_uri())
    assert page.inner_text(".verdict") == made[1]["sentence"]
    assert "need JavaScript" in page.inner_text("noscript")
    assert not page.locator("#tree").is_visible()


def test_all_figures_are_drawn(report):
    for name in ("icicle", "curves-plot", "levels-plot", "gains-plot", "confusion-plot"):
        assert report.locator(f"#{name} .main-svg").first.is_visible(), name


# ------------------------------------------------------------------------------- hierarchy


def test_a_click_in_the_tree_shows_the_cluster(report, made):
    _, content, targets, found = made
    items = report.locator("#tree > [role=treeitem]")
    assert items.count() == 2
    items.first.locator(".row").first.click()
    assert items.first.get_attribute("aria-expanded") == "true"
    details = report.locator("#details")
    assert "6 classes, 360 test samples over 2 seeds" in details.inner_text()
    inside = [
        100 * np.mean(found[method, seed][targets < 6] < 6)
        for method in ("baseline", "continuous")
        for seed in (0, 1)
    ]
    before, after = np.mean(inside[:2]), np.mean(inside[2:])
    assert f"{before:.1f}\t{after:.1f}" in details.inner_text()
    assert content["clusters"][0]["before"][0] == pytest.approx(before, abs=1e-3)


def test_a_click_in_the_icicle_shows_the_cluster(report):
    report.locator("#icicle .slice").nth(2).click()
    report.wait_for_function("document.querySelector('#tree [aria-selected=true]')")
    chosen = report.locator("#tree [aria-selected=true] > .row bdi").first.inner_text()
    assert report.locator("#details h3").first.inner_text() == chosen


def test_a_class_is_chosen_by_keyboard_and_read_from_there(report):
    report.locator("#tree > [role=treeitem] .row").first.click()
    report.locator("#details .chips button").first.press("Enter")
    assert report.inner_text("#details h3 >> nth=0") == "animal 0"
    assert report.evaluate("document.activeElement.id") == "details"
    assert "animal 0" in report.inner_text("#chosen")
    report.locator("#class-table button", has_text="animal 7").press("Enter")
    assert report.inner_text("#details h3 >> nth=0") == "animal 7"
    assert report.evaluate("document.activeElement.id") == "details"
    assert report.locator("#details h3").first.is_visible()


def test_the_tree_is_used_by_keyboard(report):
    report.locator("#tree > [role=treeitem]").first.focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown", "Enter"):
        report.keyboard.press(key)
    chosen = report.locator("#tree [aria-selected=true]")
    assert chosen.get_attribute("aria-label") == "animal 0"
    assert report.inner_text("#details h3 >> nth=0") == "animal 0"
    assert report.evaluate("document.activeElement.getAttribute('aria-label')") == "animal 0"
    report.keyboard.press("ArrowLeft")
    report.keyboard.press("ArrowLeft")
    assert report.locator("#tree [aria-expanded=true]").count() == 1
    report.keyboard.press("End")
    report.keyboard.type("animal 0")
    assert "animal 0" in report.evaluate("document.activeElement.getAttribute('aria-label')")


# ------------------------------------------------------------------------------- confusion


@pytest.mark.parametrize(("truth", "predicted"), [(2, 3), (3, 2), (5, 5), (0, 11)])
def test_the_matrix_has_the_right_value_for_a_pair(report, made, truth, predicted):
    targets, found = made[2:]
    before, after = (
        rate(method, truth, predicted, targets, found) for method in ("baseline", "continuous")
    )
    text = look_up(report, NAMES[truth], NAMES[predicted])
    assert f"{before:.1f} % before, {after:.1f} % after" in text
    worse = before - after if truth == predicted else after - before
    for which, value in (("before", before), ("after", after), ("difference", worse)):
        report.click(f"[data-which={which}]")
        cell = f"document.querySelector('#confusion-plot').data[0].z[{truth}][{predicted}]"
        assert report.evaluate(cell) == pytest.approx(value, abs=1e-4)


def test_the_whole_matrix_is_that_of_the_predictions(report, made):
    targets, found = made[2:]
    report.click("[data-which=after]")
    shown = report.evaluate(
        "Array.from(document.querySelector('#confusion-plot').data[0].z, line => Array.from(line))"
    )
    counts = sum(confusion_matrix(found["continuous", seed], targets, 12) for seed in (0, 1))
    np.testing.assert_allclose(shown, 100 * counts / 60, atol=1e-4)


def test_hovering_tells_the_pair(report, made):
    report.locator("#confusion-plot").scroll_into_view_if_needed()
    box = report.locator("#confusion-plot .nsewdrag").first.bounding_box()
    report.mouse.move(box["x"] + box["width"] * 2.5 / 12, box["y"] + box["height"] * 3.5 / 12)
    report.wait_for_selector("#hint:not([hidden])")
    value = rate("continuous", 3, 2, *made[2:])
    text = report.inner_text("#hint")
    assert "animal 3" in text
    assert f"{value:.1f} % after" in text


def test_an_unknown_class_is_said_to_be_unknown(report):
    assert look_up(report, "unicorn", NAMES[0]) == "There is no unicorn."
    assert look_up(report, NAMES[0], "") == "Choose both."


def test_the_matrix_is_zoomed_and_moved_by_keyboard(report):
    seen = "document.querySelector('#confusion-plot').layout.xaxis.range"
    span, low = f"({seen}[1] - {seen}[0])", f"{seen}[0]"
    report.focus("#confusion-plot")
    report.keyboard.press("+")
    report.wait_for_function(f"{span} === 6")
    before = report.evaluate(low)
    report.keyboard.press("ArrowRight")
    report.wait_for_function(f"{low} > {before}")
    report.keyboard.press("0")
    report.wait_for_function(f"{span} === 12")


# ---------------------------------------------------------------------------------- classes


def test_classes_are_sorted_and_filtered(report, made):
    classes = made[1]["classes"]
    gains = np.subtract(classes["after"], classes["before"])
    first = report.locator("#class-table tbody tr").first
    assert first.locator("bdi").inner_text() == classes["names"][int(gains.argmax())]
    report.click("#class-table [data-column=gain]")
    assert first.locator("bdi").inner_text() == classes["names"][int(gains.argmin())]
    report.fill("#class-filter", "ANIMAL 11")
    assert report.locator("#class-table tbody tr").count() == 1
    first.locator("button").click()
    assert report.inner_text("#details h3 >> nth=0") == "animal 11"


# -------------------------------------------------------------------------- every reader


@pytest.mark.parametrize("colour_scheme", COLOUR_SCHEMES)
def test_there_are_no_serious_accessibility_faults(new_page, made, axe, colour_scheme):
    page = open_report(new_page(color_scheme=colour_scheme), made[0])
    page.locator("#tree > [role=treeitem] .row").first.click()
    axe(page)


def test_colours_follow_the_system_and_the_button(new_page, made):
    page = open_report(new_page(color_scheme="dark"), made[0])
    background = "getComputedStyle(document.body).backgroundColor"
    letters = "document.querySelector('#curves-plot').layout.font.color"
    assert page.evaluate(background) == "rgb(18, 22, 27)"
    assert page.evaluate(letters) == "rgb(230, 233, 237)"
    page.click("#theme")
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    assert page.evaluate(letters) == "rgb(27, 31, 36)"


@pytest.mark.parametrize("width", [360, 800, 1400])
def test_nothing_is_wider_than_the_page(new_page, made, width):
    page = open_report(new_page(viewport={"width": width, "height": 800}), made[0])
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("width", "named"), [(320, 0), (1280, 12)])
def test_axes_have_as_many_names_as_there_is_room_for(new_page, made, width, named):
    page = open_report(new_page(viewport={"width": width, "height": 800}), made[0])
    assert page.locator("#confusion-plot .ytick text:visible").count() == named
    page.click("text=Zoom in")
    page.wait_for_function("document.querySelectorAll('#confusion-plot .ytick text').length === 6")


def test_figures_are_printed_in_the_colours_of_paper(new_page, made):
    page = open_report(new_page(color_scheme="dark"), made[0])
    colour = "document.querySelector('#curves-plot').layout.font.color"
    page.evaluate(f"addEventListener('beforeprint', () => (window.printed = {colour}))")
    page.pdf()
    assert page.evaluate("window.printed") == "rgb(27, 31, 36)"
    page.wait_for_function(f"{colour} === 'rgb(230, 233, 237)'")


def test_on_paper_there_are_no_controls(report):
    report.emulate_media(media="print", color_scheme="dark")
    assert not report.locator("nav").is_visible()
    assert not report.locator(".controls").first.is_visible()
    assert report.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(255, 255, 255)"
    )


# ---------------------------------------------------------------------------- what has room


@pytest.mark.parametrize("width", [390, 1280])
def test_every_block_of_the_icicle_that_is_high_enough_is_named(new_page, tmp_path, width):
    names = [f"a rather long name of the animal {number}" for number in range(40)]
    comparison(tmp_path, names, levels=[np.arange(40) // 20, np.arange(40) // 4])
    write_report(tmp_path, tmp_path / "report.html")
    viewport = {"width": width, "height": 900}
    page = open_report(new_page(viewport=viewport), tmp_path / "report.html")
    blocks = page.evaluate(BLOCKS)
    high = [block for block in blocks if block["height"] >= 20]
    assert len(high) == 1 + 2 + 10  # the classes are too low
    for block in high:
        assert block["isShown"]
        assert len(block["text"]) > 8
        assert block["textWidth"] <= block["width"]
    page.locator("#tree > [role=treeitem] .row").first.click()
    page.wait_for_function("document.querySelector('#icicle').data[0].level === '0:0'")
    assert all(block["textWidth"] <= block["width"] for block in page.evaluate(BLOCKS))


BLOCKS = """Array.from(document.querySelectorAll("#icicle .slice"), (slice) => {
  const [path, text] = [slice.querySelector("path"), slice.querySelector("text")];
  const [block, letters] = [path.getBoundingClientRect(), text.getBoundingClientRect()];
  return {
    width: block.width,
    height: block.height,
    text: text.textContent,
    textWidth: letters.width,
    isShown: letters.width > 0 && getComputedStyle(text).display !== "none",
  };
})"""


def test_wide_tables_have_a_shadow_where_they_go_on_and_are_reached_by_keyboard(new_page, made):
    page = open_report(new_page(viewport={"width": 390, "height": 800}), made[0])
    table = page.locator("#summary .scroll").first
    assert table.evaluate("it => it.scrollWidth > it.clientWidth")
    assert table.get_attribute("tabindex") == "0"
    assert table.get_attribute("aria-label")
    right = "it => getComputedStyle(it).backgroundAttachment"
    assert table.evaluate(right) == "local, local, scroll, scroll"
    edge = table.screenshot()
    table.evaluate("it => it.scrollTo(it.scrollWidth, 0)")
    assert table.screenshot() != edge


def test_several_comparisons_are_listed_with_a_link_to_each(page, axe, tmp_path):
    for name in ("one", "two"):
        comparison(tmp_path / name, NAMES, seeds=(0, 1, 2))
    content = write_report([tmp_path / "one", tmp_path / "two"], tmp_path / "report.html")
    open_report(page, tmp_path / "report.html")
    rows = page.locator("#comparisons tbody tr")
    assert rows.count() == 2
    assert content["comparisons"][1]["verdict"] in rows.nth(1).inner_text()
    axe(page)
    rows.nth(1).locator("a").click()
    assert page.locator(":target").inner_text() == "two"


@pytest.mark.parametrize(("seeds", "colour"), [((0, 1), "unclear"), (tuple(range(6)), "better")])
def test_a_gain_is_green_only_where_it_helped(page, tmp_path, seeds, colour):
    comparison(tmp_path, NAMES, seeds=seeds)
    content = write_report(tmp_path, tmp_path / "report.html")
    assert (content["verdict"] == "helped") == (colour == "better")
    open_report(page, tmp_path / "report.html")
    assert page.locator("#summary tbody span").get_attribute("class") == colour


# ------------------------------------------------------------------------- how fine it answers


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    """The report of a run on a table, and what it shows."""
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
    tree = Hierarchy.from_levels([[0, 0, 1, 1]], tuple(places))
    given = {"epochs": 4, "curriculum_epochs": 1, "batch_size": 16, "hierarchy": tree}
    fit(str(data), out=folder / "run", **given)
    path = folder / "report.html"
    return path, write_report(folder / "run", path)


@pytest.mark.parametrize("colour_scheme", COLOUR_SCHEMES)
def test_answers_are_drawn_in_a_section_of_their_own(new_page, answering, axe, colour_scheme):
    path, content = answering
    page = open_report(new_page(color_scheme=colour_scheme), path)
    page.click("nav a[href='#answers']")
    assert page.inner_text("#answers p >> nth=0") == content["answers"]["sentence"]
    areas = page.evaluate(
        "document.querySelector('#answers-plot').data.slice(0, 3).map(area => Array.from(area.y))"
    )
    np.testing.assert_allclose(np.sum(areas, axis=0), 100)
    assert page.locator("#answers-plot .main-svg").first.is_visible()
    axe(page)


def test_the_table_of_answers_is_there_without_scripts(browser, answering):
    path, content = answering
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("#answers tbody tr").count() == len(content["answers"]["rows"])
    assert not page.locator("#answers-plot").is_visible()
    context.close()


def test_why_there_are_no_answers_is_said(report):
    assert "This cannot be told of" in report.inner_text("#answers")
    assert report.locator("#answers-plot").count() == 0
