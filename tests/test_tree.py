"""The tree of text that printing a hierarchy shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coarse2fine import Hierarchy


def tree(text: str) -> str:
    """Return an expected tree, written with a line break before and after it."""
    return text.strip("\n")


def chain(classes: int) -> Hierarchy:
    """As deep as can be: each level joins one more class to the first cluster."""
    levels = [np.maximum(np.arange(classes) - top, 0) for top in range(classes - 2, -1, -1)]
    return Hierarchy.from_levels(levels)


def test_classes_without_names_are_numbers() -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 0, 1, 1], [0, 0, 1, 2, 3]])
    assert str(hierarchy) == tree("""
5 classes: 2 → 4 → 5
├── 3 classes
│   ├── 0, 1
│   └── 2
└── 2 classes
    ├── 3
    └── 4
""")


def test_classes_and_clusters_are_shown_by_their_names() -> None:
    hierarchy = Hierarchy.from_levels(
        [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 3]],
        ["cat", "dog", "fox", "wolf", "car", "bus"],
        [["animal", "vehicle"], ["pet", "wild", "private", "public"]],
    )
    assert str(hierarchy) == tree("""
6 classes: 2 → 4 → 6
├── animal (4 classes)
│   ├── pet: cat, dog
│   └── wild: fox, wolf
└── vehicle (2 classes)
    ├── private: car
    └── public: bus
""")


def test_cluster_names_stand_beside_numbered_classes() -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], None, [["pet", ""]])
    assert str(hierarchy) == tree("""
3 classes: 2 → 3
├── pet: 0, 1
└── 2
""")


def test_a_cluster_that_does_not_split_is_not_repeated() -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 1, 1, 1], [0, 0, 1, 1, 2], [0, 0, 1, 2, 3]])
    assert str(hierarchy) == tree("""
5 classes: 2 → 3 → 4 → 5
├── 0, 1
└── 3 classes
    ├── 2 classes
    │   ├── 2
    │   └── 3
    └── 4
""")


def test_a_cluster_that_does_not_split_shows_all_of_its_names_once() -> None:
    hierarchy = Hierarchy.from_taxonomy(
        {
            "animal": {"pet": ["cat", "dog"], "wild": ["fox", "wolf"]},
            "vehicle": {"road": {"private": ["car", "motorbike"]}, "rail": {"slow": ["tram"]}},
            "plant": {"plant": ["moss", "fern"]},
            "stone": None,
        }
    )
    assert str(hierarchy) == tree("""
10 classes: 4 → 6 → 9 → 10
├── animal (4 classes)
│   ├── pet (2 classes)
│   │   ├── cat
│   │   └── dog
│   └── wild (2 classes)
│       ├── fox
│       └── wolf
├── vehicle (3 classes)
│   ├── road > private: car, motorbike
│   └── rail > slow: tram
├── plant (2 classes)
│   ├── moss
│   └── fern
└── stone
""")


def test_a_class_alone_in_its_cluster_is_named_once() -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], ["a", "b", "car"], [["ab", "car"]])
    assert str(hierarchy).endswith("└── car")
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], ["a", "b", "car"], [["ab", "racecar"]])
    assert str(hierarchy).endswith("└── racecar: car")


def test_an_unbalanced_hierarchy_is_shown_to_its_depth() -> None:
    assert str(chain(6)) == tree("""
