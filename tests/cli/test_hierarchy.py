"""`c2f hierarchy`."""

import json

import pytest

from coarse2fine import Hierarchy
from coarse2fine.cli.hierarchy import parent_child_csv

NAMES = ["cat", "dog", "car", "van"]
LEVELS = [[0, 0, 1, 1]]
DISTANCES = [[0, 1, 5, 6], [1, 0, 7, 8], [5, 7, 0, 2], [6, 8, 2, 0]]


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "saved.json"
    Hierarchy.from_levels(LEVELS, NAMES).save(path)
    return path


def test_it_shows_the_tree(c2f, saved):
    tree = "4 classes: 2 → 4\n├── cat, dog\n└── car, van\n"
    assert c2f("hierarchy", saved) == (0, tree, "")


def test_it_shows_that_of_a_comparison(c2f, comparison):
    _, out, _ = c2f("hierarchy", comparison)
    assert "cyan circle" in out
    assert out == c2f("hierarchy", comparison / "seed-0" / "continuous")[1]


def test_a_long_tree_is_cut(c2f, comparison):
    whole, cut = c2f("hierarchy", comparison)[1], c2f("hierarchy", comparison, "--max-lines", 1)[1]
    assert cut.splitlines()[:2] == whole.splitlines()[:2]
    assert cut.splitlines()[2].startswith("… cut after 1 line")


def test_json_is_what_save_writes(c2f, saved):
    assert json.loads(c2f("hierarchy", saved, "--json")[1]) == json.loads(saved.read_text())


def test_it_saves_what_it_made(c2f, write):
    path = write("distances.csv", DISTANCES)
    code, _, err = c2f("hierarchy", path, "--classes", "cat,dog,car,van", "--save", "made.json")
    assert (code, err) == (0, "saved as made.json\n")
    assert Hierarchy.load("made.json") == Hierarchy.from_levels(LEVELS, NAMES)


def test_class_names_come_from_a_file_too(c2f, write):
    write("names.txt", "cat\ndog\n\ncar\nvan\n")
    _, out, _ = c2f("hierarchy", write("distances.csv", DISTANCES), "--classes", "names.txt")
    assert "├── cat, dog\n" in out


def test_of_several_parents_the_first_is_taken_where_asked_for(c2f, write):
    rows = [("parent", "child"), ("pet", "cat"), ("pet", "dog"), ("wild", "cat"), ("wild", "fox")]
    path = write("t.csv", rows)
    code, _, err = c2f("hierarchy", path)
    assert code != 0
    assert "'cat' has two parents, 'pet' and, in row 4, 'wild'" in err
    assert c2f("hierarchy", path, "--parents", "first")[1].splitlines()[1] == "├── pet: cat, dog"
    code, _, err = c2f("hierarchy", path, "--parents", "last")
    assert code != 0
    assert "Got 'last'" in err


def test_a_hierarchy_with_names_is_put_in_the_order_of_the_classes(c2f, saved):
    _, out, _ = c2f("hierarchy", saved, "--classes", "van,dog,cat,car", "--json")
    content = json.loads(out)
    assert content["class_names"] == ["van", "dog", "cat", "car"]
    assert content["levels"] == [[1, 0, 0, 1]]


def test_levels_are_thinned_out(c2f, tmp_path):
    deep = Hierarchy.from_levels([[0, 0, 0, 0, 1], [0, 0, 0, 1, 2], [0, 0, 1, 2, 3]])
    deep.save(tmp_path / "deep.json")
    _, out, _ = c2f("hierarchy", "deep.json", "--max-levels", "2", "--json")
    assert json.loads(out)["levels"] == [[0, 0, 0, 0, 1]]


@pytest.mark.parametrize(
    "hierarchy",
    [
        Hierarchy.from_levels([[0, 0, 0, 1], [0, 0, 1, 2]], NAMES),
        Hierarchy.from_levels([[1, 1, 0, 0]]),
        Hierarchy.from_levels(LEVELS, NAMES, [["animal", "vehicle"]]),
        Hierarchy.from_levels(LEVELS, NAMES, [["cat", "vehicle"]]),  # a cluster called as a class
    ],
    ids=["named classes", "no names", "named clusters", "one name twice"],
)
def test_csv_is_read_back_as_the_same_levels(c2f, tmp_path, hierarchy):
    hierarchy.save(tmp_path / "one.json")
    assert c2f("hierarchy", "one.json", "--csv", "two.csv")[2] == "saved as two.csv\n"
    c2f("hierarchy", "two.csv", "--save", "three.json")
    back = Hierarchy.load("three.json")
    for level in range(len(hierarchy.levels)):
        assert set(back.clusters(level)) == set(hierarchy.clusters(level))
    assert back.class_names == (hierarchy.class_names or ("0", "1", "2", "3"))


def test_csv_keeps_the_names_of_clusters():
    named = Hierarchy.from_levels(LEVELS, NAMES, [["animal", "vehicle"]])
    assert parent_child_csv(named).splitlines()[1:4] == [",animal", ",vehicle", "animal,cat"]


def test_it_converts_between_json_and_safetensors(c2f, saved, tmp_path):
    small, again = tmp_path / "small.safetensors", tmp_path / "again.json"
    tree = c2f("hierarchy", saved)[1]
    assert c2f("hierarchy", saved, "--save", small) == (0, tree, f"saved as {small}\n")
    assert c2f("hierarchy", small, "--save", again) == (0, tree, f"saved as {again}\n")
    assert again.read_bytes() == saved.read_bytes()
    assert c2f("figure", "hierarchy", small, "--out", tmp_path / "tree.svg")[0] == 0


def test_the_editor_says_how_to_make_json_of_safetensors(c2f, tmp_path):
    small = tmp_path / "small.safetensors"
    Hierarchy.from_levels(LEVELS, NAMES).save(small)
    code, _, err = c2f("hierarchy", "edit", small, "--no-browser")
    assert code == 2
    assert f"make one by c2f hierarchy {small} --save hierarchy.json." in err
