"""The editor's page around the tree: steps back, validity, conflicts, hostile names, access."""

import json
import random
import time

import pytest
from serving import served

from coarse2fine import Hierarchy

from .editing import (
    CLASSES,
    LOW,
    TAXONOMY,
    TOP,
    drag,
    message,
    opened,
    press,
    row,
    save,
    status,
    wait_until,
)

HOSTILE = [
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(2)>",
    "<b>bold</b> &amp; {{7*7}} ${7*7}",
    "javascript:alert(3)",
    "قطة",
    "כלב\u202e gninnur",
    "🦊👩‍👩‍👧",
    "x" * 200,
    " ",
    "__proto__",
    "line\nbreak\ttab",
    "",
]


def test_all_steps_are_undone_and_done_again(editor, path):
    drag(editor, "fox", onto="pets")
    row(editor, "rail").click()
    press(editor, "Enter")
    editor.keyboard.type("tracks")
    press(editor, "Enter")
    row(editor, "cat").click()
    press(editor, "Control+d")
    changed = editor.locator("#tree").inner_text()
    press(editor, "Control+z", "Control+z")
    assert message(editor) == "Undone: Renamed “rail” to “tracks”."
    editor.click("[data-command=undo]")
    assert editor.text_content("#unsaved") == ""
    editor.click("[data-command=undo]", force=True)
    assert message(editor) == "There is nothing to undo."
    row(editor, "rail").focus()
    press(editor, "Control+Shift+Z", "Control+y", "Control+Shift+Z")
    assert editor.locator("#tree").inner_text() == changed
    save(editor)
    assert Hierarchy.load(path).clusters(1) == ((1, 2), (0,), (3, 4), (5, 6), (7, 8))


def test_nothing_is_selected_out_of_sight_after_a_step_back(editor):
    row(editor, "cat").click()
    row(editor, "fox").click(modifiers=["Control"])
    drag(editor, "fox", onto="road")
    for name in ("pets", "wild"):
        row(editor, name).locator(".twisty").click()
    press(editor, "Control+z")
    chosen = editor.locator(".row[aria-selected=true] .name").all_text_contents()
    assert chosen == ["cat", "fox"]


def test_what_is_invalid_is_not_saved_and_says_why(editor, path):
    before = path.read_bytes()
    row(editor, "cat").click()
    row(editor, "dog").click(modifiers=["Shift"])
    drag(editor, "dog", onto="wild")
    problem = "“pets” on level 1 is empty. Move something into it, or remove it."
    assert status(editor) == "Not valid: 1 problem"
    assert editor.get_attribute("#save", "aria-disabled") == "true"
    editor.click("#save", force=True)
    assert message(editor) == f"It cannot be saved yet: {problem}"
    press(editor, "Control+s")
    assert path.read_bytes() == before
    row(editor, "tram").click()
    editor.get_by_role("button", name="on level 1 is empty").click()
    assert editor.evaluate("document.activeElement.title") == "pets"
    drag(editor, "cat", onto="pets")
    assert status(editor) == "Valid: 2 → 4 → 9"
    assert editor.get_attribute("#save", "aria-disabled") == "false"


def test_one_cluster_of_everything_is_a_problem(editor):
    row(editor, "animals").click()
    row(editor, "vehicles").click(modifiers=["Control"])
    press(editor, "Control+j")
    assert "One cluster of level 0 holds all classes" in editor.text_content("#problems")
    editor.get_by_role("button", name="Remove level 0").last.click()
    assert status(editor) == "Valid: 4 → 9"


@pytest.mark.filterwarnings("ignore:The hierarchy of 9 classes has no level:UserWarning")
def test_the_page_finds_the_same_trees_valid_as_the_library(editor):
    """After random steps, which often leave empty clusters, equal levels or one cluster."""
    trees = editor.evaluate(RANDOM_STEPS, {"levels": [TOP, LOW], "count": 300})
    verdicts = set()
    for content, problems in trees:
        content = {**Hierarchy.from_levels([TOP, LOW], CLASSES).to_dict(), **content}
        try:
            Hierarchy.from_dict(content)
            is_valid = True
        except ValueError:
            is_valid = False
        assert is_valid == (not problems), (content["levels"], problems)
        verdicts.add(is_valid)
    assert verdicts == {True, False}