6 classes: 2 → 3 → 4 → 5 → 6
├── 5 classes
│   ├── 4 classes
│   │   ├── 3 classes
│   │   │   ├── 0, 1
│   │   │   └── 2
│   │   └── 3
│   └── 4
└── 5
""")


def test_a_hierarchy_deeper_than_the_interpreters_stack_is_shown() -> None:
    lines = chain(1500).to_text(max_lines=10_000).split("\n")
    # Each of the 1498 levels above the classes splits one cluster into two.
    assert len(lines) == 1 + 2 * 1498
    assert lines[-1] == "└── 1499"
    assert len(lines[0]) <= 100


def test_the_classes_alone_are_a_single_line() -> None:
    with pytest.warns(UserWarning, match="plain training"):
        hierarchy = Hierarchy.from_levels([[0, 1, 2]])
    assert str(hierarchy) == "3 classes: 3"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("a\tb\r", r"a\tb\r"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\u202eb", r"a\u202eb"),
        ("\x00", r"\x00"),
        ("\udce9", r"\udce9"),
        ("日本語 é 🦊", "日本語 é 🦊"),
        ("two  spaces", "two  spaces"),
        ("", ""),
    ],
)
def test_control_characters_are_shown_as_escapes(name: str, shown: str) -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], ["x", "y", name], [["x and y", name]])
    assert str(hierarchy).split("\n")[1:] == ["├── x and y: x, y", f"└── {shown}"]


def words(count: int) -> Hierarchy:
    return Hierarchy.from_levels([[0] * (count - 1) + [1]], [f"word{i}" for i in range(count)])


def test_a_line_that_is_too_wide_is_cut_between_names() -> None:
    assert words(100).to_text(width=30).split("\n")[1] == "├── word0, word1, word2, …"


def test_a_line_that_just_fits_is_not_cut() -> None:
    line = "├── word0, word1, word2, word3"
    assert words(5).to_text(width=len(line)).split("\n")[1] == line
    assert words(5).to_text(width=len(line) - 1).split("\n")[1] == "├── word0, word1, word2, …"


def test_a_single_name_that_is_too_long_shows_its_beginning() -> None:
    hierarchy = Hierarchy.from_levels([[0, 0, 1]], ["a", "b", "x" * 500])
    assert str(hierarchy).split("\n")[2] == "└── " + "x" * 95 + "…"


def test_every_name_is_shown_where_there_is_room() -> None:
    text = words(1000).to_text(width=100_000)
    assert all(f"word{i}" in text for i in range(1000))
    assert "…" not in text


def test_lines_beyond_the_most_are_cut_with_a_note() -> None:
    hierarchy = Hierarchy.from_levels([np.arange(100) // 2])
    lines = hierarchy.to_text(max_lines=3).split("\n")
    assert lines[1:4] == ["├── 0, 1", "├── 2, 3", "├── 4, 5"]
    assert lines[4:] == ["… cut after 3 lines; a larger max_lines shows more"]


def test_as_many_lines_as_the_most_are_not_cut() -> None:
    hierarchy = Hierarchy.from_levels([np.arange(100) // 2])
    assert hierarchy.to_text(max_lines=50) == hierarchy.to_text(max_lines=1000)
    assert "…" not in hierarchy.to_text(max_lines=50)


@pytest.mark.parametrize(
    "level", [np.arange(100_000) // 50_000, np.arange(100_000) // 2, np.arange(100_000) % 300]
)
def test_a_hundred_thousand_classes_print_short(level: Any) -> None:
    names = [f"class number {i}" for i in range(100_000)]
    text = str(Hierarchy.from_levels([level], names))
    assert text.startswith("100000 classes: ")
    assert "class number 0, class number" in text
    assert len(text) < 82 * 101


@given(st.integers(3, 30), st.integers(0, 1000), st.integers(40, 120), st.text(max_size=60))
def test_lines_are_as_many_and_as_wide_as_asked_for(
    classes: int, seed: int, width: int, name: str
) -> None:
    distances = np.random.default_rng(seed).random((classes, classes))
    hierarchy = Hierarchy.from_levels([[0] * (classes - 1) + [1]], [name] * classes)
    deep = Hierarchy.from_distances(distances + distances.T) if classes > 9 else hierarchy
    for each in (hierarchy, deep):
        lines = each.to_text(width=width, max_lines=5).split("\n")
        assert len(lines) <= 7
        assert all(len(line) <= width for line in lines[:6])
        assert all(line.isprintable() for line in lines)
