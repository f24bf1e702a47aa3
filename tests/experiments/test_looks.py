"""What notes tell of curves and hierarchies, by hand."""

import contents
import pytest

from coarse2fine import Hierarchy
from coarse2fine.data.sets.shapes import CLASS_NAMES
from coarse2fine.experiments import tables
from coarse2fine.experiments.content import results_from_dict
from coarse2fine.experiments.looks import pure, reached
from coarse2fine.figures.curves import Curve

NAN = float("nan")
COLOURS = [name.split(" ")[0] for name in CLASS_NAMES]


def notes(row, figure):
    """The notes on a row beside that runs are missing."""
    content = {**contents.content(row, figure=figure), "seeds": []}
    return tables.notes(results_from_dict(content))


def staged(seed, coarse, fine, level):
    return {"method": "staged", "seed": seed, "test_accuracy": fine, "level": level,
            "coarse_accuracy": coarse}  # fmt: skip


def hierarchy_row(levels, data="shapes"):
    tree = Hierarchy.from_levels(levels, CLASS_NAMES)
    found = {"continuous": {"seed": 3, **tree.to_dict()}}
    return contents.row(label="Shapes", config={"data": data}, hierarchies=found)


def test_a_level_reached_its_best_accuracy_on_its_clusters_or_on_the_classes():
    curve = Curve("staged", 0, [NAN, NAN, NAN, 7.0, 9.0, 8.0], [0, 0, 1, 2, 2, 2], True,
                  [60.0, 50.0, 30.0, NAN, NAN, NAN])  # fmt: skip
    assert reached(curve) == [60.0, 30.0, 9.0]


def test_a_level_of_which_nothing_is_noted_is_left_out():
    assert reached(Curve("staged", 0, [NAN, 7.0], [0, 1], True, [NAN, NAN])) == [7.0]


def test_curves_tell_whether_each_level_was_harder_than_the_one_before():
    curves = [
        staged(0, [0.5, 0.3, None], [None, None, 0.1], [0, 1, 2]),
        staged(1, [0.2, None], [None, 0.3], [0, 1]),  # a level less, and the classes are easier
        {"method": "baseline", "seed": 0, "test_accuracy": [0.1], "level": [None]},
    ]
    row = contents.row(
        label="CIFAR", curves=curves, variants=[contents.variant("staged", "C2F staged")]
    )
    (note,) = notes(row, "curves")
    assert note == (
        "CIFAR: the levels of C2F staged reached 50.00, 25.00 ± 5.00, 20.00 ± 10.00, coarsest "
        "first; in 1 of 2 runs each level more than the next."
    )


def test_curves_without_coarse_stages_tell_nothing():
    curves = [{"method": "continuous", "seed": 0, "test_accuracy": [0.1, 0.2], "level": [0, 1]}]
    assert notes(contents.row(curves=curves), "curves") == []


def test_a_hierarchy_of_shapes_tells_that_it_splits_by_colour():
    # No two classes share both colour and shape: of 435 pairs 135 have the same colour and 30 the
    # same shape, so that the index is (0 - 135 · 30 / 435) / ((135 + 30) / 2 - 135 · 30 / 435).
    (note,) = notes(hierarchy_row([[k // 10 for k in range(30)]]), "hierarchy")
    assert note == (
        "Shapes: C2F, seed 3, adjusted Rand index with colours and with shapes: 3 clusters (1.00 "
        "and -0.13); 100% of the coarsest clusters have one colour."
    )


def test_and_that_it_splits_by_shape():
    (note,) = notes(hierarchy_row([[k % 10 for k in range(30)]]), "hierarchy")
    assert "10 clusters (-0.13 and 1.00); 0% of the coarsest" in note


def test_names_of_other_data_are_not_taken_apart():
    assert notes(hierarchy_row([[k // 10 for k in range(30)]], "mine"), "hierarchy") == []


@pytest.mark.parametrize(
    ("level", "share"),
    [([0] * 10 + [1] * 20, 0.5), ([0] * 9 + [1] * 21, 0.5), ([k % 2 for k in range(30)], 0.0)],
)
def test_a_cluster_is_pure_where_its_classes_have_one_colour(level, share):
    assert pure(Hierarchy.from_levels([level]), COLOURS) == share