RANDOM_STEPS = """async ({levels, count}) => {
  const trees = await import(new URL("tree.js", location.href));
  const { treeOf, contentOf } = await import(new URL("content.js", location.href));
  const { problemsOf } = await import(new URL("checks.js", location.href));
  let seed = 1;
  const below = (most) => (seed = (seed * 48271) % 2147483647) % most;
  const cluster_names = levels.map((level) => Array(Math.max(...level) + 1).fill(""));
  const original = { num_classes: 9, levels, class_names: null, cluster_names };
  const found = [];
  for (let run = 0; run < count; run++) {
    let tree = treeOf(original);
    for (let step = below(6); step >= 0; step--) {
      const ids = [...trees.placesOf(tree).keys()].filter((id) => id !== tree.root.id);
      const pick = () => ids[below(ids.length)];
      const [one, other] = [pick(), pick()];
      const kind = below(6);
      const isMergeable = one !== other && trees.commonDepth(tree, [one, other]) !== null
        && !trees.isClass(trees.placesOf(tree).get(one).node);
      if (kind < 3) tree = trees.moved(tree, trees.topmost(tree, [one, other]),
        trees.targetOf(tree, trees.topmost(tree, [one, other]), pick()));
      else if (kind === 3 && isMergeable) tree = trees.merged(tree, [one, other]);
      else if (kind === 4 && tree.depth) tree = trees.withoutLevel(tree, below(tree.depth));
      else if (kind === 5) tree = trees.withLevel(tree, below(tree.depth + 1));
    }
    const now = contentOf(tree, original);
    const content = { levels: now.levels, cluster_names: now.cluster_names };
    found.push([content, problemsOf(tree, (node) => node.name)]);
  }
  return found;
}"""


# --------------------------------------------------------------------- somebody else, failures


@pytest.fixture
def plain(browser, serve, path):
    """A page like the others, but one in which answers that refuse may turn up as errors."""
    context = browser.new_context()
    yield opened(context.new_page(), serve(path))
    context.close()


def test_a_file_changed_meanwhile_is_shown_or_overwritten_as_one_likes(plain, path):
    theirs = Hierarchy.from_levels([TOP], CLASSES)
    theirs.save(path)
    drag(plain, "fox", onto="pets")
    plain.click("#save")
    plain.get_by_role("button", name="Show what it holds now").click()
    wait_until(plain, "#status", "Valid: 2 → 9")
    assert plain.text_content("#unsaved") == ""
    press(plain, "Control+z")  # one's own changes
    save(plain)
    assert len(Hierarchy.load(path).levels) == 3
    assert Hierarchy.load(path.with_name("animals.json.~1~")) == theirs
    theirs.save(path)
    drag(plain, "bear", onto="pets")
    plain.click("#save")
    plain.get_by_role("button", name="Overwrite it").click()
    wait_until(plain, "#unsaved", "")
    assert Hierarchy.load(path).clusters(1)[0] == (0, 1, 2, 3)
    assert Hierarchy.load(path.with_name("animals.json.~2~")) == theirs


def test_what_is_changed_while_it_is_saved_is_not_closed_away(editor, path):
    held = []
    editor.route("**/hierarchy", lambda route: held.append(route))
    drag(editor, "fox", onto="pets")
    editor.click("#save-and-close")
    drag(editor, "bear", onto="pets")
    held[0].continue_()
    wait_until(editor, "#message", "Saved. The old file is kept as animals.json.~1~.")
    assert editor.text_content("#unsaved") == "● not saved"
    assert Hierarchy.load(path).clusters(1)[0] == (0, 1, 2)


