"""Curves, accuracy at every level, and gains of classes."""

import json
import math
import sys
from functools import partial

import numpy as np
import pytest
from matplotlib.colors import to_hex

from coarse2fine import Hierarchy, MissingExtraError
from coarse2fine.figures import classes
from coarse2fine.figures.classes import ClassAccuracies
from coarse2fine.figures.classes import plot as class_gains
from coarse2fine.figures.curves import Curve
from coarse2fine.figures.curves import plot as curves
from coarse2fine.figures.levels import plot as levels
from coarse2fine.figures.style import Panel
from coarse2fine.figures.theme import BETTER, COLOURS, WORSE, looks_of, shown

curve = partial(Curve, is_test=True)
PLAIN = [
    curve("baseline", 0, [10.0, 20.0, 30.0], [None] * 3),
    curve("baseline", 1, [20.0, 30.0], [None] * 2),
]
TAUGHT = [
    curve("continuous", 0, [0.0, 20.0, 40.0, 50.0], [0, 1, 1, 2]),
    curve("continuous", 1, [10.0, 30.0, 40.0, 70.0], [0, 0, 1, 2]),
]


def thick(figure):
    return {trace.name: trace for trace in figure.data if trace.line.width > 1}


def test_a_thick_line_is_the_mean_for_as_long_as_all_seeds_train():
    figure = curves([*PLAIN, *TAUGHT])
    json.loads(figure.to_json())
    means = thick(figure)
    assert means["baseline"].y == (15, 25)
    assert means["continuous"].y == (5, 25, 40, 60)
    assert means["continuous"].x == (1, 2, 3, 4)
    thin = [trace.y for trace in figure.data if trace.line.width == 1]
    assert thin == [tuple(curve.accuracy) for curve in (*PLAIN, *TAUGHT)]


def test_one_seed_is_its_own_mean():
    figure = curves(TAUGHT[:1])
    assert [trace.y for trace in figure.data] == [(0, 20, 40, 50)]


def test_the_baseline_is_grey_and_methods_have_a_colour_each():
    means = thick(curves([*TAUGHT, *PLAIN, curve("staged", 0, [1.0, 2.0], [0, 1])]))
    assert means["baseline"].line.color not in COLOURS
    assert [means[name].line.color for name in ("continuous", "staged")] == list(COLOURS[:2])


def test_epochs_without_accuracy_are_a_gap():
    figure = curves([curve("staged", 0, [math.nan, math.nan, 5.0], [0, 0, 1])])
    (line,) = json.loads(figure.to_json())["data"]
    assert line["y"] == [None, None, 5.0]
    assert line["mode"] == "markers"  # as a line of a single point shows nothing


def test_coarse_stages_are_dotted_lines_of_their_clusters():
    nan = math.nan
    own = [
        Curve("staged", seed, [nan, nan, nan, 5.0], [0, 0, 1, 2], True, [50.0, 60.0, 30.0, nan])
        for seed in (0, 1)
    ]
    lines = [line for line in curves(own).data if line.line.dash == "dot"]
    assert [line.name for line in lines] == ["staged, on clusters"] * 2
    assert [line.showlegend for line in lines] == [True, False]
    assert lines[0].x == (1, 2, 2, 3, 3)
    assert list(lines[0].y)[:2] == [50, 60]
    assert math.isnan(lines[0].y[2])  # a gap


def test_levels_of_the_first_curriculum_are_marked_where_they_begin():
    long = curve("continuous", 0, [1.0] * 40, [0] * 10 + [1] * 10 + [2] * 20)
    figure = curves([*PLAIN, long, curve("staged", 0, [1.0] * 40, [0] * 3 + [1] * 37)])
    assert [shape.x0 for shape in figure.layout.shapes] == [10.5, 20.5]
    assert [note.text for note in figure.layout.annotations] == ["level 1", "level 2"]


def test_labels_of_levels_too_close_to_each_other_are_one():
    crowded = curve("continuous", 0, [1.0] * 100, [0] * 10 + [1, 1, 2, 2, 3, 3] + [4] * 84)
    figure = curves([crowded])
    assert len(figure.layout.shapes) == 4
    assert [note.text for note in figure.layout.annotations] == ["levels 1–4"]


