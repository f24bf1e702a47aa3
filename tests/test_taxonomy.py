"""Hierarchies from trees of classes that people made."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from taxonomies import CLASSES, NESTED, PAIRS, as_lists, assert_is_the_example

from coarse2fine import Hierarchy

# ------------------------------------------------------------------------------ nested dicts


def test_a_nested_dict_gives_a_level_for_each_depth() -> None:
    assert_is_the_example(Hierarchy.from_taxonomy(NESTED))


@pytest.mark.parametrize("leaf", [None, {}, [], ()])
def test_keys_without_children_are_classes(leaf: Any) -> None:
    taxonomy = {"animal": {"cat": leaf, "dog": leaf}, "car": leaf}
    hierarchy = Hierarchy.from_taxonomy(taxonomy)
    assert hierarchy.class_names == ("cat", "dog", "car")
    assert as_lists(hierarchy) == [[0, 0, 1], [0, 1, 2]]
    assert hierarchy.cluster_names == (("animal", "car"),)


def test_a_string_below_a_key_is_its_only_class() -> None:
    assert Hierarchy.from_taxonomy({"animal": ["cat", "dog"], "vehicle": "car"}) == (
        Hierarchy.from_taxonomy({"animal": ("cat", "dog"), "vehicle": ["car"]})
    )


def test_lists_may_hold_both_classes_and_groups() -> None:
    hierarchy = Hierarchy.from_taxonomy({"animal": ["cat", {"dogs": ["pug", "lab"]}], "car": None})
    assert hierarchy.class_names == ("cat", "pug", "lab", "car")
    assert as_lists(hierarchy) == [[0, 0, 0, 1], [0, 1, 1, 2], [0, 1, 2, 3]]


def test_a_class_above_the_cut_stays_a_cluster_of_its_own() -> None:
    hierarchy = Hierarchy.from_taxonomy(
        {"animal": {"dogs": {"terrier": ["fox terrier", "jack russell"]}, "cat": None}, "car": None}
    )
    assert hierarchy.class_names == ("fox terrier", "jack russell", "cat", "car")
    assert as_lists(hierarchy) == [[0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
    assert hierarchy.cluster_names == (("animal", "car"), ("dogs", "cat", "car"))


def test_a_single_root_is_dropped() -> None:
    assert_is_the_example(Hierarchy.from_taxonomy({"entity": {"thing": NESTED}}))


def test_groups_in_different_places_may_share_a_name() -> None:
    taxonomy = {"animal": {"other": ["a", "b"], "x": "c"}, "plant": {"other": ["d", "e"]}}
    hierarchy = Hierarchy.from_taxonomy(taxonomy)
    assert hierarchy.levels[1].tolist() == [0, 0, 1, 2, 2]
    assert hierarchy.cluster_names is not None
    assert hierarchy.cluster_names[1] == ("other", "x", "other")


def test_a_flat_taxonomy_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_taxonomy({"cat": None, "dog": None})
    assert hierarchy.class_names == ("cat", "dog")


@pytest.mark.parametrize(
    ("taxonomy", "message"),
    [
        ({"a": ["x", "y"], "b": ["x"]}, "class 'x' stands in two places: a > x and b > x"),
        ({"a": ["x", "x"], "b": ["y"]}, "class 'x' stands in two places: a > x and a > x"),
        ({"a": {"b": ["x"]}, "x": None}, "class 'x' stands in two places: a > b > x and x"),
        ({"a": ["x", 1.5]}, r"below a a group or class must be a string .*Got 1\.5"),
        ({"a": {"b": ["x", None]}}, "below a > b a group or class must be .*Got None"),
        ({"a": {"b": ["x", True]}}, "below a > b .*Got True"),
        ({"a": {"x", "y"}}, "below a .*Got {"),
        ({"a": {1.5: ["x"]}}, r"below a .*Got 1\.5"),
        ({None: ["x", "y"]}, "below the root .*Got None"),
        ({}, "at least two classes. Got 0"),
        ({"a": ["x"]}, "at least two classes. Got 1"),
    ],
)
def test_a_wrong_nested_dict_is_refused_with_the_place(taxonomy: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_taxonomy(taxonomy)


@pytest.mark.parametrize("wrap", [lambda inner: {"a": inner}, lambda inner: [inner]])
def test_a_taxonomy_nested_without_end_is_refused(wrap: Any) -> None:
    inner: Any = ["x", "y"]
    for _ in range(5000):
        inner = wrap(inner)
    with pytest.raises(ValueError, match="more than 100 levels deep"):
        Hierarchy.from_taxonomy({"root": inner})


@pytest.mark.parametrize("taxonomy", [5, None, ["cat", "dog"], {"cat", "dog"}, np.eye(3)])
def test_what_is_no_taxonomy_is_refused(taxonomy: Any) -> None:
    with pytest.raises(TypeError, match=r"nested dict, a table .*coarse_label, fine_label.* path"):
        Hierarchy.from_taxonomy(taxonomy)


# ------------------------------------------------------------------- the order of the classes


def test_class_names_put_the_classes_in_the_order_of_the_outputs() -> None:
    order = ["train", "cat", "bus", "wolf", "dog", "car", "fox", "tram"]
    hierarchy = Hierarchy.from_taxonomy(NESTED, order)
    assert hierarchy.class_names == tuple(order)
    assert hierarchy.levels[0].tolist() == [0, 1, 0, 1, 1, 0, 1, 0]
    assert hierarchy.levels[1].tolist() == [0, 1, 2, 3, 1, 2, 3, 0]
    assert hierarchy.cluster_names == (
        ("vehicle", "animal"),
        ("rail", "pet", "road", "wild"),
    )


@given(st.permutations(CLASSES))
def test_the_groups_do_not_depend_on_the_order(order: list[str]) -> None:
    hierarchy = Hierarchy.from_taxonomy(NESTED, order)
    for level in range(2):
        clusters = {frozenset(order[c] for c in cluster) for cluster in hierarchy.clusters(level)}
        plain = Hierarchy.from_taxonomy(NESTED).clusters(level)
        assert clusters == {frozenset(CLASSES[c] for c in cluster) for cluster in plain}


@pytest.mark.parametrize(
    ("class_names", "error", "message"),
    [
        ([*CLASSES, "plane"], ValueError, "it lacks 'plane'"),
        (CLASSES[:-1], ValueError, "it has 'train' besides"),
        ([*CLASSES[:-1], "trains"], ValueError, r"it lacks 'trains'. Did you mean 'train'\?"),
        ([*CLASSES, "cat"], ValueError, "class_names must differ .*Got 'cat' twice"),
        ("cat", TypeError, "class_names must be a sequence"),
        ([*CLASSES[:-1], 7], TypeError, r"class_names\[7\] must be a string\. Got 7"),
        (5, TypeError, "class_names must be a sequence"),
    ],
)
def test_class_names_must_be_the_classes_of_the_taxonomy(
    class_names: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Hierarchy.from_taxonomy(NESTED, class_names)


NUMBERS = list(range(12))


def number_taxonomies() -> dict[str, Any]:
    """Twelve integer labels by their parity, named out of order."""
    labels = NUMBERS[::-1]
    parity = ["odd" if label % 2 else "even" for label in labels]
    return {
        "nested": {"odd": labels[::2], "even": labels[1::2]},
        "nested strings": {"odd": [str(i) for i in labels[::2]], "even": labels[1::2]},
        "list columns": {"coarse_label": parity, "fine_label": labels},
        "array columns": {"coarse_label": parity, "fine_label": np.array(labels)},
        "tensor columns": {"coarse_label": parity, "fine_label": torch.tensor(labels)},
        "frame": pd.DataFrame({"coarse_label": parity, "fine_label": labels}),
        "columns.csv": [("coarse_label", "fine_label"), *zip(parity, labels, strict=True)],
        "pairs.csv": [("parent", "child"), *zip(parity, labels, strict=True)],
    }


@pytest.mark.parametrize("form", number_taxonomies())
def test_integer_labels_keep_their_order(form: str, write: Any) -> None:
    taxonomy = number_taxonomies()[form]
    taxonomy = write(form, taxonomy) if form.endswith(".csv") else taxonomy
    hierarchy = Hierarchy.from_taxonomy(taxonomy)
    assert hierarchy.class_names == tuple(map(str, NUMBERS))
    assert hierarchy.levels[0].tolist() == [i % 2 for i in NUMBERS]
    assert hierarchy.cluster_names == (("even", "odd"),)


@pytest.mark.parametrize("labels", [[0, 1, 3], ["1", "2", "3"], [5, 6, 7]])
def test_integer_labels_with_gaps_are_refused(labels: Any) -> None:
    table = {"coarse_label": ["a", "a", "b"], "fine_label": labels}
    with pytest.raises(ValueError, match=r"0\.\.2 without gaps, but [02] is not .*class_names="):
        Hierarchy.from_taxonomy(table)
    names = [str(label) for label in reversed(labels)]
    assert Hierarchy.from_taxonomy(table, names).class_names == tuple(names)


@pytest.mark.parametrize("labels", [["n02", "3", "1"], ["007", "1", "0"], ["-1", "0", "1"]])
def test_names_that_only_look_like_numbers_stay_as_they_came(labels: list[str]) -> None:
    hierarchy = Hierarchy.from_taxonomy({"a": labels[:2], "b": labels[2:]})
    assert hierarchy.class_names == tuple(labels)


# ------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize("as_path", [str, Path])
def test_a_json_file_is_read_like_a_dict(write: Any, as_path: Any) -> None:
    assert_is_the_example(Hierarchy.from_taxonomy(as_path(write("t.json", json.dumps(NESTED)))))


def test_a_json_file_may_hold_columns(write: Any) -> None:
    columns = {"coarse_label": ["a", "a", "b"], "fine_label": ["x", "y", "z"]}
    hierarchy = Hierarchy.from_taxonomy(write("t.json", json.dumps(columns)))
    assert as_lists(hierarchy) == [[0, 0, 1], [0, 1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not readable as JSON"),
        ('{"a": ["x"', "not readable as JSON"),
        (b"\xff\xfe", "not readable as JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 500 + "null" + "}" * 500, "more than 100 levels deep"),
        ('["x", "y"]', "must be a nested dict.* Got list"),
        ('{"a": ["x", 1.5]}', r"below a .*Got 1\.5"),
        ('{"a": ["x", "y"], "b": ["x"]}', "class 'x' stands in two places"),
        ('{"a": ["x"]}', "at least two classes"),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_a_wrong_json_file_is_named(write: Any, text: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"t\.json: .*{message}"):
        Hierarchy.from_taxonomy(write("t.json", text))


def test_a_class_that_a_file_lacks_is_named_with_the_file(write: Any) -> None:
    with pytest.raises(ValueError, match=r"t\.json: .*lacks 'plane'"):
        Hierarchy.from_taxonomy(write("t.json", json.dumps(NESTED)), ["plane"])


@pytest.mark.parametrize("name", ["missing.json", "missing.csv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name):
        Hierarchy.from_taxonomy(tmp_path / name)


# ------------------------------------------------------------------------- parents and children


@pytest.mark.parametrize(
    "roots",
    [
        [],
        [("", "animal"), ("", "vehicle")],
        [("thing", "animal"), ("thing", "vehicle")],
        [("", "thing"), ("thing", "animal"), ("thing", "vehicle")],
    ],
)
def test_pairs_of_parent_and_child_give_the_tree_below_the_root(write: Any, roots: Any) -> None:
    path = write("t.csv", [("parent", "child"), *roots, *PAIRS])
    assert_is_the_example(Hierarchy.from_taxonomy(path))


def test_columns_may_stand_in_any_order_among_others(write: Any) -> None:
    rows = [("child", "note", "parent"), *((child, "", parent) for parent, child in PAIRS)]
    assert_is_the_example(Hierarchy.from_taxonomy(write("T.CSV", rows)))


def test_spaces_blank_lines_marks_and_repeated_rows_do_no_harm(write: Any) -> None:
    lines = [" parent , child ", "", *(f" {a} , {b} " for a, b in PAIRS), "pet,cat", " , ", ""]
    path = write("t.csv", "\ufeff" + "\r\n".join(lines))
    assert_is_the_example(Hierarchy.from_taxonomy(path))


def test_quoted_cells_may_hold_commas(write: Any) -> None:
    path = write("t.csv", 'parent,child\na,"x, y"\na,z\nb,w\n')
    assert Hierarchy.from_taxonomy(path).class_names == ("x, y", "z", "w")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*PAIRS, ("wild", "cat")], "'cat' has two parents, 'pet' and, in row 14, 'wild'"),
        ([*PAIRS, ("cat", "animal")], "is its own ancestor"),
        ([*PAIRS, ("loop", "loop")], "'loop' is its own ancestor"),
        ([("a", "b"), ("b", "a")], "is its own ancestor"),
        ([*PAIRS, ("a", "b"), ("b", "c"), ("c", "a")], "is its own ancestor"),
        ([*PAIRS, ("pet", "")], "row 14 has no child"),
        ([*PAIRS, ("pet",)], "row 14 must have 2 cells, like the first. Got 1"),
        ([*PAIRS, ("pet", "x", "y")], "row 14 must have 2 cells, like the first. Got 3"),
        ([(i, i + 1) for i in range(200)], "more than 100 levels deep"),
        ([("a", "b")], "at least two classes. Got 1"),
        ([], "at least two classes. Got 0"),
    ],
)
def test_wrong_pairs_are_refused_with_file_and_row(write: Any, rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"t\.csv: .*{message}"):
        Hierarchy.from_taxonomy(write("t.csv", [("parent", "child"), *rows]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "must name the columns parent and child, or coarse_label, fine_label. Got an empty"),
        ("\n\n", "Got an empty file"),
        ("parent,kid\na,b\n", "must name the columns .*Got parent, kid"),
        ("coarse_label,label\na,b\n", "must name the columns .*Got coarse_label, label"),
        (b"parent,child\na,\xe9\n", "codec can't decode"),
        ("parent,child\na," + "x" * 200_000, "field larger than field limit"),
    ],
    ids=lambda content: repr(content)[:20],
)
def test_a_csv_file_that_cannot_be_used_is_named(write: Any, content: Any, message: str) -> None:
    with pytest.raises(ValueError, match=rf"t\.csv: .*{message}"):
        Hierarchy.from_taxonomy(write("t.csv", content))


# ---------------------------------------------------------- classes at different depths

RAGGED = {"animal": {"pet": ["cat", "dog"], "fox": None}, "car": None}
RAGGED_PAIRS = [
    *[("", "animal"), ("animal", "pet"), ("pet", "cat"), ("pet", "dog"), ("animal", "fox")],
    ("", "car"),
]


def test_classes_may_stand_at_different_depths_in_every_form(write: Any) -> None:
    forms = [
        RAGGED,
        {"animal": [{"pet": ("cat", "dog")}, "fox"], "car": []},
        write("nested.json", json.dumps(RAGGED)),
        write("pairs.csv", [("parent", "child"), *RAGGED_PAIRS]),
    ]
    for form in forms:
        hierarchy = Hierarchy.from_taxonomy(form)
        assert hierarchy.class_names == ("cat", "dog", "fox", "car")
        assert as_lists(hierarchy) == [[0, 0, 0, 1], [0, 0, 1, 2], [0, 1, 2, 3]]
        assert hierarchy.cluster_names == (("animal", "car"), ("pet", "fox", "car"))


# ------------------------------------------------------------------------ several parents


def test_the_first_of_several_parents_may_be_taken(write: Any) -> None:
    rows = [*PAIRS, ("wild", "cat"), ("rail", "wild"), ("pet", "cat")]
    path = write("t.csv", [("parent", "child"), *rows])
    assert_is_the_example(Hierarchy.from_taxonomy(path, parents="first"))


def test_a_class_in_several_places_may_be_taken_at_the_first(write: Any) -> None:
    taxonomy = {**NESTED, "loved": {"small": ["cat", "dog"]}}
    for form in (taxonomy, write("t.json", json.dumps(taxonomy))):
        assert_is_the_example(Hierarchy.from_taxonomy(form, parents="first"))


def test_a_parent_whose_children_are_taken_elsewhere_is_no_class(write: Any) -> None:
    rows = [("", "loved"), *PAIRS, ("loved", "cat")]
    path = write("t.csv", [("parent", "child"), *rows])
    assert_is_the_example(Hierarchy.from_taxonomy(path, parents="first"))


@pytest.mark.parametrize("form", ["t.csv", "t.json"])
def test_the_error_of_two_parents_says_what_to_do(write: Any, form: str) -> None:
    pairs = [("parent", "child"), *PAIRS, ("wild", "cat")]
    nested = json.dumps({**NESTED, "loved": ["cat"]})
    path = write(form, pairs if form == "t.csv" else nested)
    with pytest.raises(ValueError, match=r'keep one of the two, or give parents="first" to take'):
        Hierarchy.from_taxonomy(path)


@pytest.mark.parametrize("cycle", [[("a", "b"), ("b", "a")], [("cat", "animal"), ("", "animal")]])
def test_a_cycle_is_an_error_whichever_parents_are_taken(write: Any, cycle: Any) -> None:
    path = write("t.csv", [("parent", "child"), ("", "animal"), *PAIRS, *cycle])
    with pytest.raises(ValueError, match="is its own ancestor"):
        Hierarchy.from_taxonomy(path, parents="first")


@pytest.mark.parametrize("parents", ["last", "", True, 1, ["first"], np.array(["first"])])
def test_no_other_choice_of_parents_is_taken(parents: Any) -> None:
    with pytest.raises(ValueError, match="parents must be None or 'first'. Got"):
        Hierarchy.from_taxonomy(NESTED, parents=parents)
