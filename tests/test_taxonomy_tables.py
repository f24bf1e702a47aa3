"""Hierarchies from tables of coarse and fine labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from taxonomies import CLASSES, PAIRS, as_lists, assert_is_the_example

from coarse2fine import Hierarchy

# ------------------------------------------------------------------------------------ tables

SAMPLES = {
    "coarse_label": ["pet", "road", "pet", "pet", "road", "pet"],
    "fine_label": ["dog", "car", "cat", "dog", "bus", "cat"],
}


@pytest.mark.parametrize(
    "table",
    [
        SAMPLES,
        {**SAMPLES, "image": [None] * 6},
        {key: tuple(cells) for key, cells in SAMPLES.items()},
        {key: np.array(cells) for key, cells in SAMPLES.items()},
        pd.DataFrame(SAMPLES),
        pd.DataFrame(SAMPLES, index=[9, 8, 7, 7, 7, 7]),
        pd.DataFrame(SAMPLES).astype("category"),
        pd.DataFrame(SAMPLES).astype("string"),
        "file",
    ],
    ids=lambda table: type(table).__name__,
)
def test_a_table_of_samples_gives_each_class_once(write: Any, table: Any) -> None:
    if isinstance(table, str):
        table = write("t.csv", [tuple(SAMPLES), *zip(*SAMPLES.values(), strict=True)])
    hierarchy = Hierarchy.from_taxonomy(table)
    assert hierarchy.class_names == ("dog", "car", "cat", "bus")
    assert as_lists(hierarchy) == [[0, 1, 0, 1], [0, 1, 2, 3]]
    assert hierarchy.cluster_names == (("pet", "road"),)


class DataSet:
    """What a data set of the Hugging Face library looks like from outside."""

    column_names = ("image", *SAMPLES)

    def __getitem__(self, name: str) -> list[str]:
        return SAMPLES[name]


def test_a_data_set_with_column_names_is_a_table() -> None:
    assert Hierarchy.from_taxonomy(DataSet()) == Hierarchy.from_taxonomy(SAMPLES)


@pytest.mark.parametrize("form", ["dict", "frame", "file"])
def test_columns_can_be_named_and_be_more_than_two(write: Any, form: str) -> None:
    parent = {child: parent for parent, child in PAIRS}
    rows = [(parent[parent[name]], parent[name], name) for name in (*CLASSES, *CLASSES)]
    names = ("top", "middle", "label")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    forms = {"dict": columns, "frame": pd.DataFrame(columns), "file": [names, *rows]}
    table = write("t.csv", forms["file"]) if form == "file" else forms[form]
    assert_is_the_example(Hierarchy.from_taxonomy(table, columns=list(names)))


def test_integer_coarse_labels_name_the_clusters() -> None:
    table = {"coarse_label": np.array([7, 7, 3]), "fine_label": np.array([0, 1, 2])}
    hierarchy = Hierarchy.from_taxonomy(table)
    assert hierarchy.class_names == ("0", "1", "2")
    assert hierarchy.cluster_names == (("7", "3"),)


def test_many_samples_are_a_few_classes() -> None:
    fine = np.arange(100_000) % 100
    hierarchy = Hierarchy.from_taxonomy({"coarse_label": fine // 20, "fine_label": fine})
    assert hierarchy.num_clusters == (5, 100)


@pytest.mark.parametrize("leaf", [None, {}, {"c": ["x", "y"]}, "x"])
def test_groups_called_like_the_columns_are_groups(leaf: Any) -> None:
    hierarchy = Hierarchy.from_taxonomy({"coarse_label": ["a", "b"], "fine_label": leaf})
    assert hierarchy.class_names is not None
    assert hierarchy.class_names[:2] == ("a", "b")


EMPTY = [None, np.nan, np.float32("nan"), "", pd.NA, pd.NaT]
NO_LABELS = [1.5, True, ["a"], {"a": 1}]


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *(("coarse_label", cell) for cell in [*EMPTY, *NO_LABELS]),
        *(("fine_label", cell) for cell in NO_LABELS),
    ],
    ids=repr,
)
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_cell_that_is_no_label_is_named(make: Any, column: str, cell: Any) -> None:
    cells = list(SAMPLES[column])
    cells[3] = cell
    with pytest.raises(ValueError, match=f"{column} in row 3 must be a string or an integer"):
        Hierarchy.from_taxonomy(make({**SAMPLES, column: cells}))


def test_integers_that_a_gap_turned_into_floats_are_refused() -> None:
    frame = pd.DataFrame({"coarse_label": ["a", "a", "b"], "fine_label": [0, 1, None]})
    with pytest.raises(ValueError, match=r"fine_label in row 0 must be .* Got 0\.0"):
        Hierarchy.from_taxonomy(frame)


def test_an_empty_cell_of_a_file_is_named(write: Any) -> None:
    path = write("t.csv", [("coarse_label", "fine_label"), ("a", "x"), ("", ""), ("", "y")])
    with pytest.raises(ValueError, match=r"t\.csv: coarse_label in row 4 must be .*Got ''"):
        Hierarchy.from_taxonomy(path)


# ------------------------------------------------------------------- empty finest labels


@pytest.mark.parametrize("cell", EMPTY, ids=repr)
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_coarse_label_alone_says_nothing_more_of_its_tree(make: Any, cell: Any) -> None:
    longer = {
        "coarse_label": ["road", *SAMPLES["coarse_label"], "pet"],
        "fine_label": [cell, *SAMPLES["fine_label"], cell],
    }
    assert Hierarchy.from_taxonomy(make(longer)) == Hierarchy.from_taxonomy(SAMPLES)


@pytest.mark.parametrize("cell", EMPTY, ids=repr)
@pytest.mark.parametrize("make", [dict, pd.DataFrame])
def test_a_coarse_label_with_nothing_finer_is_a_class(make: Any, cell: Any) -> None:
    longer = {
        "coarse_label": [*SAMPLES["coarse_label"], "tree", "tree"],
        "fine_label": [*SAMPLES["fine_label"], cell, cell],
    }
    hierarchy = Hierarchy.from_taxonomy(make(longer))
    assert hierarchy.class_names == ("dog", "car", "cat", "bus", "tree")
    assert as_lists(hierarchy) == [[0, 1, 0, 1, 2], [0, 1, 2, 3, 4]]
    assert hierarchy.cluster_names == (("pet", "road", "tree"),)


@pytest.mark.parametrize("form", ["dict", "frame", "file"])
def test_classes_of_a_table_may_stand_at_any_depth(write: Any, form: str) -> None:
    names = ("top", "middle", "label")
    rows = [
        ("animal", "pet", "cat"),
        ("animal", "pet", ""),
        ("animal", "pet", "dog"),
        ("animal", "fox", ""),
        ("animal", "", ""),
        ("car", "", ""),
    ]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    forms = {"dict": columns, "frame": pd.DataFrame(columns), "file": [names, *rows]}
    table = write("t.csv", forms["file"]) if form == "file" else forms[form]
    nested = {"animal": {"pet": ["cat", "dog"], "fox": None}, "car": None}
    assert Hierarchy.from_taxonomy(table, columns=names) == Hierarchy.from_taxonomy(nested)


def test_a_label_between_two_others_is_never_empty(write: Any) -> None:
    rows = [("top", "middle", "label"), ("a", "b", "x"), ("a", "", "y")]
    with pytest.raises(ValueError, match=r"t\.csv: middle in row 3 must be .*Got ''"):
        Hierarchy.from_taxonomy(write("t.csv", rows), columns=rows[0])


def test_a_class_at_the_top_and_below_is_named() -> None:
    table = {"coarse_label": ["a", "a", "b", "cat"], "fine_label": ["cat", "x", "y", None]}
    message = "coarse_label 'cat' stands below a and, in row 3, at the top; keep one"
    with pytest.raises(ValueError, match=message):
        Hierarchy.from_taxonomy(table)
    assert Hierarchy.from_taxonomy(table, parents="first").clusters(0) == ((0, 1), (2,))


# ------------------------------------------------------------------------ several parents


@pytest.mark.parametrize("form", ["dict", "frame", "file"])
def test_the_first_of_several_coarse_labels_may_be_taken(write: Any, form: str) -> None:
    table: Any = {**SAMPLES, "coarse_label": [*SAMPLES["coarse_label"][:-1], "road"]}
    if form == "frame":
        table = pd.DataFrame(table)
    if form == "file":
        table = write("t.csv", [tuple(table), *zip(*table.values(), strict=True)])
    assert Hierarchy.from_taxonomy(table, parents="first") == Hierarchy.from_taxonomy(SAMPLES)


@pytest.mark.parametrize(("form", "row"), [("dict", 5), ("frame", 5), ("file", 7)])
def test_a_class_below_two_coarse_labels_is_named(write: Any, form: str, row: int) -> None:
    table: Any = {**SAMPLES, "coarse_label": [*SAMPLES["coarse_label"][:-1], "road"]}
    if form == "frame":
        table = pd.DataFrame(table)
    if form == "file":
        table = write("t.csv", [tuple(table), *zip(*table.values(), strict=True)])
    with pytest.raises(ValueError, match=f"'cat' stands below pet and, in row {row}, below road"):
        Hierarchy.from_taxonomy(table)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="coarse_label has 5 cells and fine_label has 6"):
        Hierarchy.from_taxonomy({**SAMPLES, "coarse_label": SAMPLES["coarse_label"][:5]})


def test_a_table_without_the_columns_is_refused_with_those_it_has() -> None:
    frame = pd.DataFrame({"coarse": ["a"], "fine_label": ["x"]})
    with pytest.raises(ValueError, match=r"coarse_label, fine_label; .*Got coarse, fine_label"):
        Hierarchy.from_taxonomy(frame)


@pytest.mark.parametrize("table", [pd.DataFrame(SAMPLES)[:0], {key: [] for key in SAMPLES}])
def test_a_table_without_rows_is_refused(table: Any) -> None:
    with pytest.raises(ValueError, match="at least two classes. Got 0"):
        Hierarchy.from_taxonomy(table)


@pytest.mark.parametrize("columns", [(), ("fine_label",), "fine_label"])
def test_there_must_be_two_columns(columns: Any) -> None:
    with pytest.raises(ValueError, match="columns must name at least two columns"):
        Hierarchy.from_taxonomy(SAMPLES, columns=columns)


# ------------------------------------------------------------------------- anything at all

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(max_size=3) | st.sampled_from(["coarse_label", "fine_label"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["coarse_label", "fine_label", "a", "b"]), ANYTHING))
@settings(max_examples=200)
@pytest.mark.filterwarnings("ignore:The hierarchy of")
def test_any_dict_is_a_valid_hierarchy_or_refused(taxonomy: Any) -> None:
    try:
        hierarchy = Hierarchy.from_taxonomy(taxonomy)
    except ValueError:
        return
    assert hierarchy.class_names is not None
    assert len(set(hierarchy.class_names)) == hierarchy.num_classes


@given(st.text(st.sampled_from('parent,child\n\r"ab ')) | st.text())
@settings(max_examples=200)
@pytest.mark.filterwarnings("ignore:The hierarchy of")
def test_any_csv_is_a_valid_hierarchy_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "anything.csv"
    path.write_bytes(b"parent,child\n" + text.encode())
    try:
        hierarchy = Hierarchy.from_taxonomy(path)
    except ValueError as error:
        message = str(error)
    else:
        assert len(set(hierarchy.class_names or ())) == hierarchy.num_classes
        return
    assert message.startswith(f"{path}: ")