def test_a_save_that_fails_is_said_and_the_work_can_be_taken_along(plain, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    drag(plain, "fox", onto="pets")
    with monkeypatch.context() as patch:
        patch.setattr("os.replace", fail)
        plain.click("#save")
        plain.wait_for_selector("#alarm:not([hidden])")
    remedy = "free some, then do the same again"
    expected = f"It could not be saved: No space left on device; {remedy}. The file is as it was."
    assert plain.text_content("#alarm-text") == expected
    with plain.expect_download() as download:
        plain.click("#rescue")
    taken = json.loads(download.value.path().read_text())
    assert Hierarchy.from_dict(taken).clusters(1)[0] == (0, 1, 2)
    save(plain)
    assert plain.locator("#alarm").is_hidden()


def test_closing_asks_about_changes_and_ends_the_server(editor, path):
    drag(editor, "fox", onto="pets")
    editor.click("#close")
    editor.get_by_role("button", name="Cancel").click()
    assert editor.text_content("#unsaved") == "● not saved"
    editor.click("#close")
    editor.locator("dialog").get_by_role("button", name="Save and close").click()
    editor.wait_for_selector("text=The editor has ended.")
    assert Hierarchy.load(path).clusters(1)[0] == (0, 1, 2)


# ------------------------------------------------------------------------- names, access, size


def test_hostile_names_show_as_text_and_run_nothing(page, serve, tmp_path):
    path = tmp_path / "<img src=x onerror=alert(4)>.json"
    groups = [index % 2 for index in range(len(HOSTILE))]
    Hierarchy.from_levels([groups], HOSTILE, [HOSTILE[:2]]).save(path)
    opened(page, serve(path))
    shown = page.locator("#tree .name").all_text_contents()
    for name in HOSTILE:
        assert not name.strip() or name in shown
    assert page.text_content("#file") == path.name
    row(page, "قطة").click()
    press(page, "Control+x", "Home", "Enter")
    row(page, "javascript:alert(3)").click()
    press(page, "Control+d", "F2")
    page.keyboard.type(HOSTILE[1])
    press(page, "Enter")
    page.fill("#search", "<img")
    assert page.locator("img, b, #tree script").count() == 0
    save(page)
    assert Hierarchy.load(path).class_names == tuple(HOSTILE)
    assert HOSTILE[1] in Hierarchy.load(path).cluster_names[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_there_are_no_serious_accessibility_faults(new_page, axe, serve, path, scheme, width):
    page = new_page(color_scheme=scheme, viewport={"width": width, "height": 800})
    opened(page, serve(path))
    axe(page)
    row(page, "cat").click()
    press(page, "Shift+ArrowDown", "Control+x", "ArrowDown", "ArrowDown")
    axe(page)
    press(page, "Enter")  # leaves an empty cluster
    page.locator("summary").click()
    axe(page)
    row(page, "wild").click()
    press(page, "F2")
    axe(page)
    press(page, "Escape")
    page.click("#close")
    axe(page)


def test_the_tree_is_one_to_assistive_technology(editor):
    assert editor.locator("[role=tree] [role=treeitem][tabindex='0']").count() == 1
    pets = row(editor, "pets")
    facts = ["level", "posinset", "setsize", "expanded", "selected"]
    assert [pets.get_attribute(f"aria-{fact}") for fact in facts] == [
        "3",
        "1",
        "2",
        "true",
        "false",
    ]
    pets.click()
    press(editor, "ArrowLeft")
    assert pets.get_attribute("aria-expanded") == "false"
    press(editor, "ArrowRight", "ArrowRight", "End")
    assert editor.evaluate("document.activeElement.title") == "tram"
    press(editor, "Home", "v")
    assert editor.evaluate("document.activeElement.title") == "vehicles"


def test_names_from_right_to_left_turn_nothing_around_them(page, serve, tmp_path):
    path = tmp_path / "names.json"
    names = ["חתול", "כלב", "car", "van"]
    Hierarchy.from_levels([[0, 0, 1, 1]], names, [["חיות", "רכב"]]).save(path)
    opened(page, serve(path))
    start, end = (row(page, name).bounding_box() for name in ("חתול", "רכב"))
    page.mouse.move(start["x"] + 150, start["y"] + 10)
    page.mouse.down()
    page.mouse.move(end["x"] + 150, end["y"] + 10, steps=5)
    left = page.evaluate(LEFT_OF, ["חתול", "→", "רכב"])
    assert left == sorted(left)
    page.mouse.up()


# Where parts of what is dragged begin on the screen.
LEFT_OF = """(parts) => {
  const text = document.getElementById("dragged").firstChild;
  return parts.map((part) => {
    const range = document.createRange();
    range.setStart(text, text.data.indexOf(part));
    range.setEnd(text, text.data.indexOf(part) + part.length);
    return range.getBoundingClientRect().left;
  });
}"""


def test_search_goes_from_one_find_to_the_next(editor):
    row(editor, "animals").click()
    press(editor, "ArrowLeft", "Control+f")
    editor.keyboard.type("r")
    finds = []
    for _ in range(6):
        finds.append(editor.locator(".row[aria-selected=true] .name").text_content())
        press(editor, "Enter")
    assert finds == ["bear", "road", "car", "rail", "train", "tram"]
    assert editor.text_content("#found") == "1 of 6"
    editor.fill("#search", "zebra")
    assert editor.text_content("#found") == "nothing found"


@pytest.mark.parametrize(("count", "seconds"), [(1000, 15.0), (10_000, 30.0)])
def test_many_classes_open_and_answer_quickly(page, serve, tmp_path, count, seconds):
    shuffled = random.Random(0).sample(range(count), count)
    low = [place % (count // 5) for place in shuffled]
    names = [f"class {index}" for index in range(count)]
    path = tmp_path / "many.json"
    Hierarchy.from_levels([[number % 10 for number in low], low], names).save(path)
    address = serve(path)
    begun = time.monotonic()
    opened(page, address)
    assert time.monotonic() - begun < seconds
    page.fill("#search", f"class {count - 1}")
    page.click("[data-command=split]")
    assert page.locator("#tree .row").count() < 100
    begun = time.monotonic()
    press(page, "Control+z", "Control+y", "End", "Home")
    assert time.monotonic() - begun < 10
    save(page)
    assert Hierarchy.load(path).num_clusters == (10, count // 5 + 1, count)


# ------------------------------------------------------------------------- opening and using


def names_shown(page):
    return page.locator("#tree .row .name").all_text_contents()


def test_all_clusters_are_opened_and_closed(editor):
    row(editor, "cat").click()
    editor.click("[data-command=collapse]")
    assert names_shown(editor) == ["All classes", "animals", "vehicles"]
    assert message(editor) == "All clusters are closed."
    assert editor.locator(".row[aria-selected=true]").count() == 0
    editor.click("[data-command=expand]")
    assert len(names_shown(editor)) == 1 + 2 + 4 + 9
    assert editor.text_content("#unsaved") == ""


def test_what_is_new_is_saved_as_it_is_and_ends_with_the_command_that_uses_it(page, axe, tmp_path):
    path, tree = tmp_path / "new.json", Hierarchy.from_taxonomy(TAXONOMY)
    with served(path, start=tree, command="c2f train zoo/ --hierarchy new.json") as (server, _):
        opened(page, server.address)
        assert page.text_content("#unsaved") == "● not saved"
        assert not page.locator("#use").is_visible()
        save(page)
        assert page.text_content("#command") == "c2f train zoo/ --hierarchy new.json"
        assert page.locator("#use").is_visible()
        axe(page)
        page.click("#close")
        page.wait_for_selector(".ended")
        assert page.locator("#command").is_visible()
    assert Hierarchy.load(path) == tree