@pytest.mark.parametrize(
    ("is_test", "title"),
    [
        ([True, True], "test accuracy, %"),
        ([False], "validation accuracy, %"),
        ([True, False], "test or validation accuracy, %"),
    ],
)
def test_the_axis_says_on_what(is_test, title):
    figure = curves(
        [Curve("m", seed, [1.0], [0], is_test=flag) for seed, flag in enumerate(is_test)]
    )
    assert figure.layout.yaxis.title.text == title


def test_nothing_to_draw_is_an_empty_figure():
    assert curves([]).data == ()


# --------------------------------------------------------------------- levels and classes


def test_each_method_has_a_bar_at_each_level():
    figure = levels([4, 18, 100], {"baseline": [50.0, 30.0, 20.0], "<i>": [60.0, 40.0, 25.0]})
    json.loads(figure.to_json())
    assert figure.layout.xaxis.ticktext == ("4 clusters", "18", "100 classes")
    assert [(bar.name, bar.y) for bar in figure.data] == [
        ("baseline", (50, 30, 20)),
        ("&lt;i&gt;", (60, 40, 25)),
    ]


def test_classes_alone_are_one_level():
    assert levels([10], {"baseline": [50.0]}).layout.xaxis.ticktext == ("10 classes",)


def test_gains_are_sorted_and_have_the_colour_of_their_sign():
    figure = class_gains(["<a>", "b", "c", "d"], [1.0, -3.0, math.nan, 2.0])
    json.loads(figure.to_json())
    (bars,) = figure.data
    assert bars.x == (2, 1, -3)
    assert figure.layout.yaxis.ticktext == ("d", "&lt;a&gt;", "b")
    first, second, third = bars.marker.color
    assert first == second != third


@pytest.mark.parametrize(("count", "kind"), [(41, "bar"), (300, "bar"), (301, "scatter")])
def test_many_classes_are_named_in_the_hover_labels_only(count, kind, rng):
    gains = rng.normal(size=count)
    figure = class_gains([f"<{i}>" for i in range(count)], gains)
    assert figure.layout.yaxis.ticktext is None
    up, down = figure.data
    assert (up.type, down.type) == (kind, kind)
    np.testing.assert_array_equal([*up.y, *down.y], sorted(gains, reverse=True))
    assert [*up.x, *down.x] == list(range(1, count + 1))
    found = dict(zip([*up.customdata, *down.customdata], [*up.y, *down.y], strict=True))
    assert found == {f"&lt;{i}&gt;": gain for i, gain in enumerate(gains.tolist())}
    assert min(up.y) >= 0 > max(down.y)


def test_classes_without_names_have_numbers():
    assert class_gains(None, [1.0, 2.0]).layout.yaxis.ticktext == ("class 1", "class 0")


# -------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("<a href='x'>", "&lt;a href='x'&gt;"),
        ("שלום", "שלום"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("\u202eabc", "\\u202eabc"),
        ("a\tb", "a\\tb"),
        ("", "“”"),
        ("x" * 200, "x" * 39 + "…"),
        ("&" * 40, "&amp;" * 40),
        ("$x^2$", "&#36;x^2&#36;"),
    ],
)
def test_names_are_shown_letter_by_letter(name, text):
    assert shown(name) == text


def test_no_figure_paints_the_page_or_black_text():
    layout = curves(TAUGHT).layout.template.layout
    assert layout.paper_bgcolor == layout.plot_bgcolor == "rgba(0,0,0,0)"
    for figure in (curves(TAUGHT), levels([2], {"m": [1.0]}), class_gains(None, [1.0])):
        assert figure.layout.font.color is None
        assert figure.layout.paper_bgcolor is None


def test_a_missing_plotly_is_named_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'coarse2fine\[report\]'"):
        Hierarchy.from_levels([[0, 0, 1]]).plot()


def test_no_method_is_drawn_in_the_colours_of_better_and_worse():
    looks = looks_of(map(str, range(20)))
    assert not {BETTER, WORSE} & {look.colour for look in looks.values()}


def test_gains_and_losses_have_the_same_colours_on_pages_and_on_paper():
    gains = np.array([3.0, -2.0])
    assert list(class_gains(["a", "b"], gains).data[0].marker.color) == [BETTER, WORSE]
    values = ClassAccuracies("mine", ["a", "b"], np.array([10.0, 10.0]), 10 + gains)
    figure = classes.draw([Panel("", {"mine": "mine"}, values)])
    bars = [to_hex(bar.get_facecolor()) for bar in figure.axes[0].patches]
    assert bars == [BETTER, WORSE]
