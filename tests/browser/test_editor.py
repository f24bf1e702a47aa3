"""The hierarchy editor in a real browser: what a person does there, and what is saved."""

import pytest

from coarse2fine import Hierarchy

from .editing import CLASSES, TOP, drag, message, opened, press, row, save, status, told, wait_until

# ----------------------------------------------------------------------------------- moving


def test_dragging_a_class_and_saving_writes_just_that(editor, path):
    before = path.read_bytes()
    assert status(editor) == "Valid: 2 → 4 → 9"
    drag(editor, "fox", onto="pets")
    assert message(editor) == "Moved “fox” into “pets”."
    assert editor.text_content("#unsaved") == "● not saved"
    assert path.read_bytes() == before
    save(editor)
    low = [0, 0, 0, 1, 1, 2, 2, 3, 3]
    expected = Hierarchy.from_levels([TOP, low], CLASSES, Hierarchy.load(path).cluster_names)
    assert Hierarchy.load(path) == expected
    assert expected.cluster_names == (("animals", "vehicles"), ("pets", "wild", "road", "rail"))
    assert path.with_name("animals.json.~1~").read_bytes() == before
    assert message(editor) == "Saved. The old file is kept as animals.json.~1~."


def test_dragging_a_cluster_takes_all_that_is_in_it(editor, path):
    drag(editor, "wild", onto="vehicles")
    save(editor)
    saved = Hierarchy.load(path)
    assert saved.clusters(0) == ((0, 1), (2, 3, 4, 5, 6, 7, 8))
    assert saved.cluster_names[1] == ("pets", "road", "rail", "wild")


def test_several_classes_are_dragged_together(editor, path):
    row(editor, "cat").click()
    row(editor, "fox").click(modifiers=["Control"])
    row(editor, "wolf").click(modifiers=["Control"])
    drag(editor, "wolf", onto="road")
    save(editor)
    assert Hierarchy.load(path).clusters(1) == ((1,), (3,), (0, 2, 4, 5, 6), (7, 8))


@pytest.mark.parametrize("onto", ["cat", "pets", "dog"])
def test_a_drop_where_it_is_already_does_nothing(editor, onto):
    drag(editor, "cat", onto=onto)
    assert message(editor) == "Nothing was moved."
    assert editor.text_content("#unsaved") == ""


def test_a_drag_is_given_up_by_escape(editor):
    editor.mouse.move(*centre(row(editor, "cat")))
    editor.mouse.down()
    editor.mouse.move(*centre(row(editor, "wolf")), steps=4)
    assert told(editor, "#dragged") == "“cat” → “wild”"
    assert editor.locator(".row.target .name").text_content() == "wild"
    press(editor, "Escape")
    editor.mouse.up()
    assert editor.locator("#dragged").is_hidden()
    assert editor.text_content("#unsaved") == ""


def test_a_button_let_go_outside_the_tree_drags_nothing_later(editor):
    box = editor.locator("#tree").bounding_box()
    editor.mouse.move(box["x"] + 3, row(editor, "cat").bounding_box()["y"] + 10)
    editor.mouse.down()
    editor.mouse.move(box["x"] - 8, box["y"] - 20)
    editor.mouse.up()
    editor.mouse.move(*centre(row(editor, "wolf")), steps=4)
    assert editor.locator("#dragged").is_hidden()


@pytest.mark.parametrize("key", ["Enter", "Control+z"])
def test_a_key_that_ends_a_move_ends_the_drag(editor, key):
    drag(editor, "fox", onto="pets")
    editor.mouse.move(*centre(row(editor, "cat")))
    editor.mouse.down()
    editor.mouse.move(*centre(row(editor, "wolf")), steps=4)
    press(editor, key)
    editor.mouse.move(*centre(row(editor, "van")), steps=4)
    assert editor.locator("#dragged").is_hidden()
    editor.mouse.up()
    said = "Moved “cat” into “wild”." if key == "Enter" else "Undone: Moved “fox” into “pets”."
    assert message(editor) == said


def centre(locator):
    box = locator.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_class_dropped_on_a_coarse_cluster_stands_by_itself_there(editor, path):
    drag(editor, "cat", onto="vehicles")
    assert message(editor) == "Moved “cat” into “vehicles”, as a new cluster."
    drag(editor, "dog", onto="All classes")
    assert status(editor) == "Not valid: 1 problem"  # pets is empty now
    editor.get_by_role("button", name="Remove it", exact=True).click()
    save(editor)
    saved = Hierarchy.load(path)
    assert saved.clusters(0) == ((2, 3, 4), (0, 5, 6, 7, 8), (1,))
    assert saved.clusters(1) == ((2, 3, 4), (5, 6), (7, 8), (0,), (1,))
    assert saved.cluster_names[0] == ("animals", "vehicles", "")


def test_the_keyboard_moves_too(editor, path):
    row(editor, "cat").focus()
    press(editor, "b", "Shift+ArrowDown")  # bear and wolf
    press(editor, "Control+x", "End", "ArrowUp")
    assert message(editor) == "Into “rail”?"
    press(editor, "Enter")
    assert message(editor) == "Moved 2 classes into “rail”."
    press(editor, "Control+s")
    wait_until(editor, "#unsaved", "")
    assert Hierarchy.load(path).clusters(1) == ((0, 1), (2,), (5, 6), (3, 4, 7, 8))


def test_a_move_by_keyboard_is_given_up_by_escape(editor):
    row(editor, "cat").click()
    press(editor, "Control+x", "End", "Escape", "Control+v")
    assert message(editor) == "Nothing was moved."
    assert editor.text_content("#unsaved") == ""


def test_fingers_select_several_press_move_and_tap_the_place(new_page, serve, path):
    phone = new_page(viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    opened(phone, serve(path))
    phone.get_by_role("button", name="Select several").tap()
    row(phone, "cat").tap()
    row(phone, "fox").tap()
    phone.get_by_role("button", name="Move", exact=True).tap()
    row(phone, "road").tap()
    assert message(phone) == "Moved 2 classes into “road”."
    assert phone.evaluate("document.documentElement.scrollWidth") <= 360


# --------------------------------------------------------------- renaming, merging, splitting


def test_renaming(editor, path):
    row(editor, "pets").click()
    press(editor, "F2")
    editor.keyboard.type("at home")
    press(editor, "Enter")
    assert message(editor) == "Renamed “pets” to “at home”."
    row(editor, "wild").locator(".name").dblclick()
    editor.keyboard.type("no")
    press(editor, "Escape")
    row(editor, "rail").click()
    press(editor, "Enter")
    editor.keyboard.type("tracks")
    press(editor, "Control+s")  # while the name is still typed
    wait_until(editor, "#unsaved", "")
    assert Hierarchy.load(path).cluster_names[1] == ("at home", "wild", "road", "tracks")


def test_a_hierarchy_without_names_gets_them_with_the_first(page, serve, tmp_path):
    path = tmp_path / "bare.json"
    Hierarchy.from_levels([[0, 0, 1, 1]]).save(path)
    opened(page, serve(path))
    drag(page, "class 0", onto="class 2, class 3")
    save(page)
    assert Hierarchy.load(path).cluster_names is None
    page.locator(".row:not(.class)").nth(1).click()
    press(page, "Enter")
    page.keyboard.type("one")
    press(page, "Enter")
    save(page)
    assert Hierarchy.load(path).cluster_names == (("one", ""),)


def test_classes_keep_their_names(editor):
    row(editor, "cat").click()
    press(editor, "Enter")
    assert message(editor) == "Classes keep their names; only clusters can be renamed."
    assert editor.locator("#tree input").count() == 0


def test_merging(editor, path):
    row(editor, "pets").click()
    row(editor, "rail").click(modifiers=["Control"])
    press(editor, "Control+j")
    assert message(editor) == "Merged 2 clusters."
    save(editor)
    saved = Hierarchy.load(path)
    assert saved.clusters(1) == ((0, 1, 7, 8), (2, 3, 4), (5, 6))
    assert saved.clusters(0) == ((0, 1, 2, 3, 4, 7, 8), (5, 6))
    assert saved.cluster_names[1] == ("pets", "wild", "road")


def test_only_clusters_of_one_level_merge(editor):
    row(editor, "pets").click()
    row(editor, "vehicles").click(modifiers=["Control"])
    editor.click("[data-command=merge]", force=True)  # it says why not
    assert message(editor) == "Only clusters of the same level can be merged."
    row(editor, "cat").click()
    row(editor, "dog").click(modifiers=["Shift"])
    editor.click("[data-command=merge]", force=True)  # it says why not
    assert message(editor) == "Classes cannot be merged, only clusters."


def test_splitting(editor, path):
    row(editor, "fox").click()
    row(editor, "bear").click(modifiers=["Shift"])
    editor.click("[data-command=split]")
    save(editor)
    assert Hierarchy.load(path).clusters(1) == ((0, 1), (4,), (2, 3), (5, 6), (7, 8))


def test_a_new_cluster_is_named_filled_and_removed(editor, path):
    row(editor, "wild").click()
    press(editor, "Insert")
    editor.keyboard.type("woods")
    press(editor, "Enter")
    drag(editor, "bear", onto="woods")
    row(editor, "rail").click()
    press(editor, "Insert", "Escape", "Delete")
    assert message(editor) == "Removed 1 empty cluster."
    save(editor)
    saved = Hierarchy.load(path)
    assert saved.clusters(1) == ((0, 1), (2, 4), (3,), (5, 6), (7, 8))
    assert saved.cluster_names[1][2] == "woods"


def test_a_cluster_that_holds_something_is_not_removed(editor):
    row(editor, "wild").click()
    press(editor, "Delete")
    assert message(editor) == "“wild” still holds 3 classes; move or merge them."


def test_levels_are_added_and_removed(editor, path):
    editor.get_by_role("button", name="Remove level 0").click()
    assert status(editor) == "Valid: 4 → 9"
    editor.get_by_role("button", name="Add above the classes").click()
    assert status(editor) == "Not valid: 1 problem"
    row(editor, "fox").click()
    press(editor, "Control+d")
    assert status(editor) == "Valid: 4 → 5 → 9"
    save(editor)
    assert [len(Hierarchy.load(path).clusters(level)) for level in range(3)] == [4, 5, 9]


def test_a_move_can_be_ended_at_what_a_search_finds(editor, path):
    row(editor, "cat").click()
    press(editor, "Control+x", "Control+f")
    editor.keyboard.type("rail")
    press(editor, "Escape", "Control+v")
    assert message(editor) == "Moved “cat” into “rail”."
    save(editor)
    assert Hierarchy.load(path).clusters(1)[3] == (0, 7, 8)
